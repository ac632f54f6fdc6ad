// The part of cairn index that changes things.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "prefix/keeper.hpp"
#include "tools/index/index_command.hpp"
#include "tools/report.hpp"

namespace cairn {

/// Adds to the report what the command did, and the dataset that it changed.
void note(Report& report, const DatasetRecord& record, std::string_view what);
void note(Report& report, const std::string& what);
/// Adds what could not be read or imported, and why: in JSON below `key`.
void note_failures(Report& report, const std::string& key, std::string_view what,
                   const std::vector<std::string>& lines);

/// Carries out an action other than list and show, as the owner of the prefix directory.
/// Warnings go to `log`. Errors: busy where another owner lives; not_found; those of the files.
/// What build cannot read, or import has refused, are failures of the report, and so is an error
/// after something was done.
Result<Report> change_index(const IndexCommand& command, Files& files, Clock& clock,
                            const Settings& settings, const Log& log);

}  // namespace cairn
