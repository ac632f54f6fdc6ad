// Reads and damages real files, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cairn {

std::string read_all(const std::string& path);

/// Changes one bit as a disk does, so the time of the file stays: of the byte at `offset`, or of
/// the one in the middle.
void flip_bit(const std::string& path, std::optional<std::uint64_t> offset = {});

/// The content of every file below a directory, by its path relative to that.
std::map<std::string, std::string> contents_below(const std::string& directory);

}  // namespace cairn
