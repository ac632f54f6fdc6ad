// The steps of a Session with CAIRN_ELASTIC=1 where another number of ranks has written what the
// caches have: such a dataset is copied to the prefix directory, part by part, and read there.

#include <algorithm>
#include <utility>

#include "cache/catalog.hpp"
#include "prefix/copy_files.hpp"
#include "session/session.hpp"

namespace cairn {

ReadRecord Session::read_own_records() {
  return [this](const CachedPart& part) -> Result<RankRecord> {
    HeldPart held = read_part(files_, part.folder, part.rank);
    if (held.own.empty())
      return fail(Code::corrupt, "there is no record of rank {} in {}", part.rank,
                  part.folder.path);
    return std::move(held.own[0].record);
  };
}

/// What this rank's caches have of it.
std::vector<CachedPart> Session::recorded_parts(const CachedDataset& dataset) {
  std::vector<CachedPart> parts;
  for (const RankFolder& folder : dataset.parts)
    if (const auto owner = owner_of(folder)) {
      const CachedPart part{dataset.info.uuid, *owner, folder};
      if (read_own_records()(part)) parts.push_back(part);
    }
  return parts;
}

/// All its parts are there, and the prefix directory is this run's.
Status Session::offer_copy(CachedDataset& dataset) {
  Status found = claim_prefix();
  if (found && dataset.flushed) return {};
  if (found) {
    const auto info = prefix_.find_parts(dataset.info, recorded_parts(dataset), read_own_records());
    if (info) {
      dataset.info = *info;
      dataset.state = CachedDataset::State::offered;
      return {};
    }
    found = tl::unexpected(info.error());
  }
  warn_of_no_copy(dataset.info, found.error());
  return found;
}

/// Once, however often the application asks.
void Session::warn_of_no_copy(const DatasetInfo& dataset, const Error& error) {
  if (std::exchange(no_copy_told_, dataset.uuid) == dataset.uuid) return;
  warn("dataset {1} in the cache, written by {0} ranks, cannot be copied to {2}: {3}",
       dataset.ranks, dataset.number, settings_.prefix, error.text);
}

Status Session::flush_what_others_wrote(CachedDataset& dataset) {
  CAIRN_TRY(claim_prefix());
  if (dataset.flushed) return {};
  CAIRN_TRY(prefix_.flush_parts(dataset.info, stores_[dataset.store].settings().path,
                                recorded_parts(dataset), read_own_records()));
  dataset.flushed = true;
  tell("dataset {}, written by {} ranks, is now in {}", dataset.info.number, dataset.info.ranks,
       settings_.prefix);
  return {};
}

/// Outputs must be there, as those of this number of ranks; SCR_FLUSH_ON_RESTART=1 brings all
/// there, so that a program may read them itself, whatever its number of ranks.
void Session::flush_datasets_of_others() {
  const bool all = settings_.flush_on_restart;
  if (!settings_.flush || (!is_elastic() && !all)) return;
  for (auto dataset = datasets_.rbegin(); dataset != datasets_.rend(); ++dataset) {
    const bool due = all || dataset->info.is_output();
    if (dataset->state != CachedDataset::State::other_ranks || !due || dataset->flushed) continue;
    if (const Status flushed = flush_what_others_wrote(*dataset); !flushed)
      warn(
          "dataset {}, written by {} ranks, stays in the cache, because it cannot be copied to {}: "
          "{}",
          dataset->info.number, dataset->info.ranks, settings_.prefix, flushed.error().text);
  }
}

Status Session::restart_in_prefix(const Uuid& uuid) {
  const auto find = [&] {
    return std::find_if(datasets_.begin(), datasets_.end(),
                        [&](const CachedDataset& each) { return each.info.uuid == uuid; });
  };
  Status taken = flush_what_others_wrote(*find());
  find()->state = CachedDataset::State::other_ranks;
  if (taken) taken = take_copy(uuid);
  if (taken) return {};
  CachedDataset& dataset = *find();
  return leave_out(dataset, CachedDataset::State::left_alone, taken,
                   fmt::format("start it with {} ranks", dataset.info.ranks));
}

/// It is in the prefix directory now.
Status Session::take_copy(const Uuid& uuid) {
  const auto record = prefix_.listed(uuid);
  if (!record) return fail(Code::lost, "it is no longer in {}", settings_.prefix);
  Status taken = take_in_place(*record);
  if (!taken && is_damage(taken.error().code)) prefix_.note_failed(uuid, taken.error().text);
  return taken;
}

}  // namespace cairn
