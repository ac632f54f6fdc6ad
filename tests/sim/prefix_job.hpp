// Seeds of other kinds: a job with a prefix directory, whose nodes lose all they hold.
#pragma once

#include "simulation.hpp"

namespace cairn::sim {

/// Runs that write, are killed at any call, lose power or all nodes, and meet faults in the prefix
/// directory. What must hold:
///   (a) what is offered was committed, byte for byte;
///   (b) it is at least as new as the newest dataset that a run without faults has been told to be
///       complete, also when all nodes are gone; outputs that were complete are listed;
///   (c) all ranks get the same verdict;
///   (f) nothing hangs;
///   (h) nothing half done is left after a run that ended well;
///   (l) a loss is reported only of a dataset that is damaged in the caches and is not in the
///   prefix
///       directory, and by one call of a run;
///   (s) every step of a dataset's life is one that records/dataset_state.hpp allows.
/// As simulate() otherwise.
Outcome simulate_prefix(std::uint64_t seed, bool print = false);

/// The same with bits that flip in flushed files, which lose their ends or go; with SCR_Current,
/// SCR_Drop and SCR_Delete; and with restarts that die, after which their checkpoint is not offered
/// any more. So too:
///   (b) a dataset that was damaged is given back as it was, or refused and the next older taken;
///       with empty nodes, what SCR_Current has named is offered;
///   (d) a dataset that was dropped or deleted does not come back.
Outcome simulate_trouble(std::uint64_t seed, bool print = false);

/// As simulate_prefix() with runs that bypass the cache, for all checkpoints or some, whose ranks
/// share a file; that restart without a copy in the cache, or never from it; and that purge the
/// prefix directory. Every call in that directory may fail.
Outcome simulate_bypass(std::uint64_t seed, bool print = false);

/// Jobs of all three kinds with SCR_FLUSH_ASYNC=1, half of them with CAIRN_PROTECT=behind: each
/// process copies beside the program, in steps whose time the seed decides. Often one process dies
/// first, or all of its node, which may be lost with its caches; the others go on for a while. So
/// too:
///   (b) a dataset all of whose parts are marked as done is offered and listed from then on,
///       whatever nodes are lost; what a run was told to be complete is offered while the nodes are
///       as they were;
///   (d) no dataset is published twice;
///   (h) after Init no staged file is left but those of copies that this run has begun, and after
///       Finalize none.
Outcome simulate_async(std::uint64_t seed, bool print = false);

}  // namespace cairn::sim
