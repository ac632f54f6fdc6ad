// cairn commands: the table of commands with their options, for the generator of completions and
// for tests.
#pragma once

#include <CLI/CLI.hpp>

namespace cairn {

/// {"commands": [{"name", "group", "summary", "is_python", "help": HELP}], "names": {NAME: WORDS},
/// "topics": {NAME: TITLE}}.
/// HELP has the options of a native command: {"options": [{"names", "value", "help"}], "arguments":
/// [{"value", "help"}], "commands": {NAME: HELP}}.
void add_commands_command(CLI::App& app, int& exit_code);

}  // namespace cairn
