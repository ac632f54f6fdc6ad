// Watches the states of all datasets while a simulated job runs: every step must be one that the
// tables in records/dataset_state.hpp allow, and so must the two states of each dataset.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cluster.hpp"
#include "files/hooked_files.hpp"
#include "records/dataset_record.hpp"
#include "recovery/remains.hpp"

namespace cairn::sim {

class StateWatch {
 public:
  /// What is passed by reference must outlive this.
  StateWatch(const Cluster& cluster, std::shared_ptr<Volume> prefix, const Settings& settings)
      : cluster_(cluster), prefix_(std::move(prefix)), settings_(settings) {}

  /// A power failure has taken back what was not synced: what is found next is taken as it is.
  void forget();
  /// Nodes have lost what they held.
  void forget_caches() { cached_.clear(); }
  void begin_run() { has_lost_node_ = false; }
  /// A node is lost while a run uses it: the others may commit what its ranks had prepared.
  void lose_node() {
    has_lost_node_ = true;
    forget_caches();
  }
  /// An operation is about to be done, and all that came before have been. Throws Violation.
  void see(const FileOperation& operation);
  /// After the last operation.
  void look();

 private:
  void look_at_prefix();
  void check_pairs() const;
  std::map<Uuid, PrefixState> read_prefix();
  void look_at_caches(const std::string& name);
  Remains find_parts_of(const std::string& name) const;
  static CacheState state_of(const Remains& remains);
  bool may_begin_flush_of(const Uuid& uuid);

  const Cluster& cluster_;
  const std::shared_ptr<Volume> prefix_;
  const Settings& settings_;
  std::optional<std::map<Uuid, PrefixState>> there_;  ///< nothing: not known yet
  std::map<std::string, CacheState> cached_;          ///< by the names of the datasets' folders
  bool has_changed_ = false;                          ///< the prefix directory
  bool has_lost_node_ = false;                        ///< the present run
  std::set<std::string> changed_;                     ///< names of folders in the caches
};

}  // namespace cairn::sim
