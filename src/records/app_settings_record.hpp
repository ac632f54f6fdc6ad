// The settings that the program has made with SCR_Config (docs/format/app-settings-record.md).
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "config/parser.hpp"

namespace cairn {

inline constexpr std::uint32_t app_settings_version = 1;

/// Line numbers are not stored, as the entries are from no file.
Blob encode_app_settings(const std::vector<Entry>& entries);
Result<std::vector<Entry>> decode_app_settings(Bytes content);

}  // namespace cairn
