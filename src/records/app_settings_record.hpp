// What the program has set by SCR_Config (docs/format/app-settings-record.md).
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "config/parser.hpp"

namespace cairn {

inline constexpr std::uint32_t app_settings_version = 1;

/// Lines are left out: the entries are from no file.
Blob encode_app_settings(const std::vector<Entry>& entries);
Result<std::vector<Entry>> decode_app_settings(Bytes content);

}  // namespace cairn
