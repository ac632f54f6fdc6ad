// The command line of cairn rbio.
#pragma once

#include <CLI/CLI.hpp>

namespace cairn {

void add_rbio(CLI::App& app, int& exit_code);

}  // namespace cairn
