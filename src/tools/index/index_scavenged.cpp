#include "tools/index/index_scavenged.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/count.hpp"
#include "comm/alone.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/unfinished.hpp"
#include "recovery/rebuild_sets.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"

namespace cairn {
namespace {

struct ScavengedDataset {
  DatasetInfo info;
  /// Why it cannot be rebuilt, set by set, according to its records; empty: it can.
  std::vector<std::string> missing;
  std::string refused;    ///< why the last rebuild did not publish it
  bool outlived = false;  ///< a newer checkpoint is in the listing, so no run restarts from it
};

std::string_view state_of(const ScavengedDataset& dataset) {
  if (!dataset.missing.empty()) return "incomplete";
  if (!dataset.refused.empty()) return "refused";
  return dataset.outlived ? "outlived" : "saved";
}

/// What else is needed had been flushed.
bool is_ended_by(const std::vector<UnfinishedFlush>& unfinished, const Remains& saved) {
  return std::any_of(unfinished.begin(), unfinished.end(), [&](const UnfinishedFlush& flush) {
    return flush.plan.info.uuid == saved.uuid && flush.is_done_but_for(ranks_with_record(saved));
  });
}

/// From its records only, as checking all files would take too long for a list.
ScavengedDataset look_at(Files& files, const Settings& settings, const Remains& remains,
                         const std::vector<UnfinishedFlush>& unfinished) {
  ScavengedDataset dataset;
  dataset.info.uuid = remains.uuid;
  dataset.info.number = remains.number;
  if (const HeldRecord* held = record_of(remains)) dataset.info = held->record.dataset;
  const Summary summary = summarise(remains);
  if (summary.generation == 0 || summary.newer)
    dataset.missing = {reason_of(judge(summary, remains.ranks, settings.distribute), summary)};
  else
    for (const Error& error : look_at_records(files, remains))
      dataset.missing.push_back(error.text);
  if (is_ended_by(unfinished, remains)) dataset.missing.clear();
  KnownFailure failure = known_failure(files, {settings.prefix}, remains.uuid);
  if (dataset.missing.empty() && !failure.lost.empty()) dataset.missing = {std::move(failure.lost)};
  dataset.refused = std::move(failure.refused);
  return dataset;
}

std::string remedy_of(const ScavengedDataset& dataset) {
  if (!dataset.missing.empty()) return fmt::format("{}", fmt::join(dataset.missing, "; "));
  if (!dataset.refused.empty())
    return fmt::format(
        "{}; then cairn rebuild {} publishes it, or cairn index delete {} "
        "removes what was saved",
        dataset.refused, text_of(dataset.info.uuid), text_of(dataset.info.uuid));
  if (dataset.outlived)
    return fmt::format(
        "no restart uses it, because a newer checkpoint exists; cairn rebuild {} "
        "publishes it nevertheless",
        text_of(dataset.info.uuid));
  return "can be made whole, according to its records: cairn rebuild checks and publishes it";
}

Result<std::vector<ScavengedDataset>> find(Files& files, const Settings& settings,
                                           const Listing& listing, const Log& log) {
  const PrefixFolder folder{settings.prefix};
  std::vector<ScavengedDataset> found;
  std::vector<std::string> unreadable;
  CAIRN_ASSIGN(const std::vector<Remains> saved, find_saved(files, folder, &unreadable));
  for (const std::string& trouble : unreadable) log.warning("{}", trouble);
  if (saved.empty()) return found;
  CAIRN_ASSIGN(const Dropped dropped, read_dropped(files, folder));
  CAIRN_ASSIGN(const Listing deleted, read_deleted(files, folder));
  Alone alone;
  std::vector<std::string> unknown;
  const auto unfinished = read_unfinished(alone, files, folder, listing, &unknown);
  if (!unfinished) unknown.push_back(unfinished.error().text);
  for (const std::string& why : unknown)
    log.warning("unfinished flushes cannot be listed: {}", why);
  for (const Remains& remains : saved) {
    if (is_flushed(state_in_prefix(remains.uuid, listing, {}, dropped, {}, deleted))) continue;
    found.push_back(
        look_at(files, settings, remains, unfinished.value_or(std::vector<UnfinishedFlush>{})));
    found.back().outlived = is_outlived(found.back().info, listing);
  }
  return found;
}

void add(Report& report, const ScavengedDataset& dataset) {
  const DatasetInfo& info = dataset.info;
  report.facts["scavenged"].push_back({{"number", info.number},
                                       {"name", info.name},
                                       {"uuid", text_of(info.uuid)},
                                       {"kind", kind_of(info)},
                                       {"ranks", info.ranks},
                                       {"state", state_of(dataset)},
                                       {"text", remedy_of(dataset)},
                                       {"missing", dataset.missing},
                                       {"refused", dataset.refused}});
  report.line("{} of {}: {}: {}", dataset_label(info.number, info.name),
              count_text(info.ranks, "rank"), state_of(dataset), remedy_of(dataset));
}

}  // namespace

void report_scavenged(Report& report, Files& files, const Settings& settings,
                      const Listing& listing, const Log& log) {
  const auto found = find(files, settings, listing, log);
  if (!found) log.warning("scavenged datasets cannot be listed: {}", found.error().text);
  if (!found || found->empty()) return;
  report.line("scavenged, and not published:");
  for (const ScavengedDataset& dataset : *found) add(report, dataset);
}

}  // namespace cairn
