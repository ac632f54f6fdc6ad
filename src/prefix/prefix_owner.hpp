// A run's hold on its prefix directory: becomes the owner, reads what is there, finishes what
// earlier runs left unfinished, and gives the directory up.
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

/// Over all datasets there, including those of SCR and those whose records cannot be read.
struct HighestNumbers {
  std::uint64_t number = 0;
  std::uint64_t checkpoint = 0;
  std::int64_t time_us = 0;  ///< the beginning of the newest one
};

/// Rank 0 has the keeper. Nothing is made in the prefix directory before there is something to put
/// into it.
class PrefixOwner {
 public:
  /// The parts of all ranks that this rank has in its caches now.
  using CachedParts = std::function<std::vector<CachedPart>()>;

  /// References must outlive the owner.
  struct Environment {
    Files& files;
    Clock& clock;
    Background& background;
    const Settings& settings;
    Log log;  ///< silent except on rank 0
    EventLog& events;
    AttemptBook& book;
    ReplacedMarks& marks;
    ScrImports& scr;
    CachedParts cached;
    IsItself is_itself;
  };

  explicit PrefixOwner(const Environment& environment);

  // Collective.

  /// At Init, before all else: looks whether the directory exists, and warns if it does not.
  void look_for_directory(Communicator& comm);
  /// At Init: if an earlier run has left something there, takes over and finishes it, with the
  /// parts that this rank has in its caches. Fails with busy if another job lives there. If the
  /// directory cannot be used now, this only warns, because the caches can be used; but it fails if
  /// the directory is to be purged.
  Status open(Communicator& comm, int ranks_on_node);
  /// Tries again what failed at the last try: to find the directory, to own it, or to read records
  /// in it. True if there is news: this run owns it now, or it is known not to exist, or more
  /// records could be read. Else trouble() has the reason.
  bool open_again(Communicator& comm);
  /// Makes this run the owner. Fails with busy if another job lives there, and with io if another
  /// directory is at this path. Errors are agreed.
  Status own(Communicator& comm);
  /// Call it before a dataset is written there: own(), and then no file of an older dataset has a
  /// staged name. Errors are agreed.
  Status claim(Communicator& comm);
  /// Makes this run the owner again, if it was or should be, and reads again what could not be
  /// read. Errors are agreed.
  Status look_again(Communicator& comm);
  /// Gives files that still have their staged names their own. Errors are agreed.
  Status settle_older(Communicator& comm);
  /// Carries a look at the directory out; false if it has not ended in time, and goes on.
  using CarryOut = std::function<bool(std::function<void()> look)>;
  /// True if the directory may have changed since take_news(), because another job has owned it, or
  /// owns it now; also if another directory is at its path. Nothing if the one look that this takes
  /// has not ended in time.
  std::optional<bool> has_news(Communicator& comm, const CarryOut& carry_out);
  /// Call it after changes there: sends highest() and first() to all ranks.
  void announce(Communicator& comm);

  // Local.

  /// Ends the signs of life, and waits for the last one.
  void stop_heartbeat() { heartbeat_.reset(); }
  /// At Finalize: the same, and gives the directory up.
  void close();
  /// This run has become the owner, or has read more records, since the last call.
  bool take_news() { return std::exchange(has_news_, false); }
  /// The next take_news() returns true.
  void note_news() { has_news_ = true; }
  /// The directory did not exist at Init, and nothing could be copied there since.
  bool is_missing() const { return is_missing_; }
  bool is_owned() const { return owned_; }
  /// Why the directory could not be read; empty if it could.
  const std::string& trouble() const { return trouble_; }
  /// It has the keeper on rank 0 of the owner.
  const Site& site() const { return site_; }
  HighestNumbers& highest() { return highest_; }
  /// The checkpoint that a restart would try first there; nothing if there is none.
  const std::optional<DatasetRecord>& first() const { return first_; }

 private:
  Status own_if_there(Communicator& comm);
  void make_owner_record();
  Status take_keeper();
  void begin_keeping();
  Status let_go_if_closed(Communicator& comm);
  void let_go(const std::string& why);
  Status tidy_up(Communicator& comm, const std::vector<CachedPart>* cached);
  bool read_again(Communicator& comm);
  void announce_highest(Communicator& comm);
  bool is_unsettled(Communicator& comm) const;
  void log_rival(const OwnerRecord& rival) const;
  void warn_of_half_done(const Status& tidied) const;
  void warn_of_damaged(std::size_t logged) const;

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
  const IsItself is_itself_;

  Site site_;
  bool is_missing_ = false;
  bool owned_ = false;
  bool has_news_ = false;
  bool was_closed_ = false;  ///< another job has taken it over from this run
  std::string trouble_;
  OwnerRecord me_;                       ///< on rank 0, as the two below; made when first needed
  Status refusal_;                       ///< why this run could not become the owner
  std::int64_t ask_again_us_ = 0;        ///< of steady time: before that a rival lives
  std::optional<Keeper> keeper_;         ///< on rank 0, where owned
  std::unique_ptr<Repeated> heartbeat_;  ///< on rank 0, where owned
  HighestNumbers highest_;
  std::optional<DatasetRecord> first_;
};

}  // namespace cairn
