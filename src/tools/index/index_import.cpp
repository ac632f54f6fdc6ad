#include <algorithm>

#include "base/count.hpp"
#include "base/units.hpp"
#include "prefix/contents.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/scr_import.hpp"
#include "tools/index/index_actions.hpp"
#include "tools/index/index_found.hpp"

namespace cairn {
namespace {

class Import {
 public:
  explicit Import(IndexChange& change)
      : alone_(change.comm),
        site_(change.site),
        keeper_(change.keeper),
        as_{change.settings.node_name, static_cast<std::uint32_t>(change.settings.block_bytes)},
        log_(change.log),
        report_(change.report) {}

  Status run() {
    CAIRN_ASSIGN(index_, read_scr_index(site_.files, site_.folder.prefix));
    CAIRN_ASSIGN(dropped_, read_dropped(site_.files, site_.folder));
    for (std::size_t i = 0; i < index_.datasets.size(); ++i) CAIRN_TRY(take(i));
    if (index_.datasets.empty())
      note(report_, fmt::format("SCR has no datasets in {}", site_.folder.prefix));
    return take_current();
  }

 private:
  /// An error only where the next one will not go better.
  Status take(std::size_t number) {
    const ScrDataset& dataset = index_.datasets[number];
    if (dataset.trouble.empty() && is_known(dataset.uuid())) {
      note(report_, dataset.label() + " was imported before");
      return {};
    }
    const auto done = import_dataset(alone_, site_, &index_, number, as_);
    if (!done && done.error().code == Code::busy) return tl::unexpected(done.error());
    if (done && !done->settled)
      log_.warning(
          "{} is imported, but its record is not complete yet; the next run completes it: {}",
          dataset.label(), done->settled.error().text);
    if (done)
      note(
          report_, done->record,
          fmt::format("is imported: {} of {}, {}{}", count_text(done->record.files, "file"),
                      count_text(done->record.info.ranks, "rank"), format_bytes(done->record.bytes),
                      dataset.failed ? "; a restart from it has failed" : ""));
    else
      note_failures(report_, "refused", "not imported",
                    {dataset.label() + ": " + done.error().text});
    return {};
  }

  /// What SCR_PREFIX_PURGE has passed over has no manifests, and was never imported.
  bool is_known(const Uuid& uuid) const {
    if (find_in(keeper_.known().listing, uuid) != nullptr) return true;
    const DatasetRecord* dropped = find_in(dropped_.listing, uuid);
    if (dropped == nullptr) return false;
    const std::string first = DatasetFolder::manifest(site_.folder.dropped(dropped->info), 0);
    const auto there = site_.files.info(first);
    return there || there.error().code != Code::not_found;
  }

  /// Unless nothing was taken over, or something newer than all of SCR's is there.
  Status take_current() {
    const Listing& listing = keeper_.known().listing;
    const auto newest = std::find_if(listing.begin(), listing.end(),
                                     [](const auto& one) { return one.info.is_checkpoint(); });
    if (report_.datasets.empty() || newest == listing.end() || !is_of_scr(*newest)) return {};
    const auto wanted = std::find_if(listing.begin(), listing.end(), [&](const auto& one) {
      return one.info.name == index_.current && is_of_scr(one) && one.info.is_checkpoint();
    });
    if (wanted != listing.end()) {
      CAIRN_TRY(keeper_.set_current(index_.current));
      note(report_, fmt::format("{} {}", index_.current, said_of_current(*wanted)));
    } else if (!index_.current.empty()) {
      const DatasetRecord* taken =
          next_to_fetch(listing, fetching(), keeper_.known().current(), {});
      log_.warning("{}, which SCR would restart from, could not be imported: a restart uses {}",
                   index_.current, taken == nullptr ? "none" : taken->info.name);
    }
    return {};
  }

  bool is_of_scr(const DatasetRecord& record) const {
    return std::any_of(index_.datasets.begin(), index_.datasets.end(),
                       [&](const auto& dataset) { return dataset.uuid() == record.info.uuid; });
  }

  Communicator& alone_;
  const Site& site_;
  Keeper& keeper_;
  const ImportAs as_;
  const Log& log_;
  Report& report_;
  ScrIndex index_;
  Dropped dropped_;
};

}  // namespace

std::string note_of_scr(Files& files, const PrefixFolder& folder) {
  if (!may_have_scr_index(files, folder.prefix)) return "";
  const auto index = read_scr_index(files, folder.prefix);
  if (!index)
    return fmt::format("what SCR left in {} is unknown: {}", folder.prefix, index.error().text);
  std::vector<std::string> damaged;
  const auto listing = read_listing(files, folder, damaged);
  const auto dropped = read_dropped(files, folder);
  if (!listing || !dropped) return "";  // which is reported elsewhere
  const Listing left = unknown_of_scr(*index, *listing, *dropped);
  if (left.empty()) return "";
  return fmt::format("SCR left {} in {} that {} not imported: \"cairn index import\" imports {}",
                     count_text(left.size(), "dataset"), folder.prefix,
                     left.size() == 1 ? "is" : "are", left.size() == 1 ? "it" : "them");
}

Status import_from_scr(IndexChange& change) { return Import(change).run(); }

}  // namespace cairn
