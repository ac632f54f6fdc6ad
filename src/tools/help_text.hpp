// The form of the help of subcommands, which is that of the commands in Python too.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cairn {

class HelpText : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// The subcommands that a user may call.
std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
/// The options that a user may give, also those of option groups; without the positionals.
std::vector<const CLI::Option*> options_of(const CLI::App& app);
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);

/// "-c, --checkpoints"; the names alone.
std::vector<std::string> names_of(const CLI::Option& option);
/// "N", or "{block,cyclic}" where these are all values; empty for a flag.
std::string value_of(const CLI::Option& option);

}  // namespace cairn
