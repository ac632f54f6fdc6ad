// Commands of cairn that are separate programs, found in the same way as git's: job control, and
// additions of a site.
#pragma once

#include <string>
#include <vector>

namespace cairn {

/// Where the program cairn-<name> is: beside this one, else in the directory where Cairn installs
/// such programs. Empty if it does not exist, or the name has other characters than a-z, 0-9 and
/// '-'.
std::string find_outside_command(const std::string& name);

/// Becomes the program at `path`; returns only if that fails, with errno set.
void become_outside_command(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace cairn
