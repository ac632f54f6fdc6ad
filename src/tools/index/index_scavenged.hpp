// Scavenged datasets that are not published, for cairn index list.
#pragma once

#include "config/settings.hpp"
#include "prefix/keeper.hpp"
#include "tools/report.hpp"

namespace cairn {

/// Adds those to the report, newest first, without what is in `listing` and good, or was dropped or
/// deleted since: "scavenged": [{"number", "name", "uuid", "kind", "ranks", "state": "saved",
/// "refused", "outlived" or "incomplete", "text" (why, and what to do), "missing", "refused"}].
/// Logs what cannot be read.
void report_scavenged(Report& report, Files& files, const Settings& settings,
                      const Listing& listing, const Log& log);

}  // namespace cairn
