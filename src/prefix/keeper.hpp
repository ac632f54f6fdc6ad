// Changes which datasets a prefix directory has, and their records. Only one process does this, of
// the job or command that owns the directory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "files/clock.hpp"
#include "files/files.hpp"
#include "prefix/contents.hpp"
#include "prefix/epoch_folder.hpp"

namespace cairn {

/// How often an owner gives a sign of life.
inline constexpr std::int64_t beat_period_us = 5'000'000;
/// An owner that gives no sign of life for so long counts as dead.
inline constexpr std::int64_t silence_us = 4 * beat_period_us;

/// True if `owner` is, or may be, another job than that of `me`, and has not resigned. It may be
/// dead: only its next sign of life proves that it lives. Jobs without an id are distinguished by
/// their hosts; the lock of the job separates two on one host.
bool is_rival(const OwnerRecord& owner, const OwnerRecord& me);

enum class Claim {
  polite,  ///< another job that lives keeps the directory
  again,   ///< polite, by a run that lost its epoch: a later run of its job keeps it too
  forced,  ///< the user says that the owner is dead
};

/// Local. Fails with busy if another job than that of `me` owns the prefix directory and lives. If
/// this is not clear at once, waits for a sign of life, for at most silence_us. The clocks of nodes
/// need not agree.
Status wait_for_rivals(Files& files, Clock& clock, const PrefixFolder& folder,
                       const OwnerRecord& me, Claim claim);

/// How a new owner reads what is there.
struct Reading {
  const IoThreads* io = nullptr;  ///< threads that read, if there are many records
  /// Ignore the listing, read the records, and remove a damaged `current`.
  bool anew = false;
};

/// What an owner knows of the prefix directory.
struct KnownContents {
  Listing listing;
  std::string named;           ///< by the file `current`; it may be gone
  std::string current_damage;  ///< what was wrong with that file, and the consequence
  /// Counts the restarts from checkpoints that only the caches have. Some may be quarantined.
  Listing attempts;
  /// Datasets that were deleted, and that the caches of their jobs may still have: the next run of
  /// the job deletes them there.
  Listing deleted;
  std::string deleted_damage;        ///< what is wrong with the file `deleted`, and the consequence
  std::vector<std::string> damaged;  ///< a message for each damaged record
  std::vector<UnreadDataset> unread;  ///< at the last try, for a transient reason
  bool is_durable = true;             ///< no power failure can undo the last publication

  std::string current() const { return current_in(listing, named); }
  /// Every dataset there is in the listing.
  bool has_all() const;
  bool has_newer_than(const Uuid& uuid) const {
    return !listing.empty() && listing.front().info.uuid > uuid;
  }
};

/// Local. The rights of one epoch. Every change is a rename out of the epoch's directory. So once a
/// later owner has closed the epoch, this keeper can change nothing: its calls fail with busy.
class Keeper {
 public:
  /// Becomes the owner with the next epoch, if wait_for_rivals() allows it. Makes `<prefix>/.cairn`
  /// if it is missing. `me` needs no epoch.
  static Result<Keeper> take_over(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me,
                                  Claim claim = Claim::polite, const Reading& reading = {});

  /// Fails with busy if a later owner has closed this epoch, or with the error of `is_itself`.
  Status check_rights(const IsItself& is_itself) const {
    return cairn::check_rights(*files_, folder_, me_, is_itself);
  }
  const KnownContents& known() const { return known_; }
  /// Tries those once more that could not be read. True if one could be read.
  bool read_again();
  /// There may be such a dataset: no listing may go without it.
  void note_unread(const DatasetInfo& dataset, std::string why) {
    known_.unread.push_back({folder_.dataset(dataset), dataset.uuid, std::move(why), true});
  }

  // Publication (publication.hpp) drives these.

  /// For steps on the directory of a dataset that is not published yet.
  EpochFolder epoch_folder() const { return {*files_, folder_, me_.epoch}; }
  /// EpochFolder::begin(). Fails with io if the dataset exists but its record cannot be read; if
  /// another one that cannot be read may have the same file names; or if files of an older dataset
  /// still have staged names.
  Status begin(const DatasetInfo& dataset);
  /// EpochFolder::publish(). Replaces the same dataset if it exists there with damaged files. After
  /// an error the dataset may be listed all the same: then call this again.
  Status publish(const DatasetRecord& record, EpochFolder::Seen seen);

