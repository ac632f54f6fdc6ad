// The commands of cairn and its other names, as python/cairn/commands.txt lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct CommandRow {
  std::string_view name;
  std::string_view group;  ///< the task it belongs to in the list of commands
  bool is_outside;         ///< a separate program, cairn-<name>; else a subcommand of this one
  std::string_view summary;
};

/// In the order of the list.
std::span<const CommandRow> command_table();
/// nullptr if there is none.
const CommandRow* find_command(std::string_view name);
/// The summary of a command in the table.
std::string summary_of(std::string_view name);

/// True for commands that only scripts call; `cairn --help` does not list them.
bool is_for_scripts(const CommandRow& row);
/// True for commands that only job control calls; no document names them.
bool is_internal(const CommandRow& row);

/// Another name of the program cairn, and what it stands for: "scr_srun", {"run", "srun"}.
struct OtherName {
  std::string_view name;
  std::string_view words;
};
std::span<const OtherName> other_names();
/// Empty unless it is another name of cairn.
std::vector<std::string> words_of_other_name(std::string_view name);

/// The output of `cairn --help`: the commands by task.
std::string overview();

}  // namespace cairn
