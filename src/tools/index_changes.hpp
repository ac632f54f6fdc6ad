// The part of cairn index that changes things.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "prefix/keeper.hpp"
#include "tools/index_command.hpp"

namespace cairn {

/// What is to be said of a checkpoint that was made the current one.
std::string said_of_current(const DatasetRecord& record);

struct IndexChange {
  Listing datasets;                  ///< those that were changed, as they are now
  std::vector<std::string> lines;    ///< what has happened, for people
  std::vector<std::string> damaged;  ///< build: records that nobody can read
  std::vector<std::string> unread;   ///< build: those that cannot be read now
  std::vector<std::string> refused;  ///< import: datasets that stay SCR's, with the reasons

  /// Takes in a dataset that was changed, and what has happened to it.
  void note(const DatasetRecord& record, std::string_view what);
};

/// Does what an action other than list and show says, as the owner of the prefix directory.
/// Warnings go to `log`. Errors: busy where another owner lives; not_found; those of the files.
Result<IndexChange> change_index(const IndexCommand& command, Files& files, Clock& clock,
                                 const Settings& settings, const Log& log);

}  // namespace cairn
