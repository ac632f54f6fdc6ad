#include "prefix/choose_current.hpp"

#include "files/modes.hpp"

namespace cairn {
namespace {

std::string mark_in(const std::string& dataset_folder) { return dataset_folder + "/passed_over"; }

}  // namespace

bool is_passed_over(Files& files, const std::string& dataset_folder) {
  return files.info(mark_in(dataset_folder)).has_value();
}

Status choose_current(const Site& site, Keeper& keeper, const DatasetInfo& chosen) {
  for (const DatasetRecord& record : keeper.known().listing) {
    if (record.settled || !record.info.is_checkpoint() || record.info.uuid <= chosen.uuid) continue;
    const std::string dataset = site.folder.dataset(record.info);
    CAIRN_TRY(site.files.create(mark_in(dataset), file_for_all));
    CAIRN_TRY(site.files.sync_folder(dataset));
  }
  return keeper.set_current(chosen.name);
}

}  // namespace cairn
