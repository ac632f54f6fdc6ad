#include "tools/index_scavenged.hpp"

#include <fmt/ranges.h>

#include "prefix/fetch_order.hpp"
#include "recovery/rebuild_sets.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"
#include "tools/record_json.hpp"

namespace cairn {
namespace {

std::string_view state_of(const ScavengedDataset& dataset) {
  if (!dataset.missing.empty()) return "incomplete";
  return dataset.outlived ? "outlived" : "saved";
}

/// By its records: a look at all files takes longer than a list may.
ScavengedDataset look_at(Files& files, const Settings& settings, const Remains& remains) {
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
  if (std::string loss = known_loss(files, {settings.prefix}, remains.uuid);
      dataset.missing.empty() && !loss.empty())
    dataset.missing = {std::move(loss)};
  return dataset;
}

std::string remedy_of(const ScavengedDataset& dataset) {
  if (!dataset.missing.empty()) return fmt::format("{}", fmt::join(dataset.missing, "; "));
  if (dataset.outlived)
    return fmt::format(
        "nothing restarts from it, as a newer checkpoint is there: cairn rebuild --dataset {} "
        "publishes it all the same",
        text_of(dataset.info.uuid));
  return "by its records it can be made whole: cairn rebuild reads it all, and publishes it";
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
  for (const Remains& remains : saved) {
    const KnownInPrefix known = known_in_prefix(remains.uuid, listing, dropped, {}, deleted);
    if (known.flushed || dropped.has(remains.uuid)) continue;
    found.push_back(look_at(files, settings, remains));
    found.back().outlived = is_outlived(found.back().info, listing);
  }
  return found;
}

}  // namespace

std::vector<ScavengedDataset> find_scavenged(Files& files, const Settings& settings,
                                             const Listing& listing, const Log& log) {
  auto found = find(files, settings, listing, log);
  if (!found) log.warning("what was scavenged cannot be seen: {}", found.error().text);
  return std::move(found).value_or(std::vector<ScavengedDataset>{});
}

std::string scavenged_text(const std::vector<ScavengedDataset>& datasets) {
  std::string text = datasets.empty() ? "" : "scavenged, and not published:\n";
  for (const ScavengedDataset& dataset : datasets) {
    const std::string name = dataset.info.name.empty() ? "" : " (" + dataset.info.name + ")";
    text += printable(fmt::format("dataset {}{} of {} ranks: {}: {}", dataset.info.number, name,
                                  dataset.info.ranks, state_of(dataset), remedy_of(dataset))) +
            "\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const std::vector<ScavengedDataset>& datasets) {
  auto json = nlohmann::ordered_json::array();
  for (const ScavengedDataset& dataset : datasets)
    json.push_back({{"number", dataset.info.number},
                    {"name", dataset.info.name},
                    {"uuid", text_of(dataset.info.uuid)},
                    {"kind", kind_of(dataset.info)},
                    {"ranks", dataset.info.ranks},
                    {"state", state_of(dataset)},
                    {"missing", dataset.missing}});
  return json;
}

}  // namespace cairn
