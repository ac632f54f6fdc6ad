// Protects a dataset while the program computes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/cached_datasets.hpp"
#include "session/work_behind.hpp"

namespace cairn {

/// How the reads of a dataset are spread where no core is idle. In times of one clock.
struct Spread {
  std::int64_t begin_us = 0;
  std::int64_t length_us = 0;  ///< all is to be read by then; 0: at once

  /// The deadline is half the time since the last dataset, and a minute at most: nothing is known
  /// before that. An eighth of it is left for what comes after the last read: the last parity, the
  /// commit, and the removal of older datasets.
  static Spread of(std::int64_t begin_us, std::optional<std::int64_t> last_made_us);
  /// After `done` of `all` bytes.
  bool is_late(std::int64_t now_us, std::uint64_t done, std::uint64_t all) const;
};

/// At most one dataset of a run is written and not protected yet.
/// Functions with a communicator are collective, and that is the program's own.
class LateProtection {
 public:
  /// Without `behind`, which may be null, all is protected at once. All must outlive this.
  LateProtection(ThisRun& run, CachedDatasets& cached, WorkBehind* behind)
      : run_(run), cached_(cached), behind_(behind) {}

  /// At Init: finds out whether it is possible in this run, and warns where it is asked for and is
  /// not.
  void prepare(Communicator& comm);
  /// Local, the same on all ranks: a dataset of this level need not be protected at once.
  bool is_for(const Level& level) const;
  /// What the written record of this rank says beside its files.
  Exposure exposure() const { return {run_.files.boot(), run_.clock.now_us()}; }

  /// Begins the job of a dataset that was written, and is in the list. All ranks do so. Once it is
  /// protected, the job also removes what that supersedes.
  void begin(const CachedDataset& dataset, const Level& level);
  /// Local. A dataset was made that is protected already.
  void note_made() { last_made_us_ = run_.clock.steady_us(); }
  /// A dataset is being protected, or how that has ended is not taken in yet.
  bool is_busy() const { return job_ != nullptr && !waits_for_room(); }
  /// At the last look of a call, on any rank: the job runs, so a next dataset would wait for it.
  /// Where it has ended badly, the call that begins the next one protects the dataset.
  bool is_running() const { return is_busy() && is_running_; }
  /// There was no room to protect it.
  bool waits_for_room() const;
  /// Then no_space, the same on all ranks.
  Status why_it_waits() const;
  /// Local, the same on all ranks: no_space if no dataset of this level may be written, because an
  /// older one is written and there is no room to protect it.
  Status refuse_another(const Level& level) const;
  /// The dataset that is not protected yet has this name.
  bool is_about(const std::string& name) const;
  /// A dataset of this name goes once the one that is written is protected.
  bool supersedes(const std::string& name) const;
  /// Local: all ranks have protected a dataset that was written, and the loss of nodes cannot take
  /// it any more. Never better than the truth.
  bool is_protected(const Uuid& dataset) const;
  /// Local: the job may have begun to remove it.
  bool may_have_removed(const Uuid& dataset) const;
  /// Until the jobs have ended: true; false at `end_us` of steady time.
  bool wait_until(Communicator& comm, std::int64_t end_us);

  /// What has become of a dataset.
  struct End {
    DatasetInfo dataset;
    Status protected_;  ///< agreed
    bool is_retry = false;
  };
  /// Takes in how the jobs have ended. Nothing while one of them runs; `waits` until they have. A
  /// dataset that cannot be protected behind, because ranks have lost each other there, is
  /// protected here, by the next call that waits. If there is no room for that, it stays written,
  /// and each call that waits tries again. One that cannot be protected for another reason is
  /// removed, but at the end of the run it stays, unless its files have changed, and can be copied
  /// to the prefix directory. The dataset is in the list as it is now.
  std::optional<End> take_in(Communicator& comm, bool waits, bool at_end = false);

 private:
  struct Job;

  Status can_go_behind() const;
  Status agree_to_go_behind(Communicator& comm) const;
  bool poll_until(Communicator& comm, std::int64_t end_us);
  void sleep_until_ended(std::int64_t until_us) const;
  std::int64_t running_here() const;
  std::array<std::int64_t, 2> ask_all(Communicator& comm, std::array<std::int64_t, 2> mine,
                                      std::chrono::milliseconds waited);
  std::array<std::int64_t, 2> look_at_jobs(Communicator& comm, bool waits);
  void log_life(Communicator& comm);
  void log_wait(std::int64_t from_us) const;
  std::vector<Removal> superseded_by(const CachedDataset& written) const;
  void note_broken(Communicator& comm);
  void forget_removed();
  Status protect_here(Communicator& comm);
  bool has_any_committed(Communicator& comm) const;
  void drop_try();
  void settle(Communicator& comm, const Status& done, bool at_end);
  void settle_without_sets(Communicator& comm, CachedDataset& dataset, const Error& why);
  void make_room(Communicator& comm, CachedDataset& dataset, Error why, bool stays);
  void log_exposure(Communicator& comm);

  ThisRun& run_;
  CachedDatasets& cached_;
  WorkBehind* behind_;
  bool has_logged_exposure_ = false;
  std::optional<std::int64_t> last_made_us_;  ///< of a dataset
  std::shared_ptr<Job> job_;                  ///< shared with the thread
  bool is_running_ = false;                   ///< on any rank, when a call looked last
};

}  // namespace cairn
