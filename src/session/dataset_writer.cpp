#include "session/dataset_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/count.hpp"
#include "base/units.hpp"
#include "prefix/flush.hpp"
#include "recovery/commit.hpp"
#include "session/shared_warnings.hpp"

namespace cairn {

Uuid DatasetWriter::draw_uuid() const {
  const auto& cached = cached_.all();
  const std::int64_t newest_us =
      std::max(prefix_.owner().highest().time_us, cached.empty() ? 0 : cached[0].info.uuid.time_us);
  return {std::max(run_.clock.now_us(), newest_us + 1),
          static_cast<std::int64_t>(run_.clock.random() >> 1)};
}

// --- its beginning ---

Status DatasetWriter::begin(Communicator& comm, const Uuid& uuid, const std::string& name,
                            std::uint32_t flags, std::int64_t called_us) {
  started_us_ = called_us;
  writes_since_us_ = run_.clock.steady_us();
  Status made = make(comm, uuid, name, flags);
  if (made) {
    refused_starts_ = {};
    return made;
  }
  if (current_.in_prefix())
    made.error().is_reported = !refused_starts_.is_news(cause_of(made.error()));
  else
    cached_.make_room_after(comm, made.error(), current_.store);
  return made;
}

Status DatasetWriter::make(Communicator& comm, const Uuid& uuid, const std::string& name,
                           std::uint32_t flags) {
  DatasetInfo info;
  info.uuid = uuid;
  info.flags = flags;
  info.checkpoint = info.is_checkpoint() ? run_.last.checkpoint + 1 : 0;
  info.ranks = run_.unsigned_ranks();

  level_ = choose_level(run_.levels, info);
  current_ = {};
  current_.store = level().store;
  CAIRN_TRY(late_.refuse_another(level()));
  if (level().settings.bypass) {
    info.flags |= flag_in_place;
    current_.place = CachedDataset::Place::prefix;
    CAIRN_TRY(flushing_.claim(comm));
  }
  info.number = std::max(run_.last.number, prefix_.owner().highest().number) + 1;
  info.name = name.empty() ? fmt::format("scr.dataset.{}", info.number) : name;
  current_.info = info;
  if (!current_.in_prefix()) return make_place(comm);
  routing_.begin(std::nullopt);
  return {};
}

/// In its store.
Status DatasetWriter::make_place(Communicator& comm) {
  const DatasetInfo& info = current_.info;
  Store& store = run_.stores[current_.store];
  current_.parts = {store.rank_folder(info, run_.rank)};
  const auto count = static_cast<std::size_t>(store.settings().count);
  const bool old_goes_first = !run_.settings.keep_old && info.is_checkpoint() && !info.is_output();
  // Init may have kept more than COUNT: what it protects has an older one beside it until here, as
  // the program may reject the newer one.
  using Evicted = CachedDatasets::Evicted;
  if (old_goes_first)
    cached_.evict(comm, current_.store, count - 1);
  else
    cached_.evict(comm, current_.store, count, has_gone_back() ? Evicted::flushed : Evicted::all);
  run_.background.wait();  // so that never more is kept than check_space() counts with
  if (level().encoding.members.size() == 1) cached_.drop_spares();
  Status made = make_rank_folder(comm);
  if (!made) {
    abandon(comm);
    return made;
  }
  routing_.begin(current_.parts[0]);
  return {};
}

/// From a newer checkpoint, which is still there. Until the next one is complete, the program may
/// want to go back to the same one again, from the cache or the prefix directory.
bool DatasetWriter::has_gone_back() const {
  const CachedDataset* newest = cached_.newest_checkpoint();
  return newest != nullptr && newest->info.checkpoint > run_.last.checkpoint;
}

/// If the job's directory was removed in the middle of the run, it is made again.
Status DatasetWriter::make_rank_folder(Communicator& comm) {
  const auto make = [this, &comm] {
    return agree(comm, run_.stores[current_.store].make_rank_folder(current_.info, run_.rank));
  };
  Status made = make();
  if (made || made.error().code != Code::not_found) return made;
  run_.shared_log.warning(
      "{}: the directory of the job was removed during the run; it is created again, but its "
      "contents are lost; {}",
      made.error().text, remedy_for(made.error(), Storage::cache));
  CAIRN_TRY(open_stores(comm, run_.files, run_.clock, run_.placement, run_.settings, run_.identity,
                        run_.own_log, run_.stores, run_.locks));
  return make();
}

// --- its files ---

Result<std::vector<FileEntry>> DatasetWriter::collect_files(bool valid) const {
  if (!valid) return fail(Code::invalid, "{}: rank {} passed valid=0", current_.label(), run_.rank);
  if (const auto refused = routing_.refused())
    return fail(
        Code::invalid,
        "{}: SCR_Route_file failed on rank {} for the file {}, so the dataset is not complete: {}",
        current_.label(), run_.rank, refused->path, refused->why.text);
  // Other ranks may still be writing to files in place.
  return current_.in_prefix() ? std::vector<FileEntry>{} : look_at_files();
}

/// Some rank has no good files. That a file outside a prefix directory that does not exist has no
/// path is said once: SCR_Init has named the cause, and this names what follows from it.
Status DatasetWriter::agree_on_files(Communicator& comm, const Result<std::vector<FileEntry>>& mine,
                                     const NameEvidence& of_all) {
  Status agreed = agree(comm, mine ? Status{} : Status(tl::unexpected(mine.error())));
  if (!agreed) name_shared_file(comm, agreed.error(), of_all);
  if (!agreed && routing_.refused() && prefix_.owner().is_missing())
    agreed.error().is_reported = !missing_path_.is_first();
  return agreed;
}

/// A file that all ranks write together lies in the cache of one of them: what the others miss
/// there has that cause.
void DatasetWriter::name_shared_file(Communicator& comm, Error& error, const NameEvidence& of_all) {
  if (current_.in_prefix() || says_no_files(of_all) || says_distinct(of_all)) return;
  std::vector<FileEntry> asked_for;
  for (const auto& [name, path] : routing_.asked_for()) asked_for.push_back({name, 0, 0, 0, 0, {}});
  const RankRecord mine = record_of_current(std::move(asked_for));
  const Status distinct = agree(comm, refuse_double_names(comm, {&mine, 1}));
  if (!distinct) error.text += "; " + distinct.error().text;
}

Result<std::vector<FileEntry>> DatasetWriter::look_at_files() const {
  std::vector<FileEntry> entries;
  for (const auto& [name, path] : routing_.asked_for()) {
    const auto info = run_.files.info(path);
    if (!info || info->kind != Kind::file)
      return fail(Code::invalid,
                  "{}: rank {} called SCR_Route_file for the file {}, but did not write it ({}); "
                  "write it to the path that SCR_Route_file returns",
                  current_.label(), run_.rank, name,
                  info ? "not a regular file" : info.error().text);
    entries.push_back({name, info->size, info->mode, info->owner, info->group, info->times});
  }
  return entries;
}

/// That the files of all ranks can make a dataset, by what their names say. The ranks exchange the
/// names themselves only where that is not enough. In the prefix directory ranks may share a file.
Status DatasetWriter::check_names(Communicator& comm, const std::vector<FileEntry>& mine,
                                  const NameEvidence& of_all) {
  if (says_no_files(of_all)) return accept_no_files();
  if (current_.in_prefix() || says_distinct(of_all)) return {};
  const RankRecord record = record_of_current(mine);
  return agree(comm, refuse_double_names(comm, {&record, 1}));
}

Status DatasetWriter::accept_no_files() {
  constexpr std::string_view remedy =
      "call SCR_Route_file for each file between Start and Complete, and write to the path that it "
      "returns";
  if (current_.info.is_checkpoint())
    return fail(Code::invalid, "{}: no rank wrote a file, so no run could restart from it; {}",
                current_.label(), remedy);
  if (no_files_warning_.is_first())
    run_.shared_log.warning("{}: no rank wrote a file; if it should have files, {}",
                            current_.label(), remedy);
  return {};
}

// --- its end ---

Status DatasetWriter::end(Communicator& comm, const Result<std::vector<FileEntry>>& files,
                          bool some_failed, const NameEvidence& of_all) {
  Status done =
      some_failed ? agree_on_files(comm, files, of_all) : check_names(comm, *files, of_all);
  if (done)
    done = current_.in_prefix()  ? publish(comm)
           : is_protected_late() ? commit_as_written(comm, *files)
                                 : protect(comm, *files);
  if (!done) {
    abandon(comm);
    if (!current_.in_prefix()) cached_.make_room_after(comm, done.error(), current_.store);
  }
  log_end(done);
  return done;
}

void DatasetWriter::log_end(const Status& done) {
  const std::string name = current_.info.is_checkpoint() ? "CHECKPOINT_END" : "OUTPUT_END";
  const double seconds = run_.seconds_since(started_us_);
  const Level& level = this->level();
  if (!done)
    run_.events.happened(name, current_.info, seconds, done.error().text);
  else if (current_.in_prefix())
    run_.events.made(name, current_.info, seconds, run_.settings.prefix, {}, 0);
  else if (!current_.usable())
    run_.events.made(name, current_.info, seconds, level.settings.store, name_of(Scheme::single),
                     1);
  else
    run_.events.made(name, current_.info, seconds, level.settings.store,
                     name_of(level.encoding.scheme), level.encoding.members.size());
}

RankRecord DatasetWriter::record_of_current(std::vector<FileEntry> files) const {
  RankRecord record;
  record.dataset = current_.info;
  record.rank = run_.rank;
  record.files = std::move(files);
  record.encoding = level().encoding;
  return record;
}

Status DatasetWriter::protect(Communicator& comm, std::vector<FileEntry> files) {
  const std::int64_t from_us = run_.clock.steady_us();
  RankRecord record = record_of_current(std::move(files));
  open_elsewhere_.clear();
  CAIRN_TRY(protect_and_commit(comm, run_.files, run_.stores[current_.store], current_.parts[0],
                               record, run_.settings, nullptr, &open_elsewhere_));
  const std::uint64_t data_bytes = record.data_bytes();
  take_in(comm, std::move(record), from_us);
  cached_.evict(comm, current_.store,
                static_cast<std::size_t>(run_.stores[current_.store].settings().count));
  warn_if_too_small(comm, data_bytes);
  return {};
}

/// A dataset that this call copies to the prefix directory needs its checksums first.
bool DatasetWriter::is_protected_late() const {
  return late_.is_for(level()) && !flushing_.copies_at_once(current_.info);
}

/// Nothing goes for its sake until it is protected.
Status DatasetWriter::commit_as_written(Communicator& comm, std::vector<FileEntry> files) {
  const std::int64_t from_us = run_.clock.steady_us();
  RankRecord record = record_of_current(std::move(files));
  const auto block_bytes = record.encoding.block_bytes;
  record.encoding = {};
  record.encoding.block_bytes = block_bytes;
  record.encoding.members = {run_.rank};
  record.encoding.member_nodes = {run_.settings.node_name};
  record.encoding.member_bytes = {record.data_bytes()};
  record.exposure = late_.exposure();
  open_elsewhere_.clear();
  CAIRN_TRY(commit_written(comm, run_.files, current_.parts[0], record, &open_elsewhere_));
  current_.state = CacheState::written;
  const std::uint64_t data_bytes = record.data_bytes();
  take_in(comm, std::move(record), from_us);
  warn_if_too_small(comm, data_bytes);
  late_.begin(current_, level());
  return {};
}

Status DatasetWriter::publish(Communicator& comm) {
  const std::int64_t from_us = run_.clock.steady_us();
  auto files = look_at_files();
  CAIRN_TRY(agree(comm, files ? Status{} : Status(tl::unexpected(files.error()))));
  RankRecord record = record_of_current(*std::move(files));
  open_elsewhere_.clear();
  flushing_.copies().expect(comm, current_.info, record.files, false);
  CAIRN_TRY(
      prefix_.publish(comm, record, current_.label(), routing_.takes_names(), open_elsewhere_));
  current_.there = PrefixState::settled;
  // Which older ones are there the prefix directory knows; but a restart may still be to come.
  cached_.forget_if([this](const CachedDataset& dataset) {
    return dataset.in_prefix() && (current_.info.is_checkpoint() || !dataset.info.is_checkpoint());
  });
  take_in(comm, std::move(record), from_us);
  return {};
}

/// It exists.
void DatasetWriter::take_in(Communicator& comm, RankRecord record, std::int64_t written_us) {
  report_commit(comm, record, written_us);
  run_.last.number = current_.info.number;
  run_.last.checkpoint = std::max(run_.last.checkpoint, current_.info.checkpoint);
  current_.record = std::move(record);
  current_.survives_nodes = !current_.in_prefix() && current_.usable() &&
                            survives_nodes(level(), run_.stores[current_.store]);
  cached_.insert(current_);
}

/// All was written at `written_us`.
void DatasetWriter::report_commit(Communicator& comm, const RankRecord& record,
                                  std::int64_t written_us) {
  // One line shows that it works; a program may write thousands.
  const bool is_logged = first_line_.is_first() || run_.settings.debug > 0;
  const std::string warning = warning_of_open_elsewhere();
  if (!is_logged && !run_.events.is_on()) {
    if (!warning.empty()) run_.own_log.warning("{}", warning);  // adding up would cost a message
    return;
  }
  const auto own_files = std::count_if(record.files.begin(), record.files.end(),
                                       [](const FileEntry& file) { return file.begins_here(); });
  std::array<std::int64_t, 3> sums = {static_cast<std::int64_t>(record.data_bytes()), own_files,
                                      warning.empty() ? 0 : 1};
  comm.allreduce(sums, Reduce::sum);
  warn_of_ranks(comm, run_.shared_log, warning, sums[2]);
  const double seconds = run_.seconds_since(started_us_);
  const double protect_seconds = run_.seconds_since(written_us);
  const auto bytes = static_cast<std::uint64_t>(sums[0]);
  const auto files = static_cast<std::uint64_t>(sums[1]);
  const std::string& store = current_.in_prefix() ? run_.settings.prefix : level().settings.store;
  const auto& dataset = current_.info;
  const double write_seconds = run_.seconds_since(writes_since_us_) - protect_seconds;
  run_.events.moved("WRITE", "", store, dataset, write_seconds, bytes, files);
  if (current_.usable())
    run_.events.moved("ENCODE", store, store, dataset, protect_seconds, bytes, files);
  run_.events.moved(dataset.is_checkpoint() ? "CHECKPOINT" : "OUTPUT", "", store, dataset, seconds,
                    bytes, files);
  if (!is_logged) return;
  run_.shared_log.info(
      "{}: {} in {}, {}; {} from Start to Complete ({}/s), {} of it to {}", current_.label(),
      format_bytes(bytes), count_text(sums[1], "file"),
      current_.in_prefix() ? "in " + run_.settings.prefix
      : level().encoding.members.size() > 1
          ? fmt::format("{} over sets of {}", name_of(level().encoding.scheme),
                        level().encoding.members.size())
          : std::string("SINGLE"),
      format_seconds(seconds),
      format_bytes(
          static_cast<std::uint64_t>(static_cast<double>(bytes) / std::max(seconds, 1e-6))),
      format_seconds(protect_seconds),
      current_.usable() ? "protect" : "commit; it is protected behind the program");
}

/// Files in place stay as they are: they are the program's, and may be those of an older dataset.
void DatasetWriter::abandon(Communicator& comm) {
  if (!current_.in_prefix()) return cached_.remove(comm, current_);
  run_.shared_log.info("{} is incomplete and is not used; its files in {} stay as they are",
                       current_.label(), run_.settings.prefix);
}

void DatasetWriter::warn_if_too_small(Communicator& comm, std::uint64_t data_bytes) {
  if (!is_size_checked_) is_size_checked_ = cached_.warn_if_too_small(comm, data_bytes);
}

/// Once for each rank, else empty: a child that has inherited one file usually inherits the next
/// ones too.
std::string DatasetWriter::warning_of_open_elsewhere() {
  if (open_elsewhere_.empty() || !open_elsewhere_warning_.is_first()) return "";
  return fmt::format(
      "rank {} has closed {}, but another process of its node still has it open for writing, "
      "perhaps a child that inherited it. If that process writes to the file from now on, the "
      "dataset is damaged. Open files with O_CLOEXEC (fopen mode \"e\"), or after starting the "
      "child. Cairn logs this once",
      run_.rank, open_elsewhere_);
}

}  // namespace cairn
