// cairn index delete.
#include "prefix/deletion.hpp"
#include "prefix/unfinished.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

tl::unexpected<Error> fail_as_half_deleted(const DatasetRecord& record, const Error& error) {
  return fail(error.code,
              "{} is deleted, but some of its files could not be removed: {}; correct that and "
              "repeat the command",
              record.label(), error.text);
}

std::vector<std::string> uuids_of(const std::vector<const Remains*>& found) {
  std::vector<std::string> uuids;
  for (const Remains* remains : found) uuids.push_back(text_of(remains->uuid));
  return uuids;
}

/// An earlier command has taken it out, and tidy_up() has removed what was left of it.
Status end_removal(IndexChange& change) {
  CAIRN_ASSIGN(const DatasetRecord* found, find_dataset(change.half_deleted, change.command.name));
  if (found == nullptr) return fail_as_unknown(change.command, change.site.folder);
  CAIRN_ASSIGN(const Listing left, read_half_deleted(change.site.files, change.site.folder));
  if (find_in(left, found->info.uuid) != nullptr && !change.tidied)
    return fail_as_half_deleted(*found, change.tidied.error());
  note(change.report, *found, "is deleted");
  return {};
}

/// A dataset that exists only there. A later scavenge leaves it alone.
Status delete_scavenged(IndexChange& change) {
  const Site& site = change.site;
  CAIRN_ASSIGN(const auto saved, find_saved(site.files, site.folder));
  const auto found = saved_by_name(saved, change.keeper.known().deleted, change.command.name);
  if (found.empty()) return end_removal(change);
  if (found.size() > 1) return fail_as_ambiguous(change.command.name, uuids_of(found));
  const Remains& remains = *found.front();
  DatasetRecord record;
  record.info.uuid = remains.uuid;
  record.info.number = remains.number;
  record.info.name = remains.name;
  const DatasetRecord* begun = find_in(change.keeper.known().deleted, remains.uuid);
  if (begun != nullptr) record = *begun;
  if (const HeldRecord* held = record_of(remains)) record.info = held->record.dataset;
  CAIRN_TRY(note_deleted(change.keeper, {record}));
  if (const Status removed = remove_saved(site.files, site.clock, site.folder, remains); !removed)
    return fail(removed.error().code,
                "the scavenged copy of {} could not be removed completely: {}; correct that and "
                "repeat the command",
                record.label(), removed.error().text);
  note(change.report, record, "is deleted, with its scavenged copy");
  return {};
}

/// Comes first, while the dataset is still known by its name: these copies can keep it from being
/// deleted.
Status remove_copies_of(const DatasetRecord& record, const Site& site) {
  CAIRN_ASSIGN(const auto saved, find_saved(site.files, site.folder));
  for (const Remains& remains : saved)
    if (remains.uuid == record.info.uuid)
      CAIRN_TRY(remove_saved(site.files, site.clock, site.folder, remains));
  return {};
}

}  // namespace

Status delete_named(IndexChange& change) {
  auto found = change.named();
  const bool is_dropped = !found && found.error().code == Code::not_found;
  if (is_dropped) found = change.named_of_dropped();
  if (!found && found.error().code == Code::not_found) return delete_scavenged(change);
  CAIRN_ASSIGN(const DatasetRecord record, std::move(found));
  const auto remove_copies = [&](Keeper& keeper) -> Status {
    if (const Status removed = remove_copies_of(record, change.site); !removed)
      return fail(removed.error().code,
                  "{} was not deleted, because its scavenged copy cannot be removed: {}; correct "
                  "that and repeat the command",
                  record.label(), removed.error().text);
    return note_deleted(keeper, {record});
  };
  CAIRN_TRY(begin_deletion(change.comm, change.site, record, BesideUnread::begun, remove_copies));
  note(change.report, record, "is deleted");
  const auto kept = remove_files(change.comm, change.site, record.info, record.ranks_per_manifest);
  if (!kept) return fail_as_half_deleted(record, kept.error());
  if (const std::string said = said_of_kept(*kept); !said.empty()) note(change.report, said);
  return {};
}

}  // namespace cairn
