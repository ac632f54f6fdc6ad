// What a PrefixSide deletes of what was scavenged from the caches of dead jobs.

#include <algorithm>

#include "prefix/contents.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/remains.hpp"
#include "session/prefix_side.hpp"

namespace cairn {
namespace {

/// The number of the dataset is part of the name of its folder.
DatasetRecord record_of_deleted(const Remains& remains, const DatasetRecord* listed,
                                const std::string& name, const std::string& job_id) {
  if (listed != nullptr) return *listed;
  DatasetRecord record;
  record.info.uuid = remains.uuid;
  record.info.number = remains.number;
  record.info.name = name;
  record.job_id = job_id;
  return record;
}

}  // namespace

/// On rank 0, before the datasets of that name are taken out. Once they are known to be deleted
/// nobody publishes their copies any more, also where these cannot be removed now, or not be seen:
/// who has scavenged keeps that to himself.
Status PrefixSide::delete_saved(Keeper& keeper, const std::string& name) {
  std::vector<std::string> unreadable;  // the others count
  std::vector<std::string> caches;
  const auto find_saved = [&]() -> Result<std::vector<Remains>> {
    CAIRN_ASSIGN(caches, saved_caches(files_, site_.folder));
    return find_remains(files_, caches, RecordDetail::outline, &unreadable);
  };
  auto saved = find_saved();
  if (!saved) unreadable.push_back(saved.error().text);
  const auto listed = [&](const Uuid& uuid) {
    const DatasetRecord* record = find(uuid);
    return record != nullptr && record->info.name == name ? record : nullptr;
  };
  if (saved)
    std::erase_if(*saved, [&](const Remains& remains) {
      return remains.name != name && listed(remains.uuid) == nullptr;
    });
  Listing deleted = keeper.deleted();
  const std::size_t before = deleted.size();
  const auto note = [&](const DatasetRecord& record) {
    if (find_in(deleted, record.info.uuid) == nullptr) insert(deleted, record);
  };
  if (saved)
    for (const Remains& remains : *saved)
      note(record_of_deleted(remains, listed(remains.uuid), name, settings_.job_id));
  if (!unreadable.empty()) {
    for (const DatasetRecord& record : keeper.listing())
      if (record.info.name == name) note(record);
    tell(Severity::warning, "{} is deleted, but whether it was scavenged too cannot be seen: {}",
         name, unreadable.front());
  }
  if (deleted.size() > before) CAIRN_TRY(keeper.set_deleted(std::move(deleted)));
  if (!saved || saved->empty()) return {};
  const auto remove = [&]() -> Status {
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, caches));
    for (const Remains& remains : *saved) CAIRN_TRY(remove_remains(files_, remains));
    return {};
  };
  if (const Status removed = remove(); !removed)
    tell(Severity::warning, "{} is deleted, but what was scavenged of it stays in {}: {}", name,
         site_.folder.scavenged(), removed.error().text);
  return {};
}

/// All of it. First: what is deleted and was saved as well would be published again.
Status PrefixSide::purge_saved() {
  return on_keeper(comm_, site_, [&](Keeper&) -> Status {
    const auto remove = [&]() -> Result<bool> {
      CAIRN_ASSIGN(const auto caches, saved_caches(files_, site_.folder));
      if (caches.empty()) return false;
      CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, caches));
      for (const std::string& folder : {site_.folder.scavenged(), site_.folder.rebuilt()})
        CAIRN_TRY(remove_all(files_, folder));
      CAIRN_TRY(files_.sync_folder(site_.folder.root()));
      return true;
    };
    const auto removed = remove();
    if (!removed)  // somebody else may have scavenged, and have it for himself
      tell(Severity::warning, "SCR_PREFIX_PURGE=1: what was scavenged stays in {}: {}",
           site_.folder.scavenged(), removed.error().text);
    else if (*removed)
      tell(Severity::info, "SCR_PREFIX_PURGE=1: what was scavenged in {} is deleted",
           settings_.prefix);
    return {};
  });
}

}  // namespace cairn
