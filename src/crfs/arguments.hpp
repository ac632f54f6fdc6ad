// The command line of crfs and mount.crfs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crfs/mount_options.hpp"

namespace cairn {

/// `words`: the arguments. Returns the options of a mount; or nothing and an exit code, after it
/// has printed the text of --help or --version or the error. `called`: the name of the command; as
/// mount.crfs it takes the arguments of mount(8).
std::optional<MountOptions> parse_arguments(const std::string& called,
                                            std::vector<std::string> words, int& exit_code);

}  // namespace cairn
