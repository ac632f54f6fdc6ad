// What a PrefixSide deletes of what was scavenged from the caches of dead jobs.

#include <algorithm>

#include "prefix/contents.hpp"
#include "prefix/fetch_order.hpp"
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

Status remove_saved(Files& files, Clock& clock, const std::vector<std::string>& caches,
                    const std::vector<Remains>& saved) {
  if (saved.empty()) return {};
  CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files, clock, caches));
  for (const Remains& remains : saved) CAIRN_TRY(remove_remains(files, remains));
  return {};
}

}  // namespace

/// On rank 0, before the datasets of that name are taken out. Once they are known to be deleted
/// nobody publishes their copies any more, also where these cannot be removed, or read, now. Where
/// even their folder cannot be seen nothing is noted: a note goes only when no copy is seen.
Status PrefixSide::delete_saved(Keeper& keeper, const std::string& name) {
  const auto caches = saved_caches(files_, site_.folder);
  if (!caches) {
    tell_saved_unseen(name, caches.error());
    return {};
  }
  std::vector<std::string> unreadable;  // the others count
  CAIRN_ASSIGN(auto saved, find_remains(files_, *caches, RecordDetail::outline, &unreadable));
  const auto listed = [&](const Uuid& uuid) {
    const DatasetRecord* record = find(uuid);
    return record != nullptr && record->info.name == name ? record : nullptr;
  };
  std::erase_if(saved, [&](const Remains& remains) {
    return remains.name != name && listed(remains.uuid) == nullptr;
  });
  Listing deleted = keeper.deleted();
  const std::size_t before = deleted.size();
  const auto note = [&](const DatasetRecord& record) {
    if (find_in(deleted, record.info.uuid) == nullptr) insert(deleted, record);
  };
  for (const Remains& remains : saved)
    note(record_of_deleted(remains, listed(remains.uuid), name, settings_.job_id));
  for (const DatasetRecord& record : keeper.listing())
    if (record.info.name == name && is_saved(files_, site_.folder, record.info).value_or(true))
      note(record);
  if (deleted.size() > before) CAIRN_TRY(keeper.set_deleted(std::move(deleted)));
  if (const Status removed = remove_saved(files_, clock_, *caches, saved); !removed)
    tell(Severity::warning, "{} is deleted, but its scavenged copy in {} could not be removed: {}",
         name, site_.folder.scavenged(), removed.error().text);
  return {};
}

/// Who scavenges keeps it to himself: a colleague's deletions are not held up by that.
void PrefixSide::tell_saved_unseen(const std::string& name, const Error& why) {
  if (find_named(keeper_->listing(), name) == nullptr || std::exchange(told_saved_unseen_, true))
    return;
  tell(Severity::warning,
       "cannot find out whether {} was scavenged too; if so, cairn rebuild would publish it again: "
       "{}",
       name, why.text);
}

/// All of it. First: what is deleted and was saved as well would be published again.
Status PrefixSide::purge_saved() {
  return on_keeper(comm_, site_, [&](Keeper&) -> Status {
    const auto caches = saved_caches(files_, site_.folder);
    if (!caches) {  // somebody else may have scavenged, and keeps it to himself
      tell(Severity::warning,
           "SCR_PREFIX_PURGE=1: the scavenged copies were not deleted, and cairn rebuild would "
           "publish them: {}",
           caches.error().text);
      return {};
    }
    if (caches->empty()) return {};
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(files_, clock_, *caches));
    for (const std::string& folder : {site_.folder.scavenged(), site_.folder.rebuilt()})
      CAIRN_TRY(remove_all(files_, folder));
    tell(Severity::info, "SCR_PREFIX_PURGE=1: the scavenged copies in {} are deleted",
         settings_.prefix);
    return files_.sync_folder(site_.folder.root());
  });
}

}  // namespace cairn
