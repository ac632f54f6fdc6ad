#include "prefix/deletion.hpp"

#include "prefix/unread.hpp"

namespace cairn {

Status check_deletion(const Keeper& keeper, const DatasetRecord& /*record*/, BesideUnread unread) {
  return unread == BesideUnread::refused
             ? check_unread(UnreadMatters::remove_files, keeper.known().unread)
             : Status{};
}

Status begin_deletion(Communicator& comm, const Site& site, const DatasetRecord& record,
                      BesideUnread unread, const std::function<Status(Keeper&)>& before) {
  return on_keeper(comm, site, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(check_deletion(keeper, record, unread));
    if (before) CAIRN_TRY(before(keeper));
    return keeper.take_out_for_good(record);
  });
}

Status note_deleted(Keeper& keeper, const Listing& records) {
  Listing deleted = keeper.known().deleted;
  for (const DatasetRecord& record : records)
    if (find_in(deleted, record.info.uuid) == nullptr) insert(deleted, record);
  if (deleted.size() == keeper.known().deleted.size()) return {};
  return keeper.set_deleted(std::move(deleted));
}

}  // namespace cairn
