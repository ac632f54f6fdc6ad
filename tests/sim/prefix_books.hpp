// What a job with a prefix directory was told of its datasets, and what it may expect for that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cairn::sim {

/// What the books have to know of a run.
struct RunFacts {
  bool is_async = false;         ///< what is complete may be in the caches only
  bool keeps_in_caches = false;  ///< all datasets, and the old one until the new one is complete
  std::string job_id;
  std::vector<std::string> placement;  ///< by rank
};

/// SCR_Current, SCR_Drop or SCR_Delete.
struct PrefixCall {
  enum class Kind { current, drop, remove };
  Kind kind = Kind::drop;
  int key = 0;     ///< of the dataset named; it need not be there
  int before = 0;  ///< this dataset of the run, or after the last; one call comes there
};

/// Datasets by their keys, which count from 1 in the order in which they are begun.
class PrefixBooks {
 public:
  /// `most_attempts`: after so many restarts that died a checkpoint is not offered any more;
  /// `window`: so many checkpoints are kept; 0: no bound. `interval`: of so many checkpoints, one
  /// after the other, one is copied.
  void set_bounds(int most_attempts, int window, int interval) {
    most_attempts_ = most_attempts;
    window_ = window;
    interval_ = interval;
  }

  // --- runs ---

  void begin_run(RunFacts run);
  void end_run();
  /// Those that a run bypassed to write, and is now told to purge, may be there or not.
  void purge_begins();
  void nodes_lost();
  /// While a run uses it: what is completed now may lack parts.
  void node_lost() {
    newest_cached_ = 0;
    run_.keeps_in_caches = false;
  }
  /// What the caches have of a dataset is damaged.
  void cache_damaged() { newest_cached_ = 0; }
  void power_fails();

  // --- datasets ---

  int count() const { return static_cast<int>(told_.size()); }
  void begin(int key, bool is_output);
  /// Complete has returned, and said that all is `well`; `sure` if nothing has failed either.
  /// `in_place`: the program waits while it is published.
  void completed(int key, bool well, bool sure, bool in_place);
  /// Finalize has, and nothing has failed.
  void finalized();
  /// It was found in the prefix directory, published or with all its parts done. True if that is
  /// news.
  bool found_whole(int key);
  /// It may be there or not, from here on.
  void doubt(int key);
  void damaged(int key);
  bool is_output(int key) const { return outputs_.contains(key); }
  bool is_completed(int key) const {
    const auto told = told_.find(key);
    return told != told_.end() && told->second != Told::begun;
  }

  // --- calls by name ---

  /// By the first rank that comes to it.
  void call_begins(const PrefixCall& call);
  /// On a rank, with success, and nothing has failed. `kept`: it had not left the window of the
  /// prefix directory before. `cached`: on some node there still is something of it.
  void call_returns(const PrefixCall& call, bool kept, bool cached);

  // --- restarts ---

  /// What is wrong with the offer of this dataset (0: none); empty if nothing is. Where something
  /// has failed, less is promised.
  std::string wrong_offer(int key, bool disturbed) const;
  /// The same where something has failed: what the run has `said` until now must tell why.
  std::string silent_offer(int key, const std::string& said) const;
  /// A rank calls Start_restart.
  void restart_begins(int key);
  /// All processes die in it, after it was counted.
  void restart_died(int key) { ++attempts_[key].surely; }
  /// A rank calls Complete_restart, and it has returned on the one that counts.
  void restart_ends(int key) { attempts_[key].surely = 0; }
  void restart_ended(int key) { attempts_[key].at_most = 0; }
  /// The run goes on from it; `sure` if nothing has failed until now, `asked` if it was to be
  /// copied when the run began.
  void goes_on_from(int key, bool sure, bool asked);

  // --- what is there after a run that ended well ---

  bool must_be_there(int key) const { return is_complete(key) && !may_be_pushed_out(key); }
  /// If it is not there, newer ones have pushed it out, and its files with it.
  bool is_complete(int key) const { return told_.at(key) == Told::complete; }
  bool must_not_be_there(int key) const { return gone_.contains(key); }
  /// It must have no files either.
  bool was_deleted(int key) const { return deleted_.contains(key) && !damaged_.contains(key); }
  bool is_as_written(int key) const { return !damaged_.contains(key); }

 private:
  enum class Told { begun, complete, unsure };
  struct Attempts {
    int surely = 0;
    int at_most = 0;
  };

  bool is_there_at_once(int key, bool in_place) const;
  bool may_be_held_back(int key) const;
  bool may_be_pushed_out(int key) const;
  int newest_expected() const;
  void expect_copied(int newest);
  void forget_current(int key);

  RunFacts run_;
  int most_attempts_ = 0;
  int window_ = 0;
  int interval_ = 1;
  std::map<int, Told> told_;
  std::set<int> outputs_;
  std::set<int> in_flight_;  ///< outputs that this run has to copy before it ends
  std::set<int>
      found_whole_;        ///< what is known of these comes from looking at the prefix directory
  std::set<int> doubted_;  ///< for what was done to them
  std::set<int> damaged_;  ///< of these
  std::set<int> purged_;   ///< or may be: what the caches have of them is not copied again
  std::set<int> gone_;     ///< dropped or deleted: not to be listed again
  std::set<int> deleted_;  ///< of these
  std::set<int> never_offered_;  ///< of these, those that no node has either
  std::map<int, Attempts> attempts_;
  std::set<int> begun_restarts_;  ///< in this run
  std::set<int> held_back_;       ///< at some time
  /// The checkpoint that this run has made last, or goes on from; nothing where that is not known.
  std::optional<int> last_;
  bool goes_on_ = false;       ///< this run, from a checkpoint
  std::map<int, int> before_;  ///< by checkpoint: that of the run before it, where it is known
  int copied_ = 0;             ///< it, or a newer one, is in the prefix directory
  int newest_cached_ =
      0;  ///< while nodes and ranks are as they are, it, or a newer one, is offered
  /// What a call of this run names, by where that comes; until the call has returned.
  std::map<int, bool> was_complete_;
  int current_ = 0;               ///< what SCR_Current has named, if nothing was begun since
  bool nodes_are_empty_ = false;  ///< when this run began
};

}  // namespace cairn::sim
