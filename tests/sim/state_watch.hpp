// Watches the states of all datasets while a simulated job runs: every step must be one that the
// tables in records/dataset_state.hpp allow, and so must the two states of each dataset.
#pragma once

#include <functional>
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

/// Of the four states that records can express.
CacheState recorded_state(const Remains& remains);

class StateWatch {
 public:
  /// What is passed by reference must outlive this.
  StateWatch(const Cluster& cluster, std::shared_ptr<Volume> prefix, const Settings& settings)
      : cluster_(cluster), prefix_(std::move(prefix)), settings_(settings) {}

  /// A power failure takes back what was not synced.
  void fail_power(const std::function<void()>& fail);
  /// Nodes have lost what they held: each dataset has a state that it has had before.
  void forget_caches();
  void begin_run();
  /// A node is lost while a run uses it: the others may commit what its ranks had prepared.
  void lose_node(const std::function<void()>& wipe);
  /// An operation is about to be done, and all that came before have been. Throws Violation.
  void see(const FileOperation& operation);
  /// After the last operation.
  void look();

 private:
  /// What the records of the ranks say, by generation.
  struct Generations {
    std::map<std::uint64_t, std::set<int>> prepared;  ///< or committed, by these ranks
    std::set<std::uint64_t> committed;                ///< by any rank
  };

  void look_at_prefix();
  void check_pairs() const;
  std::map<Uuid, PrefixState> read_prefix();
  void look_at_caches(const std::string& name);
  void check_commit(const std::string& name, const Remains& remains);
  static Generations generations_in(const Remains& remains);
  void check_derived(const std::string& name, const Remains& remains, CacheState recorded) const;
  std::set<std::string> names_in_caches() const;
  Remains find_parts_of(const std::string& name) const;
  bool may_begin_flush_of(const Uuid& uuid);

  const Cluster& cluster_;
  const std::shared_ptr<Volume> prefix_;
  const Settings& settings_;
  std::optional<std::map<Uuid, PrefixState>> there_;  ///< nothing: not known yet
  std::map<std::string, CacheState> cached_;          ///< by the names of the datasets' folders
  std::map<std::string, std::set<CacheState>> had_;   ///< all states that these have had
  std::map<std::string, Generations> records_;
  std::map<std::string, std::set<std::uint64_t>> committed_;  ///< generations, ever
  /// By name and generation: the ranks whose records were lost with their node in the present run.
  std::map<std::string, std::map<std::uint64_t, std::set<int>>> lost_;
  std::set<std::string> reduced_;  ///< a record of these was removed, or lost with its node
  bool has_changed_ = false;       ///< the prefix directory
  bool has_lost_node_ = false;     ///< the present run
  std::set<std::string> changed_;  ///< names of folders in the caches
};

}  // namespace cairn::sim
