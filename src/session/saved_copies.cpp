#include "session/saved_copies.hpp"

#include <algorithm>

#include "prefix/contents.hpp"
#include "prefix/deletion.hpp"
#include "prefix/fetch_order.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/remains.hpp"

namespace cairn {
namespace {

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

Status remove_saved(Files& files, Clock& clock, const std::vector<std::string>& caches,
                    const std::vector<Remains>& saved) {
  if (saved.empty()) return {};
  CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files, clock, caches));
  for (const Remains& remains : saved) CAIRN_TRY(remove_remains(files, remains));
  return {};
}

}  // namespace

Status SavedCopies::remove(const Site& site, Keeper& keeper, const std::string& name) {
  const auto caches = saved_caches(site.files, site.folder);
  if (!caches) {
    warn_of_unseen(keeper, name, caches.error());
    return {};
  }
  std::vector<std::string> unreadable;  // the others count
  CAIRN_ASSIGN(auto saved, find_remains(site.files, *caches, RecordDetail::outline, &unreadable));
  const auto listed = [&](const Uuid& uuid) {
    const DatasetRecord* record = find_in(keeper.known().listing, uuid);
    return record != nullptr && record->info.name == name ? record : nullptr;
  };
  std::erase_if(saved, [&](const Remains& remains) {
    return remains.name != name && listed(remains.uuid) == nullptr;
  });
  Listing records;
  for (const Remains& remains : saved)
    records.push_back(record_of_deleted(remains, listed(remains.uuid), name, settings_.job_id));
  for (const DatasetRecord& record : keeper.known().listing)
    if (record.info.name == name && is_saved(site.files, site.folder, record.info).value_or(true))
      records.push_back(record);
  CAIRN_TRY(note_deleted(keeper, records));
  if (const Status removed = remove_saved(site.files, site.clock, *caches, saved); !removed)
    log_.warning("{} is deleted, but its scavenged copy in {} could not be removed: {}", name,
                 site.folder.saved().scavenged(), removed.error().text);
  return {};
}

/// Scavenged copies are private to the user who scavenged: other users can delete nevertheless.
void SavedCopies::warn_of_unseen(const Keeper& keeper, const std::string& name, const Error& why) {
  if (find_named(keeper.known().listing, name) == nullptr || !unseen_.is_first()) return;
  log_.warning(
      "cannot find out whether {} was scavenged too; if so, cairn rebuild would publish it again: "
      "{}",
      name, why.text);
}

Status SavedCopies::purge(const Site& site) {
  const auto caches = saved_caches(site.files, site.folder);
  if (!caches) {  // another user may have scavenged, whose copies are private
    log_.warning(
        "SCR_PREFIX_PURGE=1: the scavenged copies were not deleted, and cairn rebuild would "
        "publish them: {}",
        caches.error().text);
    return {};
  }
  if (caches->empty()) return {};
  CAIRN_ASSIGN(const CacheLocks locks, lock_caches(site.files, site.clock, *caches));
  for (const std::string& folder : {site.folder.saved().scavenged(), site.folder.saved().rebuilt()})
    CAIRN_TRY(remove_all(site.files, folder));
  log_.info("SCR_PREFIX_PURGE=1: the scavenged copies in {} are deleted", settings_.prefix);
  return site.files.sync_folder(site.folder.root());
}

}  // namespace cairn
