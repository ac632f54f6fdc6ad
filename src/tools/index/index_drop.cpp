// cairn index drop, drop --after and add.
#include "prefix/check.hpp"
#include "prefix/found_files.hpp"
#include "prefix/unread.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

constexpr std::size_t most_troubles_logged = 10;

void note_dropped(IndexChange& change, const DatasetRecord& record) {
  note(change.report, record, "is dropped; its files stay, and cairn index add puts it back");
}

Status drop(IndexChange& change, const DatasetRecord& record) {
  CAIRN_TRY(change.keeper.drop(record.info));
  note_dropped(change, record);
  return {};
}

/// Files of a dropped dataset may have been added to another one since.
Status refuse_shared_files(const IndexChange& change, const DatasetRecord& dropped) {
  if (!dropped.info.in_place()) return {};
  const Site& site = change.site;
  CAIRN_ASSIGN(const FileOwners owners,
               owners_of_files(site.files, site.folder, change.keeper.known().listing));
  std::vector<std::string> troubles;
  std::string shared;
  CAIRN_TRY(visit_ranks(site.files, site.folder.dropped(dropped.info), dropped, troubles,
                        [&](const RankRecord& record) {
                          for (const FileEntry& file : record.files)
                            if (owners.contains(file.name)) shared = file.name;
                        }));
  if (shared.empty()) return {};
  const DatasetInfo& owner = owners.at(shared);
  return fail(
      Code::bad_argument,
      "{} of {} now also belongs to dataset {} ({}): {} stays dropped while that dataset exists",
      shared, dropped.label(), owner.number, owner.name, dropped.info.name);
}

}  // namespace

Status drop_named(IndexChange& change) {
  const auto record = change.named();
  if (record) return drop(change, *record);
  CAIRN_ASSIGN(const DatasetRecord* begun, find_dataset(change.half_dropped, change.command.name));
  if (begun == nullptr || record.error().code != Code::not_found || !change.tidied)
    return tl::unexpected(record.error());
  note_dropped(change, *begun);  // by tidy_up(), which has ended what an earlier command had begun
  return {};
}

Status drop_after(IndexChange& change) {
  CAIRN_ASSIGN(const DatasetRecord last, change.named());
  CAIRN_TRY(check_unread(UnreadMatters::drop_newer, change.keeper.known().unread,
                         {last.info.uuid, last.label()}));
  const Listing before = change.keeper.known().listing;
  for (const DatasetRecord& record : before)
    if (record.info.uuid > last.info.uuid) CAIRN_TRY(drop(change, record));
  if (change.report.text.empty())
    note(change.report, fmt::format("nothing is newer than {}", last.label()));
  return {};
}

Status put_back(IndexChange& change) {
  const Site& site = change.site;
  CAIRN_ASSIGN(const DatasetRecord record, change.named_of_dropped());
  CAIRN_TRY(refuse_shared_files(change, record));
  CAIRN_ASSIGN(const CheckAccount account,
               check_dataset(site.files, site.io, site.folder, site.folder.dropped(record.info),
                             record, CheckDepth::sizes));
  for (std::size_t i = 0; i < account.troubles.size() && i < most_troubles_logged; ++i)
    change.log.warning("{}", account.troubles[i]);
  if (!account.troubles.empty())
    return fail(Code::lost,
                "{} stays dropped, because {} of its files are missing or have another size",
                record.label(), account.troubles.size());
  CAIRN_TRY(change.keeper.put_back(record));
  if (!record.settled) tidy_up(change);
  note(change.report, record, "is in the list again");
  return {};
}

}  // namespace cairn
