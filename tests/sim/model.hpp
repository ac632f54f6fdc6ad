// What must survive, by a bookkeeping of its own.
//
// The model knows what was committed, where it was when it was last known to be whole, and what has
// happened to those places since. It says of a dataset that it must be offered only where the
// promise made to users says so: "any `tolerates` failure groups of those it was protected over may
// lose their storage, or be away, or have damaged files", and beyond that any ranks that leave
// every set what its scheme needs: of PARTNER each rank or one of its copies, of the others all
// members but so many. Whether ranks that have moved got new sets the model does not know: then all
// sets that may be in force must hold. What may survive beyond that (two damaged blocks that happen
// to lie in different stripes) is allowed and not demanded; what is offered must have been
// committed in any case, and its bytes are compared.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "records/dataset_state.hpp"
#include "seam.hpp"
#include "session/session.hpp"
#include "shape.hpp"
#include "topology/sets.hpp"

namespace cairn::sim {

/// Of a dataset that was to be taken away.
struct WhatIsLeft {
  bool here = false;         ///< anything, on the nodes of the run
  bool record_here = false;  ///< a record even
  bool elsewhere = false;    ///< anything, on other nodes
};

class Model {
 public:
  explicit Model(const JobShape& shape) : shape_(shape) {}

  // --- a run ---

  void begin_run(const Nodes& placement);
  /// A run on these nodes that must leave all as it is.
  void begin_visit(const Nodes& placement);
  /// Init has returned success on a rank: all datasets that must survive have been restored.
  void init_done(bool disturbed);
  void end_run();
  bool in_init() const { return in_init_; }

  // --- writing ---

  void begin(int key, std::uint32_t flags);
  /// The folder that dataset `key` has in the caches, and the store it is in.
  void place(int key, const std::string& folder, const std::string& store);
  void start_failed() { give_up_outputs(true); }
  void complete_begins(int key);
  void complete_returns(int key, bool success, bool disturbed);

  // --- what is seen of the files ---

  /// A rename to "record", or the removal of one that is there, by a rank; `folder` is the
  /// dataset's.
  void record_renamed(const std::string& folder, int rank);
  void record_removed(const std::string& folder, bool disturbed);

  // --- what is protected behind the program ---

  /// From now on it may be protected at once again: the ranks cannot reach each other behind it.
  void behind_breaks() { is_behind_broken_ = true; }
  /// It is protected: any rank says so.
  void protection_ended(int key);
  /// A call has returned that waits for it, and this is what it survives now. Violation where it is
  /// gone, or not protected, unless a fault excuses that.
  void protection_awaited(int key, Safety safety, bool disturbed);
  bool is_exposed(int key) const { return datasets_.at(key).exposed; }
  /// The program changes a file of it. It need not be offered any more, but never with that change.
  void program_changes(int key);

  // --- restart ---

  /// What is offered (0 for nothing), of what is older than `below`. Violation unless it may be.
  void offered(int key, int below, bool disturbed) const;
  void restarted(int key, bool disturbed);
  bool restarted_in_run() const { return restarted_; }
  /// The application has rejected it, or it could not be opened.
  void rejected(int key);
  /// It was offered, and nothing that was done to it excuses a refusal.
  bool must_open(int key) const;

  /// Is there something in the caches that a visit must find?
  bool must_find_something() const;

  // --- what is taken away on purpose ---

  struct Doomed {
    int key;
    bool surely;  ///< the run knows it, so it must go
  };
  /// The first rank comes to a call that removes datasets: none of them is promised from here on.
  std::vector<Doomed> remove_begins(int key);
  std::vector<Doomed> current_begins(int key);
  std::vector<Doomed> purge_begins();
  /// It has returned success on a rank. `waits`: not before all is gone, and durably so.
  void taken_away(const Doomed& doomed, const WhatIsLeft& left, bool waits, bool disturbed);
  int count_removed() const;
  const std::string& folder_of(int key) const { return datasets_.at(key).folder; }

  // --- what happens to storage ---

  /// All of `mount` on a node is gone.
  void lost(const std::string& node, const std::string& mount);
  /// What was not synced is gone.
  void unsynced_dropped();
  /// A file of this dataset and rank on that node (empty: in the shared store). False if nobody may
  /// damage it: what is not committed is not protected yet.
  bool may_damage(const std::string& folder) const;
  void damaged(const std::string& folder, int rank, const std::string& node);

  /// The key of a dataset's folder; 0 if it is none that was ever committed.
  int committed_key(const std::string& folder) const;
  /// The same by the last part of the folder's path.
  int key_of(const std::string& name) const;
  /// What is whole when all nodes there are give what they have. Violation if something is not.
  void rebuilt_offline(const std::set<int>& whole) const;
  /// The states that were derived from what all nodes have, by key. `ranks_in`: of which ranks
  /// there is anything in a dataset's folder. Violation if one is lost that must survive, or one is
  /// protected of which too many ranks have lost all that they had.
  void derived_offline(const std::map<int, CacheState>& derived,
                       const std::function<std::set<int>(const std::string&)>& ranks_in) const;
  const std::string& store_of(int key) const { return datasets_.at(key).store; }
  int count_of_store(const std::string& mount) const;
  bool is_output(int key) const { return has(datasets_.at(key), flag_output); }

