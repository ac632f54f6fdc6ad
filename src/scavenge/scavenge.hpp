// Saves what a node's caches hold of a dead job to the prefix directory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "prefix/prefix_folder.hpp"
#include "recovery/remains.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {

/// What this node has of one dataset.
struct Holding {
  Remains remains;  ///< in outline: each record is read when it is needed, and then let go
  DatasetInfo info;
  std::uint64_t bytes = 0;  ///< of files and redundancy that are here
  bool in_prefix = false;   ///< all of it is there, and nothing is known to be wrong with it
  bool outlived = false;    ///< a checkpoint, and a newer one is in the prefix directory
  bool committed = false;   ///< may_be_committed(), as far as this node alone can know

  std::vector<int> ranks() const;
};

/// Local. Datasets of which there is a record in these caches; newest first. Where it is only a
/// prepared one, another node knows whether the dataset was committed.
/// Not among them is what the program wrote into the prefix directory itself, and what was dropped,
/// deleted or quarantined, as far as that can be read: copies publish nothing, and what is not
/// copied may be lost. Caches, and datasets in them, that cannot be read are named in `unreadable`,
/// and do not keep the others from being saved.
Result<std::vector<Holding>> find_holdings(Files& files, const std::vector<std::string>& caches,
                                           const PrefixFolder& folder,
                                           std::vector<std::string>& unreadable, const Log& log);

/// The order in which data are saved: outputs as they were made, because no run makes them again;
/// then checkpoints, the newest first.
bool is_saved_before(const DatasetInfo& a, const DatasetInfo& b);

/// Local. A record that says what the dataset is, a committed one if there is any; null where none
/// can be read.
const HeldRecord* record_of(const Remains& remains);

struct ScavengeProgress {
  std::uint64_t bytes = 0;      ///< moved so far
  std::uint64_t all_bytes = 0;  ///< to be moved, as far as is known
};

struct ScavengeLimits {
  IoThreads io;
  std::uint64_t bytes_per_s = 0;  ///< 0: any
  std::int64_t end_time_s = 0;    ///< since 1970; 0: whatever it takes
};

struct ScavengeAccount {
  std::uint64_t files = 0;        ///< of the program
  std::uint64_t bytes = 0;        ///< in the copies
  std::uint64_t saved_bytes = 0;  ///< those that were not there from an earlier try
  std::uint64_t bad_blocks = 0;   ///< are missing or damaged, for a rebuild to repair
  std::string unreadable;         ///< why not all files could be read that no record names
};

/// Local. Copies the parts of `holdings`, in this order, below folder.saved().of_node(node), as
/// they are, each block checked on the way; what an earlier try has copied is not copied again, and
/// what cannot be read is logged, and keeps nothing else from being copied. Nothing there counts
/// before it is rebuilt and published. `progress` may be called by several threads. Errors: busy
/// where another process scavenges the same node, or the time is up; those of the files there. All
/// that was copied stays, for the next try.
Result<ScavengeAccount> scavenge(Files& files, Clock& clock, const PrefixFolder& folder,
                                 const std::string& node, const std::vector<Holding>& holdings,
                                 const ScavengeLimits& limits,
                                 const std::function<void(ScavengeProgress)>& progress,
                                 const Log& log);

}  // namespace cairn
