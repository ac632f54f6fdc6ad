// One run of the simulated job, from the start of its processes to the end of the last.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "background.hpp"
#include "cluster.hpp"
#include "faults.hpp"
#include "model.hpp"
#include "postboxes.hpp"
#include "session/session.hpp"
#include "verdicts.hpp"

namespace cairn::sim {

struct DatasetPlan {
  int key = 0;  ///< unique in the job, ascending; its name is d<key>
  std::uint32_t flags = flag_checkpoint;
  int invalid_rank = -1;  ///< this one declares its part invalid
};

/// What ends a run before its time.
enum class Crash {
  none,
  process,  ///< of one rank; the launcher ends the others a little later
  job,      ///< all at once
  node,     ///< one node loses power; of its memory nothing is left, of its disks what was synced
  power,    ///< all nodes do
  storage,  ///< one node is gone with all it held
};

/// SCR_Delete or SCR_Current.
struct NamedCall {
  enum class Kind {
    remove,   ///< the dataset itself
    current,  ///< what is newer than the dataset, outputs excepted
  };
  Kind kind = Kind::remove;
  int key = 0;             ///< of the dataset named; it need not be there
  std::size_t before = 0;  ///< this dataset of the run; or after the last
};

/// The program changes a file of a dataset that it has completed, which it must not.
struct FileChange {
  int rank = 0;
  std::size_t dataset = 0;  ///< of the run
  int call = 0;             ///< before this one of those that it makes while it computes
  bool grows = false;       ///< else the file stays as long as it is
};

/// A run that finds what it cannot use, and must leave it as it is.
enum class Visit {
  none,
  other_ranks,        ///< another number of ranks: refused
  other_ranks_fresh,  ///< the same, CAIRN_ON_MISMATCH=fresh: offered nothing; it writes nothing
  left_alone,         ///< SCR_DISTRIBUTE=0: offered nothing
};

/// A point in a run: so many calls after the first rank has begun a phase.
struct Moment {
  int phase = 0;
  std::uint64_t calls = 0;
};

struct RunPlan {
  Nodes nodes;
  bool restart = true;
  bool reject_restart = false;  ///< one rank cannot use what it gets
  bool finalize = true;
  bool purge = false;  ///< SCR_CACHE_PURGE=1
  Visit visit = Visit::none;
  std::optional<DatasetPlan> before_restart;
  std::vector<DatasetPlan> datasets;
  std::vector<NamedCall> named_calls;  ///< in order
  Crash crash = Crash::none;
  Moment crash_at;
  FaultPlan faults;
  std::vector<Moment> damages;
  bool full = false;  ///< the store of one node has no room for a while
  Moment full_from;
  std::uint64_t full_calls = 0;
  bool breaks_behind = false;  ///< the ranks lose each other behind the program
  Moment breaks_at;
  int computes_calls = 0;  ///< calls of SCR_Need_checkpoint after each dataset
  std::optional<FileChange> change;
};

/// Phases: 0 is Init, 1 restart, 2 + i dataset i; -2 - i the named call i.
inline constexpr int init_phase = 0;
inline constexpr int restart_phase = 1;
inline constexpr int first_dataset_phase = 2;
inline constexpr int first_named_phase = -2;

/// All that outlives a run.
struct World {
  const JobShape& shape;
  Cluster& cluster;
  Model& model;
  Scheduler& scheduler;
  Seam& seam;
  Faults& faults;
  Chance& chance;
  Trace& trace;
};

class Run {
 public:
  Run(World& world, const RunPlan& plan);

  /// Throws what breaks a property. True if the job came to its end, all calls made.
  bool carry_out();

  /// A bit flips in a file of the caches, or it loses its end, or is gone.
  static void damage_something(World& world);

  /// Was a visit refused?
  bool refused() const { return refused_; }

 private:
  friend class RankProgram;

  void enter_phase(int phase);
  /// By every rank; what is to be done at its begin and at its end is done once.
  void named_call_begins(std::size_t index);
  void named_call_returns(std::size_t index);
  void purge_returns();
  WhatIsLeft what_is_left_of(int key) const;
  void arm_all(int phase);
  void arm(const Moment& moment, int phase, std::function<void()> event);
  void crash();
  void end_all_within(int calls);
  void lose_power(const std::string& node);
  void fill_a_store();
  bool disturbed_since(std::uint64_t reading) const;
  /// (c): every rank comes to the same at the same step.
  void compare(const std::string& step, const std::string& verdict);
  /// What was read of the faults before the first rank began dataset `key`.
  std::uint64_t faults_before(int key) {
    return faults_before_.emplace(key, world_.faults.count()).first->second;
  }
  Status observe(const FileOperation& operation, bool may_fail);
  bool exists(const std::string& path) const;

  World& world_;
  const RunPlan& plan_;
  Postboxes boxes_;
  Postboxes behind_;                      ///< messages of the helpers
  std::deque<HelperBackground> helpers_;  ///< by rank; in place, others refer to them
  int phase_ = -1;
  std::size_t named_calls_begun_ = 0;
  std::size_t named_calls_returned_ = 0;
  std::vector<Model::Doomed> doomed_;  ///< by the named call, or the purge, that is under way
  bool refused_ = false;
  Verdicts verdicts_{world_.trace};
  int reading_ = 0;  ///< ranks between Start_restart and the last byte read
  int finished_ = 0;
  std::map<int, std::uint64_t> faults_before_;
};

}  // namespace cairn::sim
