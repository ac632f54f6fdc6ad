// The modes of new files and directories. The umask of the process takes permissions away.
#pragma once

#include <cstdint>

namespace cairn {

constexpr std::uint32_t directory_for_all = 0777;
constexpr std::uint32_t file_for_all = 0666;
constexpr std::uint32_t directory_for_owner = 0700;
constexpr std::uint32_t file_for_owner = 0600;

}  // namespace cairn
