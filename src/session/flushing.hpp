// When the datasets that are due in the prefix directory are copied there.
#pragma once

#include <limits>

#include "session/async_flushing.hpp"
#include "session/bounded_work.hpp"
#include "session/due_datasets.hpp"
#include "session/known_copies.hpp"

namespace cairn {

/// All functions are collective, but for those without a communicator.
class Flushing {
 public:
  /// All must outlive this.
  Flushing(ThisRun& run, CachedDatasets& cached, PrefixSide& prefix)
      : run_(run),
        cached_(cached),
        prefix_(prefix),
        due_(run, cached, prefix),
        copies_(run, cached),
        async_(run, cached, prefix) {}

  /// What has become known of the prefix directory: which datasets it has, which are deleted there
  /// and go from the caches too, and whether one is overdue there.
  void learn_from_prefix(Communicator& comm);
  /// Before the program's thread uses the prefix directory, in any call but Init, as it may hang.
  /// Where datasets are copied without the program, a thread looks there first, and is waited for
  /// 5 s; if a call before has waited for it in vain, not at all until it answers. Errors are
  /// agreed.
  Status wait_for_answer(Communicator& comm);
  /// Before a dataset, where the directory was away at Init: what comes next is to be newer than
  /// all that is there.
  void look_for_absent_prefix(Communicator& comm);
  /// The prefix directory is this run's. What it has may only be known from then on. Errors are
  /// agreed.
  Status claim(Communicator& comm);

  /// Copies it, unless it is there. A block that does not match its checksum any more is repaired
  /// first. Errors are agreed, and told.
  Status flush(Communicator& comm, CachedDataset& dataset);
  /// As that, for one that another number of ranks has written; errors are not told.
  Status flush_others(Communicator& comm, CachedDataset& dataset);

  /// At Init: what an earlier run did not get out, and what is to be safe before it is computed on.
  void flush_at_init(Communicator& comm);
  struct Flushed {
    Status status;
    bool is_left = false;  ///< some of it, for another call
  };
  /// After a dataset was written. not_copied if it was due, or one before it, and is in the cache
  /// only; what is lost is noted in the run's losses. Unless it `may_wait`, it waits for no copies
  /// and makes none itself: what would need that is left to another call of it.
  Flushed flush_after(Communicator& comm, const CachedDataset& written, bool may_wait);
  /// flush_after() of it waits until it is in the prefix directory.
  bool copies_at_once(const DatasetInfo& dataset) const;
  /// When the run ends. An error if what had to be copied could not be; with
  /// CAIRN_FLUSH_AT_END=leave that is left to others. It waits no longer than `longest_us` of rank
  /// 0, negative for no limit.
  Status flush_at_end(Communicator& comm, std::int64_t longest_us);

  /// Before the prefix directory is used for anything but what goes on without the program: until
  /// nothing is under way. An error if that gets nowhere; then nothing is under way either, unless
  /// the directory hangs or the time is over.
  Status wait_for_copies(Communicator& comm);
  /// The copies that go on without the program.
  AsyncFlushing& async() { return async_; }
  /// After flush_at_end(): a thread waits for an answer of the prefix directory.
  bool hangs() const { return !async_.is_idle() || last_look_.goes_on() || async_.awaits_answer(); }

  /// Takes in what has become of the copies, and repairs what is damaged. The error of the first.
  Status take_news(Communicator& comm);
  const DueDatasets& due() const { return due_; }
  /// Tries again what is due. not_copied if this dataset is neither there then nor under way. False
  /// if the time is over before other copies make room.
  Result<bool> copy_due(Communicator& comm, const Uuid& dataset);
  /// As AsyncFlushing::wait_until_published(); not_copied if that gets nowhere.
  Result<bool> wait_until_published(Communicator& comm, const DatasetInfo& dataset);
  /// This dataset is in the cache only, because of `why`; or that, where it is not there either.
  tl::unexpected<Error> not_copied(const Uuid& dataset, const Status& why);
  KnownCopies& copies() { return copies_; }

 private:
  bool is_async(const DatasetInfo& dataset) const;
  bool goes_on_alone(const DatasetInfo& dataset) const;
  Status copy(Communicator& comm, CachedDataset& dataset);
  Status copy_in_turn(Communicator& comm, CachedDataset& dataset, Status& before);
  Status begin_copy(Communicator& comm, CachedDataset& dataset);
  Status be_ready_for_copies(Communicator& comm);
  Status take_news_of_copies(Communicator& comm);
  void begin_anew();
  bool comes_late(const CachedDataset& dataset) const;
  Status look_up(Communicator& comm);
  void tell_not_copied(CachedDataset& dataset, Error& why);
  void remove_deleted(Communicator& comm);
  void note_unrestored(Communicator& comm);
  bool makes_copies_itself();
  Status flush_due(Communicator& comm, const Uuid& written, bool all = false);
  void flush_datasets_of_others(Communicator& comm);
  void begin_due(Communicator& comm);
  Status leave_copies(Communicator& comm);
  Status check_time(Communicator& comm) const;
  std::optional<bool> has_news(Communicator& comm);
  bool is_news(const Error& trouble);
  void look_for_what_has_gone(Communicator& comm);
  Status check_copied(const std::vector<Uuid>& due) const;

  /// Why nothing can be copied, until something is.
  struct Trouble {
    ChangeFilter logged;
    Status last;
  };

  static constexpr const char* missing = "it does not exist";

  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  DueDatasets due_;
  bool is_last_ = false;      ///< nothing is tried again in this run
  std::int64_t end_us_ = -1;  ///< of steady time: no copy begins later; negative: no limit
  /// Of steady time: what the program copies itself stops then.
  std::int64_t stops_us_ = std::numeric_limits<std::int64_t>::max();
  bool is_ready_ = false;  ///< copies may begin that go on without the program
  bool is_in_init_ = true;
  bool was_missing_ = false;  ///< the prefix directory: one that is made now may be a mount point
  Trouble trouble_;
  KnownCopies copies_;
  AsyncFlushing async_;
  BoundedWork last_look_;  ///< at the prefix directory
};

}  // namespace cairn
