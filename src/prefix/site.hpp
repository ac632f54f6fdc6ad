// The facts about the job's prefix directory that every rank has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "comm/communicator.hpp"
#include "files/clock.hpp"
#include "prefix/keeper.hpp"
#include "transfer/io_threads.hpp"
#include "transfer/pace.hpp"

namespace cairn {

/// Limits of the load of a job on the parallel file system.
struct TransferLimits {
  int width = 256;                     ///< ranks that copy to it at a time
  std::uint64_t bytes_per_s_node = 0;  ///< 0: no limit
  int read_width = 256;                ///< ranks that copy from it at a time
};

struct Site {
  Files& files;
  Clock& clock;
  PrefixFolder folder;
  std::uint64_t epoch = 0;
  int ranks_on_node = 1;
  bool copy_metadata = true;  ///< modes and times of files are kept
  TransferLimits limits;
  IoThreads io;              ///< of this rank
  Keeper* keeper = nullptr;  ///< on rank 0
  /// Counts the bytes that this rank copies there, to show the progress of a flush; may be null.
  std::atomic<std::uint64_t>* copied = nullptr;
  Pace* pace = nullptr;  ///< for the thread that copies, if the program has priority
  /// Of steady time: no block is copied there later.
  std::int64_t end_us = std::numeric_limits<std::int64_t>::max();
  bool repairs = false;  ///< what its caches cannot read is damage: the caller repairs that

  /// The rate of each rank that copies, if `width` ranks of the job copy at a time.
  std::uint64_t bytes_per_s_rank(int width) const {
    if (limits.bytes_per_s_node == 0) return 0;
    const auto at_a_time = static_cast<std::uint64_t>(std::min(ranks_on_node, width));
    return std::max<std::uint64_t>(1, limits.bytes_per_s_node / at_a_time);
  }
};

/// Collective. Does `action` with the keeper of rank 0, and returns its status on all ranks.
template <class Action>
Status on_keeper(Communicator& comm, const Site& site, Action action) {
  return agree(comm, site.keeper != nullptr ? action(*site.keeper) : Status{});
}

/// Collective. Sends rank 0's record to all ranks; nothing for null.
inline std::optional<DatasetRecord> share(Communicator& comm, const DatasetRecord* record) {
  Blob blob = record != nullptr ? encode(*record) : Blob{};
  bcast_blob(comm, blob, 0);
  if (blob.empty()) return std::nullopt;
  return decode_dataset_record(blob).value();
}

/// Calls `visit` for this rank's share of the numbers below `count`: every size()-th.
template <class Visit>
void visit_dealt(Communicator& comm, std::size_t count, Visit visit) {
  for (auto i = static_cast<std::size_t>(comm.rank()); i < count;
       i += static_cast<std::size_t>(comm.size()))
    visit(i);
}

/// Collective. Runs `action` on all ranks, on at most `width` of them at a time.
template <class Action>
void in_turns(Communicator& comm, int width, Action action) {
  constexpr int turn_tag = 301;
  std::byte turn{};
  const MutableBytes token(&turn, 1);
  if (comm.rank() >= width) recv(comm, token, comm.rank() - width, turn_tag);
  action();
  if (comm.rank() + width < comm.size()) send(comm, token, comm.rank() + width, turn_tag);
}

}  // namespace cairn
