// A job that dies while checkpoints are protected behind the program, at a call of one's choice.
#pragma once

#include <cstdint>
#include <string>

namespace cairn::sim {

struct BehindDeath {
  enum class Kind {
    processes,   ///< of all ranks, at the same call
    process,     ///< of one rank; the others go on for a while
    node,        ///< the same, and what the node holds is lost
    power,       ///< of all nodes, whose caches are on disks: what was not synced may be lost
    connection,  ///< no process: the ranks cannot reach each other behind the program any more
  };
  Kind kind = Kind::processes;
  int node = 0;
  /// Of all ranks together, since the first one was about to complete d2.
  std::uint64_t calls = 0;
  /// All processes of the next run die, too, after so many calls. 0: they do not.
  std::uint64_t calls_of_next_run = 0;
  std::uint64_t seed = 1;  ///< decides who goes first
};

struct BehindDeathOutcome {
  std::string failure;         ///< the property that does not hold; empty: all do
  bool has_died = false;       ///< else the run has ended with fewer calls
  bool next_has_died = false;  ///< the same, of the next run
  bool was_exposed = false;    ///< some rank had completed a dataset, and none knew it as protected
};

/// Three ranks on three nodes write checkpoint d1 and finalize. The next run writes d2 and d3 one
/// right after the other, looks until d3 is protected, and finalizes. The cache keeps one
/// checkpoint, so a job behind the program also removes the older one. What must hold:
///   (a) what is offered has the bytes that were written;
///   (b) what is offered is no older than the newest dataset that was complete on some rank, if all
///       nodes keep what they hold; else no older than the newest that some rank knew as protected;
///   (c) what was offered is protected: the next run offers it again where a node is lost
///   meanwhile.
BehindDeathOutcome simulate_behind_death(const BehindDeath& death, bool print = false);

}  // namespace cairn::sim
