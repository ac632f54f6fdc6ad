#include "prefix/prefix_owner.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/is_prefix_used.hpp"
#include "prefix/retention.hpp"
#include "prefix/tidy.hpp"
#include "prefix/unread.hpp"

namespace cairn {

PrefixOwner::PrefixOwner(const Environment& environment)
    : files_(environment.files),
      clock_(environment.clock),
      background_(environment.background),
      settings_(environment.settings),
      log_(environment.log),
      events_(environment.events),
      book_(environment.book),
      marks_(environment.marks),
      scr_(environment.scr),
      cached_(environment.cached),
      is_itself_(environment.is_itself),
      site_{files_,
            clock_,
            {settings_.prefix},
            0,
            1,
            settings_.copy_metadata,
            {settings_.flush_width, settings_.flush_bytes_per_s, settings_.fetch_width},
            {background_, settings_.io_threads, settings_.io_piece_bytes},
            nullptr} {}

void PrefixOwner::look_for_directory(Communicator& comm) {
  if (!settings_.flush && !settings_.fetch) return;
  std::int64_t missing = comm.rank() == 0 && is_no_directory(files_, settings_.prefix) ? 1 : 0;
  comm.bcast(mutable_bytes_of(missing), 0);
  is_missing_ = missing != 0;
  if (is_missing_)
    log_.warning(
        "the prefix directory {} {} ({}). SCR_Route_file fails for files outside it, "
        "so a program that names files elsewhere saves NO CHECKPOINT; other files stay in the "
        "caches. Create the directory, or correct SCR_PREFIX",
        settings_.prefix, files_.info(settings_.prefix) ? "is not a directory" : "does not exist",
        settings_.prefix_origin);
}

Status PrefixOwner::open(Communicator& comm, int ranks_on_node) {
  site_.ranks_on_node = ranks_on_node;
  Status opened = own_if_there(comm);
  if (opened || opened.error().code == Code::busy || purges_prefix(settings_)) return opened;
  trouble_ = opened.error().text;
  log_.warning("cannot fetch or flush now: {}", trouble_);
  return {};
}

bool PrefixOwner::open_again(Communicator& comm) {
  if (owned_ && trouble_.empty()) return read_again(comm);
  const bool was_away = !trouble_.empty();
  const Status opened = own_if_there(comm);
  trouble_ = opened ? "" : opened.error().text;
  return owned_ || (was_away && opened);
}

bool PrefixOwner::read_again(Communicator& comm) {
  const std::size_t logged = keeper_ ? keeper_->known().damaged.size() : 0;
  std::int64_t known = keeper_ && keeper_->read_again() ? 1 : 0;
  warn_of_damaged(logged);
  comm.bcast(mutable_bytes_of(known), 0);
  if (known == 0) return false;
  has_news_ = true;
  announce(comm);
  return true;
}

/// Without the first ones, which were logged before.
void PrefixOwner::warn_of_damaged(std::size_t logged) const {
  for (std::size_t i = logged; keeper_ && i < keeper_->known().damaged.size(); ++i)
    log_.warning("a dataset in the prefix directory cannot be used: {}",
                 keeper_->known().damaged[i]);
}

/// If neither Cairn nor SCR has ever copied anything there, creates nothing.
Status PrefixOwner::own_if_there(Communicator& comm) {
  if (!settings_.flush && !settings_.fetch) return {};
  std::int64_t there = 0;
  Status unused;
  if (comm.rank() == 0) {
    there =
        is_prefix_used(files_, site_.folder.root()) || may_have_scr_index(files_, settings_.prefix)
            ? 1
            : 0;
    if (there == 0) unused = is_itself_();
  }
  comm.bcast(mutable_bytes_of(there), 0);
  if (there == 0) return agree(comm, std::move(unused));
  CAIRN_TRY(own(comm));
  announce(comm);
  return {};
}

/// Logs that it takes a while, and why.
void PrefixOwner::log_rival(const OwnerRecord& rival) const {
  log_.info(
      "{} was last used by job {} of {} on {}, which did not record its end: waiting up to {} for "
      "a sign of life before this run takes over",
      settings_.prefix, rival.job_id, rival.user, rival.host,
      format_seconds(static_cast<double>(silence_us) * 1e-6));
}

void PrefixOwner::make_owner_record() {
  me_.run = {clock_.now_us(), static_cast<std::int64_t>(clock_.random() >> 1)};
  me_.job_id = settings_.job_id;
  me_.user = settings_.user;
  me_.host = settings_.node_name;
  me_.process = static_cast<std::uint64_t>(::getpid());
  me_.started_us = clock_.now_us();
}

/// On rank 0. If another owner has just given a sign of life, does not wait for the next one before
/// it could count as dead.
Status PrefixOwner::take_keeper() {
  CAIRN_TRY(is_itself_());
  if (me_.run == Uuid{}) make_owner_record();
  const auto owner = read_owner(files_, site_.folder);
  const bool has_rival = owner && *owner && is_rival(**owner, me_);
  if (has_rival && clock_.steady_us() < ask_again_us_) return refusal_;
  if (has_rival && refusal_) log_rival(**owner);
  auto keeper = Keeper::take_over(files_, clock_, site_.folder, me_,
                                  was_closed_ ? Claim::again : Claim::polite);
  // Its file system may have been unmounted since the look above.
  if (const Status itself = is_itself_(); keeper && !itself)
    keeper = tl::unexpected(itself.error());
  refusal_ = keeper ? Status{} : Status(tl::unexpected(keeper.error()));
  if (keeper)
    keeper_.emplace(*std::move(keeper));
  else if (keeper.error().code == Code::busy)
    ask_again_us_ = clock_.steady_us() + silence_us;
  return refusal_;
}

Status PrefixOwner::own(Communicator& comm) {
  if (owned_) return {};
  Status taken = comm.rank() == 0 ? take_keeper() : Status{};
  CAIRN_TRY(agree(comm, std::move(taken)));
  owned_ = true;
  is_missing_ = false;
  has_news_ = true;
  if (keeper_) begin_keeping();
  comm.bcast(mutable_bytes_of(site_.epoch), 0);
  const std::vector<CachedPart> cached = cached_();
  warn_of_half_done(tidy_up(comm, &cached));
  announce_highest(comm);
  return {};
}

/// On rank 0.
void PrefixOwner::begin_keeping() {
  site_.keeper = &*keeper_;
  site_.epoch = keeper_->epoch_folder().epoch();
  heartbeat_ = background_.repeat(beat_period_us, keeper_->heartbeat());
  if (!heartbeat_)
    log_.warning(
        "cannot start the thread that gives signs of life in {}: another job that uses this "
        "directory could take it over; raise the limit of processes (ulimit -u)",
        settings_.prefix);
  warn_of_damaged(0);
  for (const UnreadDataset& unread : keeper_->known().unread)
    log_.warning("a dataset in the prefix directory cannot be read now: {}", unread.why);
  for (const std::string& damage :
       {keeper_->known().current_damage, keeper_->known().deleted_damage})
    if (!damage.empty()) log_.warning("{}", damage);
  scr_.look(files_);
}

namespace {

enum class Rights : std::int64_t {
  held,
  lost,
  away,     ///< another directory is at this path, so nothing is known
  unknown,  ///< the look has not ended in time
};

Rights rights_of(const Status& checked) {
  if (checked) return Rights::held;
  return checked.error().code == Code::busy ? Rights::lost : Rights::away;
}

}  // namespace

/// If another owner has taken over, this run has lost its rights; it may become the owner again.
/// It keeps them while another directory is at this path.
Status PrefixOwner::let_go_if_closed(Communicator& comm) {
  if (!owned_) return {};
  Status checked = keeper_ ? keeper_->check_rights(is_itself_) : Status{};
  Rights rights = rights_of(checked);
  comm.bcast(mutable_bytes_of(rights), 0);
  if (rights == Rights::lost) let_go(checked ? "" : checked.error().text);
  return rights == Rights::away ? agree(comm, std::move(checked)) : Status{};
}

void PrefixOwner::let_go(const std::string& why) {
  log_.warning("{}: this run must become the owner again before it can copy anything to {}", why,
               settings_.prefix);
  heartbeat_.reset();
  site_.keeper = nullptr;
  keeper_.reset();
  owned_ = false;
  has_news_ = false;  // its state is unknown until this run owns it again
  was_closed_ = true;
}

/// A look that goes on has all that it needs.
std::optional<bool> PrefixOwner::has_news(Communicator& comm, const CarryOut& carry_out) {
  auto rights = Rights::unknown;
  const auto found = std::make_shared<Status>();
  if (comm.rank() == 0) {
    OwnerRecord me = me_;
    me.epoch = site_.epoch;
    const auto look = [found, &files = files_, folder = site_.folder, me, owned = owned_,
                       is_itself = is_itself_] {
      if (owned)
        *found = check_rights(files, folder, me, is_itself);
      else
        (void)files.info(folder.root());
    };
    if (carry_out(look)) rights = rights_of(*found);
  }
  comm.bcast(mutable_bytes_of(rights), 0);
  if (rights == Rights::unknown) return std::nullopt;
  if (rights == Rights::lost) let_go(*found ? "" : found->error().text);
  return has_news_ || (was_closed_ && !owned_) || rights == Rights::away;
}

/// Makes this run the owner again if it was or would have been, and reads again what could not be
/// read.
Status PrefixOwner::look_again(Communicator& comm) {
  CAIRN_TRY(let_go_if_closed(comm));
  if (was_closed_) CAIRN_TRY(own(comm));
  if (!trouble_.empty()) CAIRN_TRY(own_if_there(comm));
  read_again(comm);
  if (keeper_) scr_.look(files_);
  return {};
}

Status PrefixOwner::claim(Communicator& comm) {
  CAIRN_TRY(let_go_if_closed(comm));
  CAIRN_TRY(own(comm));
  read_again(comm);
  CAIRN_TRY(settle_older(comm));
  return on_keeper(comm, site_, [](const Keeper& keeper) {
    return check_unread(UnreadMatters::begin, keeper.known().unread);
  });
}

/// Files with staged names must not get their own names after the files of this dataset, which may
/// have the same names. Other incomplete work does not prevent a copy.
Status PrefixOwner::settle_older(Communicator& comm) {
  if (!is_unsettled(comm)) return {};
  Status tidied = tidy_up(comm, nullptr);
  if (tidied || is_unsettled(comm)) return tidied;
  warn_of_half_done(tidied);
  return {};
}

/// On all ranks.
bool PrefixOwner::is_unsettled(Communicator& comm) const {
  std::int64_t unsettled = keeper_ && has_unsettled(keeper_->known().listing) ? 1 : 0;
  comm.bcast(mutable_bytes_of(unsettled), 0);
  return unsettled != 0;
}

void PrefixOwner::warn_of_half_done(const Status& tidied) const {
  if (!tidied)
    log_.warning(
        "the leftovers of an earlier run in the prefix directory could not be finished or "
        "removed: {}",
        tidied.error().text);
}

Status PrefixOwner::tidy_up(Communicator& comm, const std::vector<CachedPart>* cached) {
  Tidied found;
  Status tidied = tidy(comm, site_, cached != nullptr ? *cached : std::vector<CachedPart>{},
                       cached != nullptr ? Unfinished::removed : Unfinished::left, &found);
  marks_.add(found.unmarked);
  for (const std::string& folder : found.damaged) log_.warning("{}", remedy_for_damaged(folder));
  for (const auto* lines : {&found.given_up, &found.kept})
    for (const std::string& line : *lines) log_.warning("{}", line);
  // The run may have died before it could log that it had published it.
  for (const DatasetRecord& record : found.settled)
    events_.happened("SETTLE_SUCCESS", record.info, {}, "published by an earlier run");
  for (const DatasetRecord& record : found.published) {
    events_.happened("FLUSH_SUCCESS", record.info, {}, "begun by an earlier run");
    events_.moved("FLUSH_SYNC", "", settings_.prefix, record.info, {}, record.bytes, record.files);
    book_.carry_over(site_.keeper, record.info);
    log_.info("{} is in {}: the flush that an earlier run began is complete", record.label(),
              settings_.prefix);
  }
  return tidied;
}

void PrefixOwner::announce_highest(Communicator& comm) {
  std::array<std::int64_t, 3> highest{};
  const auto take = [&](std::size_t i, std::int64_t value) {
    highest[i] = std::max(highest[i], value);
  };
  if (keeper_) {
    for (const DatasetRecord& record : keeper_->known().listing) {
      take(0, static_cast<std::int64_t>(record.info.number));
      take(1, static_cast<std::int64_t>(record.info.checkpoint));
      take(2, record.info.uuid.time_us);
    }
    for (const UnreadDataset& unread : keeper_->known().unread) take(2, unread.uuid.time_us);
    take(0, static_cast<std::int64_t>(scr_.last_number()));
    take(2, scr_.newest_us());
  }
  comm.bcast(std::as_writable_bytes(std::span(highest)), 0);
  highest_.number = static_cast<std::uint64_t>(highest[0]);
  highest_.checkpoint = static_cast<std::uint64_t>(highest[1]);
  highest_.time_us = std::max(highest_.time_us, highest[2]);
}

void PrefixOwner::announce(Communicator& comm) {
  announce_highest(comm);
  first_ = share(comm, keeper_ ? next_to_fetch(keeper_->known().listing, settings_,
                                               keeper_->known().current(), {})
                               : nullptr);
}

void PrefixOwner::close() {
  stop_heartbeat();
  if (!keeper_) return;
  if (const Status rights = keeper_->check_rights(is_itself_); !rights) {
    log_.warning("the records of this run in {} are not closed: {}", settings_.prefix,
                 rights.error().text);
    return;
  }
  // Also after an error, the next job need not wait.
  for (const Status& closed : {keeper_->save_listing(), keeper_->resign()})
    if (!closed) log_.warning("{}", closed.error().text);
}

}  // namespace cairn