 private:
  enum class State {
    begun,       ///< no rank has come to Complete
    completing,  ///< some has, none has returned
    committed,   ///< Complete returned success
    maybe,       ///< the run ended after a record was committed
    never,       ///< no record was committed: must not be seen again
    withdrawn,   ///< Complete failed after a record was committed, or the application rejected it
    removed,     ///< on purpose, wherever it was: must not be seen again
  };

  struct Damage {
    std::string node;
    int rank;
    int run;
  };

  struct Dataset {
    State state = State::begun;
    std::uint32_t flags = 0;
    std::string folder;
    std::string store;
    bool commit_begun = false;
    bool promised = false;  ///< must be offered unless lost
    bool waits = false;     ///< promised, but not to this run: for nodes that are away
    Nodes home;             ///< where every rank's part is
    int tolerates = 0;      ///< failure groups of `home`
    std::set<std::vector<RedundancySet>> divisions;  ///< the sets, as they may be by now
    /// In which a rank has ever committed it, also where the model cannot know that all did.
    std::set<std::vector<RedundancySet>> committed_divisions;
    std::set<int> wiped;  ///< ranks whose part has gone with its storage
    std::vector<Damage> damages;
    /// Written, and not known to be protected: the death of processes is all that it survives.
    bool exposed = false;
    int run = 0;                 ///< in which it was completed
    std::map<int, int> commits;  ///< by rank: how many records it has committed
    int superseded_by = 0;       ///< may have been removed if that dataset was committed
    bool may_return = false;
  };

  static bool has(const Dataset& dataset, std::uint32_t flag) {
    return (dataset.flags & flag) != 0;
  }
  /// COUNT is of these.
  static bool is_counted(const Dataset& dataset) {
    return has(dataset, flag_checkpoint) && !has(dataset, flag_output);
  }
  bool may_be_superseded(int key) const;
  bool is_protected_late(const Dataset& dataset) const;
  void protection_failed(int key, bool disturbed);
  void give_up_exposed(Dataset& dataset, bool disturbed);
  void supersede(const Dataset& by);
  std::vector<int> superseded_by(const Dataset& dataset) const;
  void may_evict(const StoreSettings& store);
  void may_supersede(int key);
  void forget_superseded(int key);
  void check_eviction(const Dataset& evicted, bool disturbed);
  bool shared(const Dataset& dataset) const { return dataset.store == shared_mount; }
  const CheckpointSettings& level_of(const Dataset& dataset) const;
  std::uint64_t group_of(const Dataset& dataset, const std::string& node) const;
  std::vector<RedundancySet> sets_over(const Dataset& dataset, const Nodes& placement) const;
  int strength(const Dataset& dataset, const Nodes& placement) const;
  void protect_over(Dataset& dataset, const Nodes& placement) const;
  bool holds(const Dataset& dataset, const RedundancySet& set, const std::set<int>& failed) const;
  bool every_set_holds(const Dataset& dataset, const std::set<int>& failed) const;
  /// Where the nodes of `present` are there.
  bool survives(const Dataset& dataset, const std::set<std::string>& present) const;
  bool survives(const Dataset& dataset) const { return survives(dataset, present_); }
  /// Only the ranks of `there` have anything of it, and its sets do not bring back the others.
  bool is_surely_lost(int key, const std::set<int>& there) const;
  bool is_beyond_repair(int key, const RedundancySet& set, const std::set<int>& gone) const;
  bool must_come_back(const Dataset& dataset, const std::set<std::string>& present) const;
  bool must_be_left(const Dataset& dataset, const std::function<bool(int)>& is_whole) const;
  bool may_be_offered(const Dataset& dataset) const;
  bool known_to_run(int key) const;
  bool waits_here(const Dataset& dataset) const;
  Doomed doom(int key, bool surely);
  static void wipe(Dataset& dataset, const std::string& node, const std::string& mount);
  void moved(Dataset& dataset);
  void give_up_outputs(bool disturbed);
  void settle_at(Dataset& dataset, const Nodes& home);
  std::vector<Dataset*> beyond_count(const std::string& store, int keep);
  Dataset* by_folder(const std::string& folder);
  const Dataset* by_folder(const std::string& folder) const;

  const JobShape& shape_;
  std::map<int, Dataset> datasets_;
  Nodes placement_;
  std::set<std::string> present_;                              ///< nodes of this run
  std::set<std::pair<std::string, std::string>> lost_in_run_;  ///< node and mount
  int run_ = 0;
  bool in_init_ = false;
  bool restarted_ = false;
  bool is_behind_broken_ = false;
  int damages_since_init_ = 0;
};

}  // namespace cairn::sim
