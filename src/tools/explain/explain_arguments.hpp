// The command lines of cairn explain and cairn verify.
#pragma once

#include <CLI/CLI.hpp>

namespace cairn {

void add_explain(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);

}  // namespace cairn
