// The id of a prefix directory (docs/format/prefix-id-record.md): the directory keeps it when it is
// moved, and the caches of its jobs have it in their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// 64 random bits.
enum class PrefixId : std::uint64_t { none = 0 };

inline constexpr std::uint32_t prefix_id_version = 1;

/// 16 hexadecimal digits.
std::string text_of(PrefixId id);
/// Accepts only what text_of() returns, and not the text of PrefixId::none.
std::optional<PrefixId> parse_prefix_id(std::string_view text);

/// An id, with path and inode of the directory when the record was written. A copy of the directory
/// has the same record.
struct PrefixIdRecord {
  PrefixId id = PrefixId::none;
  std::string path;         ///< of the prefix directory
  std::uint64_t inode = 0;  ///< of .cairn in it

  bool operator==(const PrefixIdRecord&) const = default;
};

Blob encode(const PrefixIdRecord& record);
Result<PrefixIdRecord> decode_prefix_id_record(Bytes content);

}  // namespace cairn
