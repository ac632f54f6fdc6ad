// What was scavenged and is not published: for cairn index list.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

struct ScavengedDataset {
  DatasetInfo info;
  /// Why it cannot be made whole, set by set, as its records tell; none: it can.
  std::vector<std::string> missing;
  std::string refused;    ///< why the last rebuild has not published it
  bool outlived = false;  ///< nothing restarts from it: a newer checkpoint is in the listing
};

/// Newest first; without what is in `listing` and good, or was dropped or deleted since. What
/// cannot be looked at is told to `log`.
std::vector<ScavengedDataset> find_scavenged(Files& files, const Settings& settings,
                                             const Listing& listing, const Log& log);

/// A line for each.
std::string scavenged_text(const std::vector<ScavengedDataset>& datasets);

/// [{"number", "name", "uuid", "kind", "ranks", "state": "saved", "refused", "outlived" or
/// "incomplete", "missing", "refused"}]
nlohmann::ordered_json json_of(const std::vector<ScavengedDataset>& datasets);

}  // namespace cairn
