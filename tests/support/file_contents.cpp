#include "support/file_contents.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cairn {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void flip_bit(const std::string& path, std::optional<std::uint64_t> offset) {
  const auto time = std::filesystem::last_write_time(path);
  const auto at =
      static_cast<std::streamoff>(offset.value_or(std::filesystem::file_size(path) / 2));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at).put(byte);
    ASSERT_TRUE(file.good()) << path;
  }
  std::filesystem::last_write_time(path, time);
}

std::map<std::string, std::string> contents_below(const std::string& directory) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      found[entry.path().lexically_relative(directory)] = read_all(entry.path());
  return found;
}

}  // namespace cairn
