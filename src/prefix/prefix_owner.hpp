// A run's hold on its prefix directory: how it comes to own it, learns what is there, ends what
// earlier runs have left half done, and gives it up.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/background.hpp"
#include "prefix/attempt_book.hpp"
#include "prefix/event_log.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/replaced_marks.hpp"
#include "prefix/scr_imports.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// The highest of all datasets there, those of SCR and those whose records cannot be read included.
struct HighestNumbers {
  std::uint64_t number = 0;
  std::uint64_t checkpoint = 0;
  std::int64_t time_us = 0;  ///< when the newest was begun
};

/// Rank 0 keeps the books; nothing is made in the prefix directory before there is something to put
/// into it.
class PrefixOwner {
 public:
  /// What this rank has in its caches now, whoever wrote it.
  using CachedParts = std::function<std::vector<CachedPart>()>;

  /// All that is passed by reference must outlive the owner.
  struct Environment {
    Files& files;
    Clock& clock;
    Background& background;
    const Settings& settings;
    Log log;  ///< silent but on rank 0
    EventLog& events;
    AttemptBook& book;
    ReplacedMarks& marks;
    ScrImports& scr;
    CachedParts cached;
  };

  explicit PrefixOwner(const Environment& environment);

  // Collective.

  /// At Init, before all else: whether the directory exists. If it does not, that is told.
  void look_for_directory(Communicator& comm);
  /// At Init: where an earlier run has left something, takes over and ends what was half done, with
  /// the parts that this rank has in its caches. busy if another job lives there. A prefix
  /// directory that cannot be used now is told, and is no error: the caches are there. But it is
  /// one where it is to be purged.
  Status open(Communicator& comm, int ranks_on_node);
  /// Where it was not there, or could not be used, when it was last asked for: once more; where it
  /// was, what could not be read of it. True if there is news: it is this run's now, or is known
  /// not to be there, else trouble() tells why not; or more is known of it.
  bool open_again(Communicator& comm);
  /// It is this run's: else it is made so, unless another job lives there: busy. Errors are agreed.
  Status own(Communicator& comm);
  /// For a dataset that is about to be written there: it is this run's, and no file of an older
  /// dataset will still be given its name. Errors are agreed.
  Status claim(Communicator& comm);
  /// What was this run's, or would have been, is to be so; and what could not be read may be read
  /// now. Errors are agreed.
  Status look_again(Communicator& comm);
  /// Files that still have their staged names get their own. Errors are agreed.
  Status settle_older(Communicator& comm);
  /// True if the directory may have changed since take_news(): another job has owned it, or owns it
  /// now.
  bool has_news(Communicator& comm);
  /// After changes of what is there: highest() and first() are known on all ranks.
  void announce(Communicator& comm);

  // Local.

  /// At Finalize: another job may come.
  void close();
  /// The directory has come to be this run's, or more is known of it, since this was last asked.
  bool take_news() { return std::exchange(has_news_, false); }
  /// There is something that take_news() is to tell.
  void note_news() { has_news_ = true; }
  /// The directory did not exist at Init, and nothing could be copied there since.
  bool is_missing() const { return is_missing_; }
  bool is_owned() const { return owned_; }
  /// Why it could not be looked into; empty if it could.
  const std::string& trouble() const { return trouble_; }
  const Site& site() const { return site_; }
  /// On rank 0, where it is owned; else null.
  Keeper* keeper() { return keeper_ ? &*keeper_ : nullptr; }
  HighestNumbers& highest() { return highest_; }
  /// What a restart would try first there; nothing if there is none.
  const std::optional<DatasetRecord>& first() const { return first_; }

 private:
  Status own_if_there(Communicator& comm);
  void introduce_myself();
  Status take_keeper();
  void begin_keeping();
  void let_go_if_closed(Communicator& comm);
  Status tidy_up(Communicator& comm, const std::vector<CachedPart>* cached);
  bool read_again(Communicator& comm);
  void announce_highest(Communicator& comm);
  bool is_unsettled(Communicator& comm) const;
  void tell_rival(const OwnerRecord& rival) const;
  void tell_of_half_done(const Status& tidied) const;
  void tell_of_damaged(std::size_t told) const;

  Files& files_;
  Clock& clock_;
  Background& background_;
  const Settings& settings_;
  Log log_;
  EventLog& events_;
  AttemptBook& book_;
  ReplacedMarks& marks_;
  ScrImports& scr_;
  const CachedParts cached_;

  Site site_;
  bool is_missing_ = false;
  bool owned_ = false;
  bool has_news_ = false;
  bool was_closed_ = false;  ///< another one has taken it over from this run
  std::string trouble_;
  OwnerRecord me_;                       ///< on rank 0, as the two below; made when first needed
  Status refusal_;                       ///< why it could not be had
  std::int64_t ask_again_us_ = 0;        ///< of steady time: before that a rival lives
  std::optional<Keeper> keeper_;         ///< on rank 0, where owned
  std::unique_ptr<Repeated> heartbeat_;  ///< on rank 0, where owned
  HighestNumbers highest_;
  std::optional<DatasetRecord> first_;
};

}  // namespace cairn
