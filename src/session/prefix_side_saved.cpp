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
/// nobody publishes their copies any more, also where these cannot be removed now.
Status PrefixSide::delete_saved(Keeper& keeper, const std::string& name) {
  CAIRN_ASSIGN(const auto caches, saved_caches(files_, site_.folder));
  std::vector<std::string> unreadable;  // the others count
  CAIRN_ASSIGN(auto saved, find_remains(files_, caches, RecordDetail::outline, &unreadable));
  const auto listed = [&](const Remains& remains) {
    const DatasetRecord* record = find(remains.uuid);
    return record != nullptr && record->info.name == name ? record : nullptr;
  };
  std::erase_if(saved, [&](const Remains& remains) {
    return remains.name != name && listed(remains) == nullptr;
  });
  if (saved.empty()) return {};
  Listing deleted = keeper.deleted();
  for (const Remains& remains : saved)
    if (find_in(deleted, remains.uuid) == nullptr)
      insert(deleted, record_of_deleted(remains, listed(remains), name, settings_.job_id));
  CAIRN_TRY(keeper.set_deleted(std::move(deleted)));
  const auto remove = [&]() -> Status {
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, caches));
    for (const Remains& remains : saved) CAIRN_TRY(remove_remains(files_, remains));
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
    CAIRN_ASSIGN(const auto caches, saved_caches(files_, site_.folder));
    if (caches.empty()) return {};
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, caches));
    for (const std::string& folder : {site_.folder.scavenged(), site_.folder.rebuilt()})
      CAIRN_TRY(remove_all(files_, folder));
    tell(Severity::info, "SCR_PREFIX_PURGE=1: what was scavenged in {} is deleted",
         settings_.prefix);
    return files_.sync_folder(site_.folder.root());
  });
}

}  // namespace cairn
