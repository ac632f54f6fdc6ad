#include "tools/job_control.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace cairn {
namespace {

/// Keeps the search within its directories.
bool is_command_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

std::string find_outside_command(const std::string& name) {
  if (!is_command_name(name)) return "";
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const auto beside = self.parent_path();
  for (const auto& folder : {beside, beside / CAIRN_FROM_BIN_TO_LIBEXEC}) {
    const std::string path = (folder / ("cairn-" + name)).lexically_normal();
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

void become_outside_command(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(path.c_str(), words.data());
}

}  // namespace cairn
