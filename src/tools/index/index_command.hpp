// cairn index: lists and changes the datasets of a prefix directory.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// With json, {"prefix", ...} and
///   list: "current", "restart" (the name of what one begins with), "scavenged" (as
///   index_scavenged.hpp has it), "damaged" (records that are), "unread" (those that cannot be read
///   now), "note" (what SCR left), "datasets", or "dropped" where these are asked for; newest first
///   show: "dataset", "current", "dropped" and, where asked for,
///   "files": [{"rank", ...}] with "troubles" (records of ranks that cannot be read), and
///         "check": {"files", "bytes", "troubles"}
///   else: "action", "done" (lines), "datasets": those that were changed; "damaged" and
///   "unread" by build, "refused" by import
/// where a dataset has the fields of record_json.hpp.
struct IndexCommand {
  enum class Action {
    list,
    show,
    current,
    drop,
    drop_after,
    remove,
    add,
    build,
    quarantine,
    lift,
    add_files,
    import,
  };
  Action action = Action::list;
  std::string name;                     ///< of a dataset: the newest of that name, or its UUID
  std::optional<std::uint64_t> number;  ///< build: that of a dataset that must be there then
  /// add_files: either names of files, in which "{rank}" stands for the rank, and the number of
  /// ranks; or a file that lists them, a line "RANK NAME" each.
  std::vector<std::string> names;
  std::optional<std::uint32_t> ranks;
  std::string list_file;
  JobSettingsSource source;

  std::size_t columns = 80;  ///< list: tables for people are not wider
  bool has_colour = false;
  bool dropped = false;  ///< list: the dropped datasets instead
  bool files = false;    ///< show: the files of each rank
  bool check = false;    ///< show: read every file
  bool force = false;    ///< the user says that the owner of the directory is dead
  bool json = false;
};

/// Started by `process`. list and show change nothing and need no lock. The others own the prefix
/// directory while they work, and end what earlier runs have left half done. Returns the exit code:
/// 0; 1 if it could not be done, a check has found damage, list, show --files or build have found a
/// record that cannot be read, or import has refused a dataset.
int run_index_command(const IndexCommand& command, Files& files, Clock& clock,
                      const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
