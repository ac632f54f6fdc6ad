// One open file of the real file system, and a window on one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "files/descriptor.hpp"
#include "files/files.hpp"

namespace cairn {

inline constexpr std::int64_t ns_per_s = 1'000'000'000;
std::array<timespec, 2> timespecs_of(const FileTimes& times);

/// `file` is a regular file; `path` is for the text of errors.
std::unique_ptr<File> make_posix_file(OpenFile file, std::string path);

/// For a file that is open for reading only: its size counts as constant.
std::unique_ptr<File> make_posix_reader(OpenFile file, std::string path);

/// See Files::view.
Result<std::unique_ptr<View>> make_posix_view(const OpenFile& file, std::string path);

/// True for the type of a file system that is main memory.
bool is_memory_file_system(std::uint64_t type);

/// True if syncfs is as reliable as fsync of each file. The client of a parallel file system may
/// send the data without waiting until the servers have them on disk.
bool is_local_disk_file_system(std::uint64_t type);

}  // namespace cairn
