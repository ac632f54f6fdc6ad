// How much of a file is in the page cache, for tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "files/descriptor.hpp"
#include "files/posix_files.hpp"

namespace cairn {

inline constexpr std::size_t cache_page_bytes = 4096;

inline std::size_t pages_of(std::size_t bytes) {
  return (bytes + cache_page_bytes - 1) / cache_page_bytes;
}

inline std::size_t pages_in_cache(const std::string& path) {
  const OpenFile file = *open_regular(path, O_RDONLY, "read");
  void* mapping = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor.number(), 0);
  std::vector<unsigned char> is_there(pages_of(file.size()));
  EXPECT_EQ(::mincore(mapping, file.size(), is_there.data()), 0);
  ::munmap(mapping, file.size());
  return static_cast<std::size_t>(
      std::count_if(is_there.begin(), is_there.end(), [](auto page) { return (page & 1) != 0; }));
}

/// True if the file system supports O_DIRECT and is not memory. Makes a temporary file there.
inline bool takes_direct_writes(const std::string& directory) {
  const std::string path = directory + "/direct";
  const Descriptor direct(::open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  const auto is_memory = make_posix_files()->is_memory(directory);
  ::unlink(path.c_str());
  return direct.number() >= 0 && is_memory && !*is_memory;
}

}  // namespace cairn
