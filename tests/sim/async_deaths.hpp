// A job that dies while a dataset is copied behind the program, at a call of one's choice.
#pragma once

#include <cstdint>
#include <string>

namespace cairn::sim {

struct AsyncDeath {
  enum class Kind {
    processes,  ///< of all ranks, at the same call
    job,        ///< the same, and all caches are lost before the next run
    power,      ///< the same, and what was not synced
    node,       ///< the process of one node, and its cache; the others go on for a while
    process,    ///< the same, but no cache is lost
    drains,     ///< of all ranks; then the drains of all nodes, at the same call
    drain,      ///< the same, but only the drain of one node; the others end as they do
  };
  Kind kind = Kind::processes;
  int node = 0;
  /// Of all ranks together, after the first one has begun to complete the dataset.
  std::uint64_t calls = 0;
  /// Of all drains together, since they have begun.
  std::uint64_t drain_calls = 1;
  /// `cairn drain` on the nodes that are left, before the next run. After a drain that has died it
  /// is another one, and then all caches are lost.
  bool is_drained = false;
  std::uint64_t seed = 1;  ///< decides who goes first
};

struct AsyncDeathOutcome {
  std::string failure;     ///< the property that does not hold; empty: all do
  bool has_died = false;   ///< else the run, or the drains, have ended with fewer calls
  bool was_whole = false;  ///< then the prefix directory had all parts of the dataset
};

/// Three ranks on three nodes write checkpoint d1 and finalize. The next run writes d2, and dies.
/// What must hold:
///   (a) what is offered, or listed, has the bytes that were written;
///   (b) d2 is offered if it was complete and the caches of two nodes are left, or if the prefix
///       directory had all of its parts; else d1 is;
///   (d) no dataset is published twice;
///   (h) the next run leaves no staged file, and what it restarts from is in the prefix directory
///       when it has ended.
AsyncDeathOutcome simulate_async_death(const AsyncDeath& death, bool print = false);

}  // namespace cairn::sim
