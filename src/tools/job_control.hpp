// Commands of cairn that are programs of their own, found as git finds its own: job control, and
// whatever a site adds.
#pragma once

#include <string>
#include <vector>

namespace cairn {

/// Where the program cairn-<name> is: beside this one, else in the folder where Cairn installs such
/// programs. Empty if there is none, or the name has other characters than a-z, 0-9 and '-'.
std::string find_outside_command(const std::string& name);

/// Becomes the program at `path`; returns only if that fails, with errno set.
void become_outside_command(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace cairn
