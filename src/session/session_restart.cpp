// The calls of a Session that begin and end a restart, and where its files are meanwhile.

#include <algorithm>

#include "recovery/restore.hpp"
#include "restart/restart_choice.hpp"
#include "session/session.hpp"

namespace cairn {

CachedDataset* Session::restart_candidate() {
  const CachedDataset* found = restart_choice(datasets_, settings_.global_restart, asked_for_);
  if (restart_done_ || found == nullptr) return nullptr;
  return &datasets_[static_cast<std::size_t>(found - datasets_.data())];
}

/// Nothing may be begun in the place of what another number of ranks has written.
Status Session::check_ranks() {
  if (settings_.on_mismatch == OnMismatch::fresh || went_on_from_) return {};
  const CachedDataset* other = mismatched(datasets_);
  const bool elsewhere = is_elastic() && only_others_have(datasets_) == nullptr;
  if (other == nullptr || elsewhere)
    return restart_done_ ? Status{} : prefix_.check_ranks(newest_restorable());
  return tl::unexpected(wrong_ranks(*other, static_cast<std::uint32_t>(comm_.size())));
}

/// Zeros if there is none.
Uuid Session::newest_restorable() {
  const CachedDataset* candidate = restart_candidate();
  return candidate == nullptr ? Uuid{} : candidate->info.uuid;
}

Result<std::optional<std::string>> Session::have_restart() {
  CAIRN_TRY(enter("SCR_Have_restart", Phase::idle));
  take_current_as_request();
  look_for_prefix_again();
  CAIRN_TRY(find_restart());
  if (!restart_done_) report_what_is_passed_over();
  const CachedDataset* candidate = restart_candidate();
  if (candidate == nullptr) return std::nullopt;
  return candidate->info.name;
}

Result<std::string> Session::start_restart() {
  CAIRN_TRY(enter("SCR_Start_restart", Phase::idle));
  CAIRN_TRY(check_ranks());
  CAIRN_TRY(refusal_);  // the next older one is not what was asked for
  CachedDataset* candidate = restart_candidate();
  if (candidate == nullptr)
    return fail(
        Code::not_found,
        "SCR_Start_restart: there is no checkpoint to restart from; call SCR_Have_restart first");
  const DatasetInfo info = candidate->info;
  // The run may die of what comes now as well.
  const bool counted = prefix_.note_attempt(info);
  if (Status opened = open_for_restart(*candidate); !opened) {
    if (counted) prefix_.take_back_attempt(info);
    return tl::unexpected(std::move(opened).error());
  }
  events_.happened("RESTART_START", info);
  phase_ = Phase::restart;
  return info.name;
}

/// Where that fails it is out for this run, or the program would be offered it again for ever.
Status Session::open_for_restart(CachedDataset& dataset) {
  if (dataset.state == CachedDataset::State::offered) return restart_in_prefix(dataset.info.uuid);
  if (dataset.in_prefix()) return {};
  CAIRN_TRY(check_and_heal(comm_, files_, stores_, settings_, dataset, log_));
  const Status placed = place_broadcast(dataset);
  if (placed) return {};
  return leave_out(
      dataset, CachedDataset::State::unusable, placed,
      placed.error().code == Code::no_space ? "free space in the store" : "repair the store");
}

/// It is good, but nothing can be begun with it now. Until a newer one is complete the caches keep
/// it, and a later run may have it still.
Status Session::leave_out(CachedDataset& dataset, CachedDataset::State state, const Status& why,
                          const std::string& remedy) {
  dataset.state = state;
  dataset.reason = why.error().text;
  ask_again();  // where the prefix directory has it too it is read there
  attempts_.push_back(
      {RestartStep::take_cached, dataset.info.uuid, why.error().code, {dataset.reason, true}});
  warn(
      "cannot restart from {}, written by {} ranks: {}. Cairn offers an older checkpoint, if there "
      "is one. To use this one instead, end the run now and {}",
      dataset.label(), dataset.info.ranks, dataset.reason, remedy);
  if (settings_.on_fetch_fail != OnFetchFail::stop) return why;
  return refuse_to_start({RestartStep::refuse, {}, why.error().code, why.error().text});
}

Status Session::complete_restart(bool valid) {
  CAIRN_TRY(enter("SCR_Complete_restart", Phase::restart));
  phase_ = Phase::idle;
  if (const Status removed = broadcast_.remove(comm_.rank()); !removed)
    log_.warning("rank {}: {}", comm_.rank(), removed.error().text);
  const std::string label = restart_candidate()->label();
  Status verdict =
      agree(comm_, valid ? Status{}
                         : Status(fail(Code::invalid, "{}: rank {} could not restart from it",
                                       label, comm_.rank())));
  const CachedDataset dataset = *restart_candidate();
  events_.happened(verdict ? "RESTART_SUCCESS" : "RESTART_FAIL", dataset.info, {},
                   verdict ? "" : verdict.error().text);
  if (!verdict) {
    datasets_.erase(datasets_.begin() + (restart_candidate() - datasets_.data()));
    remove_everywhere(dataset);
    if (given_up_.empty()) given_up_ = verdict.error().text;
    for (CachedDataset& copied : datasets_)
      if (copied.info.uuid == dataset.info.uuid &&
          copied.state == CachedDataset::State::other_ranks)
        copied.state = CachedDataset::State::unusable;
    prefix_.note_failed(dataset.info.uuid, verdict.error().text);
    return verdict;
  }
  prefix_.note_restarted(dataset.info);
  restart_done_ = true;
  asked_for_.reset();
  known_names_.clear();
  // Which level the next checkpoint takes goes on from here; numbers of datasets that are still
  // there are not given again.
  last_checkpoint_ = dataset.info.checkpoint;
  tell("restarted from {}", label);
  return {};
}

// --- routing ---

std::optional<std::string> Session::find_in_restart(const std::string& path) {
  const CachedDataset* dataset = restart_candidate();
  if (dataset == nullptr) return std::nullopt;
  if (!written_by_as_many(dataset->info)) return find_anybodys(*dataset, path);
  auto name = routing_.find_by_name(dataset->record, path);
  // Before a file of this rank's that only ends like it, which may be another one.
  if (!name && dataset->in_prefix()) {
    if (const auto of_another = find_anybodys(*dataset, path)) return of_another;
  } else if (!name && is_broadcast(path)) {
    const auto of_another = broadcast_.find(*routing_.relative_name(path));
    // What other ranks wrote into their caches is known from SCR_Start_restart on.
    if (of_another || phase_ != Phase::restart) return of_another;
  }
  if (!name) name = routing_.find_by_base(dataset->record, path);
  if (!name) return std::nullopt;
  if (dataset->in_prefix()) return settings_.prefix + "/" + *name;
  return stores_[dataset->store].rank_folder(dataset->info, comm_.rank()).file(*name);
}

bool Session::is_broadcast(const std::string& path) const {
  const auto name = routing_.relative_name(path);
  return name && matches_any(settings_.broadcast, *name);
}

Status Session::place_broadcast(const CachedDataset& dataset) {
  if (settings_.broadcast.empty()) return {};
  const Store& store = stores_[dataset.store];
  const RankFolder folder = store.rank_folder(dataset.info, comm_.rank());
  std::vector<std::string> paths;
  for (const FileEntry& file : dataset.record.files) paths.push_back(folder.file(file.name));
  return broadcast_.place(comm_, settings_.broadcast, dataset.record, paths,
                          store.broadcast(placement_.beside(comm_.rank()).front()));
}

/// A run that died in its restart has left some.
void Session::drop_old_broadcasts() {
  for (Store& store : stores_) {
    const bool mine = store.shared() ? comm_.rank() == 0
                                     : placement_.beside(comm_.rank()).front() == comm_.rank();
    const Status dropped = mine ? store.drop_broadcasts() : Status{};
    if (!dropped) log_.warning("rank {}: {}", comm_.rank(), dropped.error().text);
  }
}

/// Any rank reads any file. Nothing is known of a dataset that is only offered.
std::optional<std::string> Session::find_anybodys(const CachedDataset& dataset,
                                                  const std::string& path) const {
  const auto name = routing_.relative_name(path);
  const auto known = known_names_.find(dataset.info.uuid);
  if (!name || known == known_names_.end() || !known->second.has(*name)) return std::nullopt;
  return settings_.prefix + "/" + *name;
}

Result<std::string> Session::route_file(const std::string& path) {
  events_.called();
  if (phase_ == Phase::checkpoint || phase_ == Phase::output) {
    auto place = routing_.write_to(path);
    if (!place) place.error().is_reported = prefix_.is_missing();
    return place;
  }
  if (phase_ != Phase::restart) return path;
  const auto found = find_in_restart(path);
  const CachedDataset& dataset = *restart_candidate();
  if (!found && (dataset.in_prefix() || !written_by_as_many(dataset.info)))
    return fail(Code::not_found, "no rank wrote a file {} in {}", path, dataset.label());
  if (!found)
    return fail(Code::not_found,
                "rank {} wrote no file {} in {}, and from the cache a rank reads only its own "
                "files: name the file in CAIRN_BROADCAST, or set SCR_GLOBAL_RESTART=1",
                comm_.rank(), path, dataset.label());
  CAIRN_TRY(files_.info(*found));
  return *found;
}

std::string Session::route_loaded(const std::string& path) {
  const CachedDataset* candidate = restart_candidate();
  if (candidate == nullptr || !candidate->checked) return path;
  const auto found = find_in_restart(path);
  return found.value_or(path);
}

}  // namespace cairn
