// The command line of crfs and mount.crfs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crfs/mount_options.hpp"

namespace cairn {

/// What follows the name of the command. A mount, or nothing and the exit code after --help,
/// --version or a wrong usage, which were told. `called`: the name it was called by; mount.crfs
/// takes the arguments that mount(8) gives to it.
std::optional<MountOptions> parse_arguments(const std::string& called,
                                            std::vector<std::string> words, int& exit_code);

}  // namespace cairn
