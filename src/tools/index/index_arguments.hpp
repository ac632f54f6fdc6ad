// How cairn index, cairn print and scr_index are called.
#pragma once

#include <CLI/CLI.hpp>

namespace cairn {

void add_index(CLI::App& app, int& exit_code);
void add_print(CLI::App& app, int& exit_code);

/// The options of SCR's command in place of subcommands. Not in the list of commands: it is what
/// the name scr_index stands for.
void add_scr_index(CLI::App& app, int& exit_code);

}  // namespace cairn
