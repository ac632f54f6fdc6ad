// Jobs of programs that know nothing of Cairn: the ranks agree by themselves which steps are whole.
//
// Checked: (a) restored files have bytes that the program has written as a whole; (b) no step older
// than the last certain one, or than the one of the last restart, is restored; (c) all ranks come
// to the same; (d) no step is restored in part, where the program keeps to the rule that excludes
// it (docs/adr/0042); (f) nothing hangs; (n) no byte of an orderly run is lost; (w) the rule: only
// a certain step evicts a certain one, opening a file again withdraws its step, and the first step
// of a run is no checkpoint before its writers have passed it. Where names repeat, and the ranks of
// a slow program keep in step, each step is a checkpoint, but the first one where all names repeat
// in the second.
#pragma once

#include "simulation.hpp"

namespace cairn::sim {

Outcome simulate_wrapped(std::uint64_t seed, bool print = false);

}  // namespace cairn::sim
