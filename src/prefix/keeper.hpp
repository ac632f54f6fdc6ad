// Changes what is in the prefix directory: one process of the job that owns it does, and nobody
// else.
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
/// How long it is silent before it is held for dead.
inline constexpr std::int64_t silence_us = 4 * beat_period_us;

/// True where `owner` is, or may be, another job than that of `me`, and has not ended: whether it
/// lives, its next sign of life will tell. Those that nobody has given an id are told apart by
/// their hosts; two on one host are kept apart by the lock of the job there.
bool is_rival(const OwnerRecord& owner, const OwnerRecord& me);

enum class Claim {
  polite,  ///< another job that lives keeps the directory
  again,   ///< as polite, by a run whose epoch has been closed; a later run of its job keeps it too
  forced,  ///< whoever has it is known to be dead
};

/// Local. busy if another job than that of `me` owns the prefix directory and lives. If that cannot
/// be known at once, watches for signs of life, for silence_us at most; clocks of nodes need not
/// agree.
Status wait_for_rivals(Files& files, Clock& clock, const PrefixFolder& folder,
                       const OwnerRecord& me, Claim claim);

/// How a new owner gets to know what is there.
struct Reading {
  const IoThreads* io = nullptr;  ///< by these, if there are many records
  /// From the records, whatever the listing says; and a damaged name of the current one is removed.
  bool anew = false;
};

/// Local. The rights of one epoch. Every change is a rename out of the epoch's folder, so a keeper
/// whose epoch has been closed by a later one can change nothing: its calls fail with busy.
class Keeper {
 public:
  /// Becomes the owner, after the last one, if wait_for_rivals() allows it. Makes
  /// `<prefix>/.cairn` if need be. `me` lacks the epoch.
  static Result<Keeper> take_over(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me,
                                  Claim claim = Claim::polite, const Reading& reading = {});

  std::uint64_t epoch() const { return me_.epoch; }
  /// A later owner has ended the rights of this one.
  bool is_closed() const;
  const Listing& listing() const { return listing_; }
  /// False where a power failure may take away the dataset that was published last.
  bool is_durable() const { return is_durable_; }
  std::string current() const { return current_in(listing_, current_); }
  /// What was wrong with the file that names it, and what follows; empty if nothing.
  const std::string& current_damage() const { return current_damage_; }
  bool has_newer_than(const Uuid& uuid) const {
    return !listing_.empty() && listing_.front().info.uuid > uuid;
  }
  /// Of checkpoints that only the caches have: how often a restart was begun from them.
  const Listing& attempts() const { return attempts_; }
  /// What a command has deleted of the jobs that are named in the records, and which their caches
  /// may still have.
  const Listing& deleted() const { return deleted_; }
  /// What is wrong with the list of these, and what follows; empty if nothing.
  const std::string& deleted_damage() const { return deleted_damage_; }
  /// Records that nobody can read.
  const std::vector<std::string>& damaged() const { return damaged_; }
  /// Those that could not be read when that was last tried, for a reason that may pass.
  const std::vector<UnreadDataset>& unread() const { return unread_; }
  /// Tries these once more. True if one is known now.
  bool read_again();

  // Publication (publication.hpp) drives these.

  /// What this epoch may do to the folder of a dataset that is not published yet.
  EpochFolder epoch_folder() const { return {*files_, folder_, me_.epoch}; }
  /// EpochFolder::begin(). io if the dataset is there and its record cannot be read, or another's
  /// that cannot be read leaves it unknown whether its files may have their names, or those of an
  /// older one have not got theirs yet.
  Status begin(const DatasetInfo& dataset);
  /// EpochFolder::publish(), also in place of the dataset itself, whose files there have been
  /// damaged. It is listed where it is there after an error, and is to be published once more.
  Status publish(const DatasetRecord& record, EpochFolder::Seen seen);

