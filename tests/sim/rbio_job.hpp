// Seeds of jobs that write a series of steps with rbIO.
#pragma once

#include "simulation.hpp"

namespace cairn::sim {

/// Several runs on any number of ranks, in any mode; the threads of writers run as fibers. A
/// process, a node or the power dies at any call; operations on files fail or hang; bits flip in
/// what is written. What must hold:
///   (a) each element that is restored is of one version of one step;
///   (b) that version is not older than the newest that wait() has returned; after damage to files,
///       not older than the newest that was begun after it and that wait() has returned;
///   (c) all ranks reach the same verdict, and an error has a cause;
///   (f) nothing hangs, and no message is left;
///   (h) a run without trouble leaves nothing behind but published steps.
/// As simulate() otherwise.
Outcome simulate_rbio(std::uint64_t seed, bool print = false);

/// The same of a job of 4 ranks on 2 nodes in which one run dies, and the next one restores. The
/// seeds count through the modes, what dies, and the call at which it dies.
Outcome simulate_rbio_death(std::uint64_t seed, bool print = false);

}  // namespace cairn::sim
