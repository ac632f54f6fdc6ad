#include "prefix/retention.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "prefix/deletion.hpp"

namespace cairn {
namespace {

/// On rank 0: of those that a purge drops, or of the others; null if there is none.
const DatasetRecord* oldest(const Site& site, bool is_dropped) {
  if (site.keeper == nullptr) return nullptr;
  const Listing& listing = site.keeper->known().listing;
  const auto last = std::find_if(listing.rbegin(), listing.rend(), [&](const auto& record) {
    return is_dropped_by_purge(record) == is_dropped;
  });
  return last == listing.rend() ? nullptr : &*last;
}

}  // namespace

/// Of the checkpoints the oldest goes, but first those from which no run restarts: they must not
/// push out what is good.
const DatasetRecord* Retention::next_to_go(const Keeper& keeper) const {
  const DatasetRecord* oldest = nullptr;
  const DatasetRecord* oldest_useless = nullptr;
  int checkpoints = 0;
  for (const DatasetRecord& record : keeper.known().listing) {
    if (!record.info.counts_in_window()) continue;
    ++checkpoints;
    oldest = &record;
    if (!may_restart_from(state_of(record))) oldest_useless = &record;
  }
  if (checkpoints <= settings_.prefix_size) return nullptr;
  return oldest_useless != nullptr ? oldest_useless : oldest;
}

void Retention::keep_to_window(Communicator& comm, const Site& site) const {
  while (settings_.prefix_size > 0) {
    const auto goes = share(comm, site.keeper != nullptr ? next_to_go(*site.keeper) : nullptr);
    if (!goes) return;
    if (const Status removed = remove(comm, site, *goes); !removed)
      return log_.warning("{}", removed.error().text);
  }
}

Status Retention::drop(Communicator& comm, const Site& site, const DatasetRecord& record) const {
  return on_keeper(comm, site, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(keeper.drop(record.info));
    return keeper.save_listing();
  });
}

Status Retention::remove(Communicator& comm, const Site& site, const DatasetRecord& record) const {
  CAIRN_TRY(take_out(comm, site, record));
  return remove_files_of(comm, site, record);
}

Status Retention::take_out(Communicator& comm, const Site& site,
                           const DatasetRecord& record) const {
  return as_not_deleted(begin_deletion(comm, site, record, BesideUnread::refused), record);
}

Status Retention::check_removal(const Keeper& keeper, const DatasetRecord& record) const {
  return as_not_deleted(check_deletion(keeper, record, BesideUnread::refused), record);
}

Status Retention::as_not_deleted(const Status& why, const DatasetRecord& record) const {
  if (why) return {};
  return fail(why.error().code, "{} was not deleted from {}: {}", record.label(), settings_.prefix,
              why.error().text);
}

Status Retention::remove_files_of(Communicator& comm, const Site& site,
                                  const DatasetRecord& record) const {
  const auto kept = remove_files(comm, site, record.info, record.ranks_per_manifest);
  if (!kept)
    return fail(kept.error().code,
                "{} is deleted from {}, but some of its files could not be removed: {}; the next "
                "run tries again",
                record.label(), settings_.prefix, kept.error().text);
  if (const std::string said = said_of_kept(*kept); !said.empty()) {
    const std::string text =
        fmt::format("{} is deleted from {}: {}", record.label(), settings_.prefix, said);
    if (kept->is_as_written())
      log_.info("{}", text);
    else
      log_.warning("{}", text);
  }
  return on_keeper(comm, site, [](Keeper& keeper) { return keeper.save_listing(); });
}

Status Retention::purge(Communicator& comm, const Site& site,
                        const std::vector<CachedPart>& cached) const {
  // All are out before any file goes: they keep none of each other.
  std::vector<DatasetRecord> goes;
  while (const auto record = share(comm, oldest(site, false))) {
    CAIRN_TRY(take_out(comm, site, *record));
    goes.push_back(*record);
  }
  std::vector<std::string> deleted;
  for (const DatasetRecord& record : goes) {
    CAIRN_TRY(remove_files_of(comm, site, record));
    deleted.push_back(record.info.name);
  }
  CAIRN_TRY(note_purged(comm, site, goes, cached));
  std::vector<std::string> dropped;
  while (const auto record = share(comm, oldest(site, true))) {
    CAIRN_TRY(drop(comm, site, *record));
    dropped.push_back(record->info.name);
  }
  log_purge(deleted, "deleted from");
  if (!dropped.empty())
    log_purge(dropped, "dropped (Cairn did not write their files, which stay) from");
  return {};
}

void Retention::log_purge(const std::vector<std::string>& names, std::string_view what) const {
  log_.info("SCR_PREFIX_PURGE=1: {} {} {} {}{}{}", names.size(),
            names.size() == 1 ? "dataset is" : "datasets are", what, settings_.prefix,
            names.empty() ? "" : ": ", fmt::join(names, ", "));
}

/// What the caches still have stays there, and is not to be copied again.
Status Retention::note_purged(Communicator& comm, const Site& site,
                              const std::vector<DatasetRecord>& purged,
                              const std::vector<CachedPart>& cached) const {
  std::vector<std::int64_t> is_cached(purged.size());
  for (const CachedPart& part : cached)
    for (std::size_t i = 0; i < purged.size(); ++i)
      if (purged[i].info.uuid == part.dataset) is_cached[i] = 1;
  if (is_cached.empty()) return {};
  comm.allreduce(is_cached, Reduce::max);
  return on_keeper(comm, site, [&](Keeper& keeper) -> Status {
    for (std::size_t i = 0; i < purged.size(); ++i)
      if (is_cached[i] != 0) CAIRN_TRY(keeper.note_purged(purged[i]));
    return {};
  });
}

}  // namespace cairn