  Status update(const DatasetRecord& record);
  /// Its files have their own names now. If it is the newest checkpoint it becomes current, and
  /// that first, so that whoever ends what a crash has left half done comes by here again.
  Status mark_settled(const Uuid& dataset);
  /// Empty: none.
  Status set_current(const std::string& name);
  Status set_attempts(Listing attempts);
  Status set_deleted(Listing deleted);
  /// The dataset is not there from here on, and its files are to go: see remove_files(). Whether it
  /// was dropped before makes no difference.
  Status take_out(const DatasetInfo& dataset);
  /// As take_out(); SCR's records of what was imported from them stay, and no run is to import it
  /// again.
  Status take_out_for_good(const DatasetRecord& record);
  /// The dataset is not there from here on; its files, record and manifests are kept.
  Status drop(const DatasetInfo& dataset);
  /// One whose files are gone counts as dropped from here on, so that a cache that still has it
  /// does not bring it back.
  Status note_purged(const DatasetRecord& record);
  /// A dropped one is there again. What its files are now is the caller's to know.
  Status put_back(const DatasetRecord& record);

  /// What earlier owners have left half done.
  struct Remains {
    enum class Kind {
      deleted,    ///< taken out: its files are to go
      unsettled,  ///< published: its files are to get their own names
      staged,     ///< not published: its staged files are to go, unless the plan can be carried on
    };
    std::string folder;
    Kind kind{};
    std::vector<std::uint64_t> manifests;  ///< that are there, ascending
    std::optional<DatasetRecord> plan;     ///< of an unsettled one; of a staged one that may be
    Listing newer;  ///< carried on, unless it has files of the same names as one of these
    /// Of a deleted one, and of a staged one that has a plan, whatever it is worth.
    std::string label;
    Uuid uuid;             ///< of a deleted one; zero, as of the oldest, if its record is damaged
    std::string given_up;  ///< why that may not be carried on
    std::string unknown;   ///< why that cannot be known now: it is to be left alone
  };
  /// In the order in which they are to be treated: where files of several datasets have one name,
  /// that of the newest must come last.
  Result<std::vector<Remains>> remains();
  /// The folders of earlier epochs, but for what is to be `kept` of them; once nothing else in them
  /// is needed any more. What was being dropped or put back in them is dropped.
  Status remove_closed(const std::vector<std::string>& kept = {});

  /// After changes: writes the listing, which the first change has removed. Costs nothing where it
  /// says what is there already.
  Status save_listing();
  /// Gives a sign of life; may be called by another thread, and after this is gone. A sign that
  /// cannot be given is not told: the next change will fail for the same reason.
  std::function<void()> heartbeat() const;
  /// The last one: nobody needs to wait for this owner any more.
  Status resign();

 private:
  Keeper(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me);

  Result<bool> open_epoch();
  Status become_owner();
  Status close_earlier();
  Status open_listing();
  Status read_datasets(const Reading& reading);
  Remains deleted_in(const std::string& folder) const;
  void look_at_plan(Remains& remains, std::uint64_t epoch) const;
  Status refuse_beside_unsettled(const DatasetInfo& dataset) const;
  void take_in(const DatasetRecord& record);
  Status make_durable();
  Status move_to_dropped(const std::string& from);
  Status forget(const DatasetInfo& dataset);
  Status forget_current();
  Status under_epoch(Status status) const;
  /// Writes a file, durable, in one step and under the rights of the epoch.
  Status place(const std::string& path, Bytes content);
  /// The same, but a power failure may take it back until the directory is synced.
  Status place_unsynced(const std::string& path, Bytes content);
  DatasetRecord* find(const Uuid& uuid);
  Status refuse_unknown(const DatasetInfo& dataset);

  Files* files_;
  Clock* clock_;
  PrefixFolder folder_;
  OwnerRecord me_;
  bool listing_opened_ = false;  ///< removed, since what it says is being changed
  bool listing_good_ = false;    ///< it says what is there
  bool is_durable_ = true;       ///< which datasets are there; else that rename is not synced yet
  Listing listing_;
  std::string current_;
  std::string current_damage_;
  Listing attempts_;
  Listing deleted_;
  std::string deleted_damage_;
  std::vector<std::string> damaged_;
  std::vector<UnreadDataset> unread_;
};

}  // namespace cairn