  Status update(const DatasetRecord& record);
  /// All its files have their own names now. The newest checkpoint becomes current: that comes
  /// first, so that after a crash between the two steps the next owner calls this again.
  Status mark_settled(const Uuid& dataset);
  /// Empty: none.
  Status set_current(const std::string& name);
  Status set_attempts(Listing attempts);
  Status set_deleted(Listing deleted);
  /// Begins a deletion: takes a listed or dropped dataset out of the index. Its files are still
  /// there: remove_files() comes next. Deletions outside the index: README.md.
  Status take_out(const DatasetInfo& dataset);
  /// take_out(). If the dataset was imported from SCR, whose records stay, this also keeps later
  /// runs from importing it again.
  Status take_out_for_good(const DatasetRecord& record);
  /// Takes the dataset out of the index, and keeps its files, record and manifests.
  Status drop(const DatasetInfo& dataset);
  /// Records a deleted dataset as dropped, so that no run copies it again from a cache, or imports
  /// it again.
  Status note_purged(const DatasetRecord& record);
  /// Puts a dropped dataset back into the index. The caller has checked its files.
  Status put_back(const DatasetRecord& record);

  /// What an earlier owner began and did not finish.
  struct UnfinishedWork {
    enum class Kind {
      deleted,    ///< taken out: its files are still to be removed
      unsettled,  ///< published: its files still need their own names
      staged,     ///< not published: remove its staged files, unless the plan can be continued
    };
    std::string folder;
    Kind kind{};
    std::vector<std::uint64_t> manifests;  ///< those that exist, ascending
    std::optional<DatasetRecord> plan;     ///< unsettled, or staged with a plan to be continued
    Listing newer;  ///< staged: do not continue if one of these has a file of the same name
    /// deleted, and staged with any plan.
    std::string label;
    Uuid uuid;             ///< deleted; zero if its record is damaged
    std::string given_up;  ///< why the plan must not be continued
    std::string unknown;   ///< why this cannot be decided now: leave it alone
  };
  /// In the order in which to treat them: if files of several datasets have one name, the file of
  /// the newest dataset must come last.
  Result<std::vector<UnfinishedWork>> unfinished_work();
  /// Removes the directories of earlier epochs, except `kept`. Call it when nothing else in them is
  /// needed. Datasets that were being dropped or put back there become dropped.
  Status remove_closed(const std::vector<std::string>& kept = {});

  /// Call it after changes: writes the listing, which the first change has removed. Does nothing
  /// if the listing is up to date.
  Status save_listing();
  /// Returns a function that gives a sign of life. Another thread may call it, even after the
  /// destruction of this. It ignores errors: the next change would fail for the same reason.
  std::function<void()> heartbeat() const;
  /// The last call: other jobs need not wait for this owner any more.
  Status resign();

 private:
  Keeper(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me);

  Result<bool> open_epoch();
  Status become_owner();
  Status close_earlier();
  Status open_listing();
  Status read_datasets(const Reading& reading);
  UnfinishedWork deleted_in(const std::string& folder) const;
  void look_at_plan(UnfinishedWork& work, std::uint64_t epoch) const;
  Status refuse_beside_unsettled(const DatasetInfo& dataset) const;
  void take_in(const DatasetRecord& record);
  Status make_durable();
  Status move_to_dropped(const std::string& from);
  Status forget(const DatasetInfo& dataset);
  Status forget_current();
  Status under_epoch(Status status);
  /// Writes a file durably and atomically, under the rights of the epoch.
  Status place(const std::string& path, Bytes content);
  /// The same, but a power failure may undo it until the directory is synced.
  Status place_unsynced(const std::string& path, Bytes content);
  DatasetRecord* find(const Uuid& uuid);
  Status refuse_unknown(const DatasetInfo& dataset);

  Files* files_;
  Clock* clock_;
  PrefixFolder folder_;
  OwnerRecord me_;
  bool listing_opened_ = false;  ///< removed, because a change has begun
  bool listing_good_ = false;    ///< the file is up to date
  KnownContents known_;
};

}  // namespace cairn
