// Which dataset: what every record of it begins with.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "records/wire.hpp"

namespace cairn {

/// Identity and age in one: datasets sort by when they were begun, and two never share one.
struct Uuid {
  std::int64_t time_us = 0;  ///< strictly later than every older dataset the job knew of
  std::int64_t chance = 0;   ///< 63 random bits
  auto operator<=>(const Uuid&) const = default;
};

/// 32 hexadecimal digits.
std::string text_of(const Uuid& uuid);
/// The other way; nothing else is taken.
std::optional<Uuid> parse_uuid(std::string_view text);

/// In DatasetInfo::flags, beside those of scr.h: the program has written the files where they are,
/// under their own names in the prefix directory.
inline constexpr std::uint32_t flag_in_place = 1U << 2;
/// With that: the files were there before, by no call of Cairn. Nothing but a user who names the
/// dataset has them deleted.
inline constexpr std::uint32_t flag_found = 1U << 3;

/// What all ranks of a dataset agree on.
struct DatasetInfo {
  Uuid uuid;                     ///< the identity; the rest is for people
  std::uint64_t number = 0;      ///< counts datasets of the job
  std::uint64_t checkpoint = 0;  ///< counts checkpoints of the job, 0 if it is none
  std::uint32_t flags = 0;       ///< SCR_FLAG_*, flag_in_place, flag_found
  std::uint32_t ranks = 0;       ///< ranks that wrote it
  std::string name;

  bool operator==(const DatasetInfo&) const = default;
  bool is_checkpoint() const { return (flags & 1U) != 0; }
  bool is_output() const { return (flags & 2U) != 0; }
  bool in_place() const { return (flags & flag_in_place) != 0; }
  bool was_found() const { return (flags & flag_found) != 0; }
};

void put(Encoder& out, const Uuid& uuid);
Uuid get_uuid(Decoder& in);
void put(Encoder& out, const DatasetInfo& dataset);
DatasetInfo get_dataset(Decoder& in);

}  // namespace cairn
