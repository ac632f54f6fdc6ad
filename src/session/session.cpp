#include "session/session.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/count.hpp"
#include "base/units.hpp"
#include "config/remedy.hpp"
#include "recovery/commit.hpp"
#include "session/recover_cache.hpp"
#include "session/space.hpp"

namespace cairn {
// --- init and finalize ---

Session::Session(const Environment& environment, const Settings& settings)
    : comm_(environment.comm),
      files_(environment.files),
      clock_(environment.clock),
      background_(environment.background),
      log_(environment.log),
      settings_(settings),
      routing_(files_, settings_.prefix),
      broadcast_(files_, placement_),
      events_(files_, clock_, settings_, log_,
              comm_.rank() == 0 ? EventLog::Part::writer : EventLog::Part::silent),
      prefix_(comm_, files_, clock_, background_, settings_, log_, events_,
              [this] { return cached_parts(); }),
      cadence_(settings_, clock_.steady_us()),
      halting_(files_, clock_, settings_, log_, events_) {
  comm_.set_place(fmt::format("rank {} on {}", comm_.rank(), settings_.node_name));
}

Result<std::unique_ptr<Session>> Session::init(const Environment& environment,
                                               const Settings& settings) {
  std::unique_ptr<Session> session(new Session(environment, settings));
  CAIRN_TRY(session->prepare());
  return session;
}

Status Session::prepare() {
  placement_ = gather_placement(comm_, settings_.node_name);
  prefix_.look_for_directory();
  if (prefix_.is_missing()) {
    (void)is_news({});
    events_.keep_quiet_about_trouble();
  }
  events_.started(comm_.size(), placement_.nodes());
  CAIRN_ASSIGN(identity_, find_prefix_identity(comm_, files_, clock_, placement_, settings_, log_));
  CAIRN_TRY(
      open_stores(comm_, files_, clock_, placement_, settings_, identity_, log_, stores_, locks_));
  CAIRN_ASSIGN(levels_, resolve_levels(comm_, settings_, stores_, placement_));
  CAIRN_TRY(purge_if_asked());
  CAIRN_ASSIGN(datasets_, recover_cache(comm_, files_, clock_, stores_, levels_, placement_,
                                        settings_, log_, events_));
  drop_old_broadcasts();
  CAIRN_TRY(open_prefix());
  for (const std::string& weakness : weaknesses_of(levels_, comm_.size())) warn("{}", weakness);
  if (!settings_.keep_old)
    warn(
        "CAIRN_KEEP_OLD=0: the old checkpoint is deleted before the new one is written, so a "
        "failure in between loses both");
  const CachedDataset* loaded = restart_candidate();
  warn_if_too_small(
      std::max(loaded != nullptr ? loaded->record.data_bytes() : 0, settings_.checkpoint_bytes));
  if (comm_.rank() == 0) halting_.begin();
  cadence_ = Cadence(settings_, clock_.steady_us());
  log_computing();
  return {};
}

void Session::log_computing() {
  computes_since_us_ = clock_.steady_us();
  events_.happened("COMPUTE_START");
}

double Session::seconds_since(std::int64_t steady_us) const {
  return static_cast<double>(clock_.steady_us() - steady_us) * 1e-6;
}

Status Session::open_prefix() {
  CAIRN_TRY(prefix_.open(placement_));
  settle_identity();
  for (const CachedDataset& dataset : datasets_) {
    last_number_ = std::max(last_number_, dataset.info.number);
    last_checkpoint_ = std::max(last_checkpoint_, dataset.info.checkpoint);
  }
  learn_from_prefix();
  // What an earlier run did not get out, and what is to be safe before it is computed on.
  (void)flush_due(settings_.flush_on_restart);
  flush_datasets_of_others();
  return {};
}

Status Session::purge_if_asked() {
  if (!settings_.cache_purge) return {};
  CAIRN_TRY(purge_cache(comm_, files_, stores_, placement_));
  tell("SCR_CACHE_PURGE=1: the caches of job {} are empty now", settings_.job_id);
  return {};
}

Status Session::finalize() {
  CAIRN_TRY(enter("SCR_Finalize", Phase::idle));
  phase_ = Phase::ended;
  flush_wanted_ = settings_.flush_interval > 0;
  look_for_what_has_gone();
  const std::vector<Uuid> due = due_in_prefix();
  (void)flush_due();  // each has been told; what is left of them is found below
  flush_datasets_of_others();
  const Status all_copied = check_copied(due);
  prefix_.close();
  events_.happened("FINALIZE");
  if (comm_.rank() == 0) halting_.end();
  background_.wait();  // whoever gets the lock next finds nothing on its way
  drop_spares();
  comm_.barrier();  // the lock is one rank's, the work that of all on its node
  locks_.clear();
  return all_copied;
}

/// When a run ends: what is in the caches, and must be in the prefix directory as well.
bool Session::belongs_in_prefix(const CachedDataset& dataset) {
  const bool readable =
      dataset.usable() || (is_elastic() && dataset.state == CachedDataset::State::other_ranks);
  const bool wanted = flush_wanted_ && &dataset == newest_checkpoint();
  return settings_.flush && readable && (dataset.info.is_output() || wanted);
}

/// From the prefix directory, of what this run has copied there: it is copied again.
void Session::look_for_what_has_gone() {
  const bool any = std::any_of(datasets_.begin(), datasets_.end(),
                               [this](const auto& one) { return belongs_in_prefix(one); });
  if (!any || !prefix_.has_news()) return;
  if (const Status claimed = claim_prefix(); !claimed)
    warn("cannot find out whether the datasets copied to {} are still there: {}", settings_.prefix,
         claimed.error().text);
}

std::vector<Uuid> Session::due_in_prefix() {
  std::vector<Uuid> due;
  for (const CachedDataset& dataset : datasets_)
    if (belongs_in_prefix(dataset) && !dataset.flushed) due.push_back(dataset.info.uuid);
  return due;
}

Status Session::check_copied(const std::vector<Uuid>& due) const {
  for (const CachedDataset& dataset : datasets_) {
    const bool was_due = std::find(due.begin(), due.end(), dataset.info.uuid) != due.end();
    if (!was_due || dataset.flushed) continue;
    if (dataset.state == CachedDataset::State::unusable)
      return fail(Code::lost, "{} is lost: {}", dataset.label(), dataset.reason);
    return fail(Code::not_copied,
                "{} is not in {}, but safe in the caches of this job's nodes. To copy it, {}run "
                "\"cairn scavenge\" before the allocation ends",
                dataset.label(), settings_.prefix,
                prefix_.is_missing() ? fmt::format("create that directory, set SCR_JOB_ID={}, and ",
                                                   settings_.job_id)
                                     : "");
  }
  return {};
}

// --- writing ---

namespace {

std::string text_of_arguments(const std::string& name, std::uint32_t flags) {
  std::string text;
  if ((flags & flag_checkpoint) != 0) text = "SCR_FLAG_CHECKPOINT";
  if ((flags & flag_output) != 0) text += text.empty() ? "SCR_FLAG_OUTPUT" : " | SCR_FLAG_OUTPUT";
  const std::uint32_t others = flags & ~(flag_checkpoint | flag_output);
  if (others != 0 || text.empty()) text = std::to_string(flags);
  return fmt::format("name \"{}\", flags {}", name, text);
}

}  // namespace

Status Session::start(Phase phase, const std::string& name, std::uint32_t flags) {
  const bool checkpoint = phase == Phase::checkpoint;
  const char* call = checkpoint ? "SCR_Start_checkpoint" : "SCR_Start_output";
  const Uuid mine = comm_.rank() == 0 ? draw_uuid() : Uuid{};
  std::array<std::int64_t, 2> uuid = {mine.time_us, mine.chance};
  CAIRN_TRY(enter(call, Phase::idle, checkpoint ? "" : text_of_arguments(name, flags), uuid));
  CAIRN_TRY(check_ranks());
  CAIRN_TRY(fetch_refused_);
  if ((flags & ~(flag_checkpoint | flag_output)) != 0)
    return fail(Code::bad_argument,
                "{}: flags {} have bits other than SCR_FLAG_CHECKPOINT and SCR_FLAG_OUTPUT", call,
                flags);
  if (name.size() > longest_path)
    return fail(Code::bad_argument, "{}: the name has {} bytes; at most {} are allowed", call,
                name.size(), longest_path);
  started_us_ = clock_.steady_us();
  Status made = make_dataset({uuid[0], uuid[1]}, name, flags);
  if (!made) {
    make_room_after(made.error());
    if (current_.in_prefix())
      made.error().is_reported = !refused_starts_.is_news(cause_of(made.error()));
    return made;
  }
  refused_starts_ = {};
  phase_ = phase;
  events_.happened("COMPUTE_END", DatasetInfo{}, seconds_since(computes_since_us_));
  events_.happened(current_.info.is_checkpoint() ? "CHECKPOINT_START" : "OUTPUT_START",
                   current_.info);
  return {};
}

/// Later than all that are there.
Uuid Session::draw_uuid() const {
  const std::int64_t newest_us =
      std::max(prefix_.newest_us(), datasets_.empty() ? 0 : datasets_[0].info.uuid.time_us);
  return {std::max(clock_.now_us(), newest_us + 1),
          static_cast<std::int64_t>(clock_.random() >> 1)};
}

Status Session::make_dataset(const Uuid& uuid, const std::string& name, std::uint32_t flags) {
  DatasetInfo info;
  info.uuid = uuid;
  info.flags = flags;
  info.checkpoint = info.is_checkpoint() ? last_checkpoint_ + 1 : 0;
  info.ranks = static_cast<std::uint32_t>(comm_.size());

  current_level_ = choose_level(levels_, info);
  current_ = {};
  current_.store = levels_[current_level_].store;
  if (levels_[current_level_].settings.bypass) {
    info.flags |= flag_in_place;
    current_.place = CachedDataset::Place::prefix;
    CAIRN_TRY(claim_prefix());
  }
  info.number = std::max(last_number_, prefix_.last_number()) + 1;
  info.name = name.empty() ? fmt::format("scr.dataset.{}", info.number) : name;
  current_.info = info;
  if (!current_.in_prefix()) return make_place_of_current();
  routing_.begin(std::nullopt);
  return {};
}

/// In its store.
Status Session::make_place_of_current() {
  const DatasetInfo& info = current_.info;
  Store& store = stores_[current_.store];
  current_.parts = {store.rank_folder(info, comm_.rank())};
  if (!settings_.keep_old && info.is_checkpoint() && !info.is_output())
    evict(current_.store, static_cast<std::size_t>(store.settings().count) - 1);
  background_.wait();  // so that never more is kept than check_space() counts with
  if (levels_[current_level_].encoding.members.size() == 1) drop_spares();
  Status made = make_rank_folder();
  if (!made) {
    abandon_current();
    return made;
  }
  routing_.begin(current_.parts[0]);
  return {};
}

/// Where somebody has removed the job's folder in the middle of the run, it is made again.
Status Session::make_rank_folder() {
  const auto make = [this] {
    return agree(comm_, stores_[current_.store].make_rank_folder(current_.info, comm_.rank()));
  };
  Status made = make();
  if (made || made.error().code != Code::not_found) return made;
  warn(
      "{}: the directory of the job was removed during the run; it is created again, but its "
      "contents are lost; {}",
      made.error().text, remedy_for(made.error(), Storage::cache));
  CAIRN_TRY(
      open_stores(comm_, files_, clock_, placement_, settings_, identity_, log_, stores_, locks_));
  return make();
}

Status Session::complete(Phase phase, bool valid) {
  auto files = phase_ == phase ? collect_files(valid) : std::vector<FileEntry>{};
  const NameEvidence mine = evidence_of(routing_.asked_for(), comm_.rank());
  std::array<std::int64_t, 3> of_all = {files ? 0 : 1, mine[0], mine[1]};
  const char* call = phase == Phase::checkpoint ? "SCR_Complete_checkpoint" : "SCR_Complete_output";
  CAIRN_TRY(enter(call, phase, "", of_all));
  phase_ = Phase::idle;
  Status done = of_all[0] == 0 ? check_names(*files, {of_all[1], of_all[2]})
                               : agree_on_files(files, {of_all[1], of_all[2]});
  if (done) done = current_.in_prefix() ? publish_current() : protect_current(*std::move(files));
  if (!done) {
    abandon_current();
    make_room_after(done.error());
  }
  log_end(done);
  const Status flushed = done ? flush_what_is_due() : Status{};
  log_computing();
  at_checkpoint_ = current_.info.is_checkpoint();
  if (at_checkpoint_) no_need_told_ = false;
  if (at_checkpoint_ && comm_.rank() == 0) count(done);
  return done ? flushed : done;
}

void Session::log_end(const Status& done) {
  const std::string name = current_.info.is_checkpoint() ? "CHECKPOINT_END" : "OUTPUT_END";
  const double seconds = seconds_since(started_us_);
  const Level& level = levels_[current_level_];
  if (!done)
    events_.happened(name, current_.info, seconds, done.error().text);
  else if (current_.in_prefix())
    events_.made(name, current_.info, seconds, settings_.prefix, {}, 0);
  else
    events_.made(name, current_.info, seconds, level.settings.store, name_of(level.encoding.scheme),
                 level.encoding.members.size());
}

/// What a checkpoint has come to, for when the next one is due and whether one is to be made.
void Session::count(const Status& checkpoint) {
  const std::int64_t now_us = clock_.steady_us();
  if (!checkpoint) return cadence_.failed(now_us);
  cadence_.made(started_us_, now_us);
  halting_.count_checkpoint();
}

RankRecord Session::record_of_current(std::vector<FileEntry> files) const {
  RankRecord record;
  record.dataset = current_.info;
  record.rank = comm_.rank();
  record.files = std::move(files);
  record.encoding = levels_[current_level_].encoding;
  return record;
}

Status Session::protect_current(std::vector<FileEntry> files) {
  const std::int64_t from_us = clock_.steady_us();
  RankRecord record = record_of_current(std::move(files));
  std::string open_elsewhere;
  CAIRN_TRY(protect_and_commit(comm_, files_, stores_[current_.store], current_.parts[0], record,
                               settings_, nullptr, &open_elsewhere));
  warn_open_elsewhere(open_elsewhere);
  const std::uint64_t data_bytes = record.data_bytes();
  take_in_current(std::move(record), from_us);
  evict(current_.store, static_cast<std::size_t>(stores_[current_.store].settings().count));
  if (!size_told_) warn_if_too_small(data_bytes);
  return {};
}

/// It exists.
void Session::take_in_current(RankRecord record, std::int64_t written_us) {
  report_commit(record, written_us);
  last_number_ = current_.info.number;
  last_checkpoint_ = std::max(last_checkpoint_, current_.info.checkpoint);
  if (current_.info.is_checkpoint()) {
    restart_done_ = true;
    went_on_from_.reset();
  }
  current_.record = std::move(record);
  datasets_.insert(datasets_.begin(), current_);
}

/// not_copied if the one just written was due, and is in the cache only; what is wrong with it if
/// it is found damaged there.
Status Session::flush_what_is_due() {
  const std::uint64_t number = current_.info.checkpoint;
  const auto interval = static_cast<std::uint64_t>(settings_.flush_interval);
  if (interval > 0 && number > 0 && number % interval == 0) flush_wanted_ = true;
  const Status flushed = flush_due();
  const std::size_t store = current_.store;
  evict(store, static_cast<std::size_t>(stores_[store].settings().count));
  const auto is_current = [&](const auto& each) { return each.info.uuid == current_.info.uuid; };
  const auto written = std::find_if(datasets_.begin(), datasets_.end(), is_current);
  const bool safe = written != datasets_.end() && written->usable();
  if (flushed || !safe) return flushed;
  Status not_copied =
      fail(Code::not_copied, "{} is safe in the cache, but not yet in {}: {}", current_.label(),
           settings_.prefix, with_remedy(flushed.error(), settings_, Storage::prefix));
  not_copied.error().is_reported = flushed.error().is_reported;
  return not_copied;
}

/// All was written at `written_us`.
void Session::report_commit(const RankRecord& record, std::int64_t written_us) {
  // One line shows that it works; a program may write thousands.
  const bool told = !std::exchange(first_told_, true) || settings_.debug > 0;
  if (!told && !events_.is_on()) return;
  const auto own_files = std::count_if(record.files.begin(), record.files.end(),
                                       [](const FileEntry& file) { return file.begins_here(); });
  std::array<std::int64_t, 2> sums = {static_cast<std::int64_t>(record.data_bytes()), own_files};
  comm_.allreduce(sums, Reduce::sum);
  const double seconds = seconds_since(started_us_);
  const double protect_seconds = seconds_since(written_us);
  const auto bytes = static_cast<std::uint64_t>(sums[0]);
  const auto files = static_cast<std::uint64_t>(sums[1]);
  const std::string& store =
      current_.in_prefix() ? settings_.prefix : levels_[current_level_].settings.store;
  const auto& dataset = current_.info;
  events_.moved("WRITE", "", store, dataset, seconds - protect_seconds, bytes, files);
  events_.moved("ENCODE", store, store, dataset, protect_seconds, bytes, files);
  events_.moved(dataset.is_checkpoint() ? "CHECKPOINT" : "OUTPUT", "", store, dataset, seconds,
                bytes, files);
  if (!told) return;
  tell("{}: {} in {}, {}; {} from Start to Complete ({}/s), {} of it to protect", current_.label(),
       format_bytes(bytes), count_text(sums[1], "file"),
       current_.in_prefix() ? "in " + settings_.prefix
       : record.encoding.members.size() > 1
           ? fmt::format("{} over sets of {}", name_of(record.encoding.scheme),
                         record.encoding.members.size())
           : std::string("SINGLE"),
       format_seconds(seconds),
       format_bytes(
           static_cast<std::uint64_t>(static_cast<double>(bytes) / std::max(seconds, 1e-6))),
       format_seconds(protect_seconds));
}

/// Files in place stay as they are: they are the program's, and may be those of an older dataset.
void Session::abandon_current() {
  if (!current_.in_prefix()) return remove_everywhere(current_);
  tell("{} is incomplete and is not used; its files in {} stay as they are", current_.label(),
       settings_.prefix);
}

/// Removes a dataset of the cache on all ranks: every record is gone before any data is, so that no
/// rank's crash in between leaves something that looks committed and is not whole. The data, which
/// take long, go in the background. What cannot be removed is only told.
void Session::remove_everywhere(const CachedDataset& dataset, Parity parity) {
  const auto note = [log = log_, rank = comm_.rank()](const Status& status) {
    if (!status) log.warning("rank {}: {}", rank, status.error().text);
  };
  const auto without_throwing = [note](const std::function<Status()>& action) {
    try {
      note(action());
    } catch (const std::exception& error) {
      note(fail(Code::io, "cannot remove an older dataset: {}", error.what()));
    }
  };
  if (dataset.in_prefix()) return;
  for (const RankFolder& part : dataset.parts) note(remove_all(files_, part.record()));
  comm_.barrier();
  const RankFolder own = stores_[dataset.store].rank_folder(dataset.info, comm_.rank());
  for (const RankFolder& part : dataset.parts) {
    const bool keep = parity == Parity::recycled && part.path == own.path &&
                      dataset.record.encoding.members.size() > 1;
    background_.post(
        dataset.record.data_bytes(),
        [=, store = stores_[dataset.store], rank = comm_.rank(),
         spare = keep ? part.parity(dataset.record.encoding.generation) : ""]() mutable {
          without_throwing([&] {
            return spare.empty() ? store.remove(part) : store.recycle(part, spare, rank);
          });
        });
  }
}

/// What is kept for the next checkpoint, where there is none or it has no parity.
void Session::drop_spares() {
  for (Store& store : stores_)
    if (const Status dropped = store.drop_spare(comm_.rank()); !dropped)
      log_.warning("rank {}: {}", comm_.rank(), dropped.error().text);
}

/// Removes the oldest checkpoints of a store until `keep` are left, and from all stores those to
/// which no run can go back, once there is a newer one to which it can: until then a later run, on
/// other nodes or with more space, may still find them whole. Outputs stay until they are where
/// they must be, and go then, unless they are checkpoints too. What is neither goes with the next
/// dataset.
void Session::evict(std::size_t store, std::size_t keep) {
  std::vector<CachedDataset> kept;
  std::size_t checkpoints = 0;
  bool newer_is_safe = false;
  const auto is_superseded = [&](const CachedDataset& dataset) {
    if (dataset.state == CachedDataset::State::left_alone) return false;
    if (dataset.info.is_output() && !dataset.flushed) return false;
    if (!dataset.usable() || dataset.quarantined) return newer_is_safe;
    if (!dataset.is_in(store)) return false;
    if (dataset.info.is_checkpoint()) return ++checkpoints > keep;
    return dataset.flushed || dataset.info.uuid != datasets_[0].info.uuid;
  };
  std::vector<bool> goes;
  for (const CachedDataset& dataset : datasets_) {
    goes.push_back(is_superseded(dataset));
    newer_is_safe = newer_is_safe || dataset.restorable();
  }
  for (std::size_t i = 0; i < goes.size(); ++i)
    if (goes[i])
      remove_everywhere(datasets_[i], Parity::recycled);
    else
      kept.push_back(std::move(datasets_[i]));
  datasets_ = std::move(kept);
}

/// Where the store is full, the error tells what stays there, and the run that has a checkpoint to
/// go back to gives up what it cannot restore.
void Session::make_room_after(Error& error) {
  const auto given_up = [](const CachedDataset& dataset) {
    return dataset.state == CachedDataset::State::unusable || dataset.quarantined;
  };
  const bool safe = std::any_of(datasets_.begin(), datasets_.end(),
                                [](const CachedDataset& dataset) { return dataset.restorable(); });
  if (error.code != Code::no_space || current_.in_prefix()) return;
  error.text += outputs_held(datasets_, current_.store);
  background_.wait();
  drop_spares();
  if (!safe) return;
  for (const CachedDataset& dataset : datasets_) {
    if (!given_up(dataset)) continue;
    tell("the leftovers of dataset {}, from which no run can restart, are removed to free space",
         dataset.info.number);
    remove_everywhere(dataset);
  }
  std::erase_if(datasets_, given_up);
}

void Session::warn_if_too_small(std::uint64_t data_bytes) {
  if (allreduce(comm_, static_cast<std::int64_t>(data_bytes), Reduce::max) == 0) return;
  size_told_ = true;
  if (const Status fits =
          check_space(comm_, stores_, levels_, placement_, settings_, datasets_, data_bytes);
      !fits)
    warn("{}", fits.error().text);
}

/// Once for each rank: a child that has inherited one file usually inherits the next ones too.
void Session::warn_open_elsewhere(const std::string& file) {
  if (file.empty() || std::exchange(open_elsewhere_reported_, true)) return;
  log_.warning(
      "rank {} has closed {}, but another process of its node still has it open for writing, "
      "perhaps a child that inherited it. If that process writes to the file from now on, the "
      "dataset is damaged. Open files with O_CLOEXEC (fopen mode \"e\"), or after starting the "
      "child. Cairn logs this once",
      comm_.rank(), file);
}

// --- when to checkpoint, when to stop ---

/// Rank 0 knows whether the run is to stop, and then all do. `due` goes from rank 0 to all as well.
void Session::learn_from_rank_0(bool& due) {
  std::array<std::int64_t, 2> known{};
  if (comm_.rank() == 0) known = {static_cast<std::int64_t>(halting_.look()), due ? 1 : 0};
  comm_.bcast(mutable_bytes_of(known), 0);
  halting_state_ = static_cast<Halting::State>(known[0]);
  due = known[1] != 0;
}

Result<bool> Session::need_checkpoint() {
  CAIRN_TRY(enter("SCR_Need_checkpoint", Phase::idle));
  bool due = comm_.rank() == 0 && cadence_.due(clock_.steady_us());
  learn_from_rank_0(due);
  const bool goes_on = halting_state_ == Halting::State::goes_on;
  const bool needed = goes_on ? due : !stops_at_once();
  if (!needed && goes_on) warn_if_never_due();
  no_need_told_ = !needed;
  return needed;
}

/// Once in a run.
void Session::warn_if_never_due() {
  if (cadence_.is_ever_due() || std::exchange(never_due_, true)) return;
  warn(
      "SCR_Need_checkpoint says no until the job is asked to stop, because none of "
      "SCR_CHECKPOINT_INTERVAL, SCR_CHECKPOINT_SECONDS and SCR_CHECKPOINT_OVERHEAD is set. A "
      "program that relies on it writes no checkpoint, and a failure loses all that it has "
      "computed. Set one of them: for example, SCR_CHECKPOINT_SECONDS=600 asks for a checkpoint "
      "every ten minutes");
}

/// A request that comes between the two questions waits for the next SCR_Need_checkpoint: else a
/// program that has just been told to go on would stop without its last checkpoint.
Result<bool> Session::should_exit() {
  CAIRN_TRY(enter("SCR_Should_exit", Phase::idle));
  bool due = false;
  learn_from_rank_0(due);
  const bool needs_one_first = std::exchange(no_need_told_, false) && !stops_at_once();
  const bool exits = halting_state_ != Halting::State::goes_on && !needs_one_first;
  if (exits && !std::exchange(exit_logged_, true)) events_.happened("SHOULD_EXIT");
  return exits;
}

}  // namespace cairn
