// The identity of a dataset, with which every record of it begins.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "records/wire.hpp"

namespace cairn {

/// The identity and age of a dataset: datasets sort by the time of their beginning, and no two have
/// the same Uuid.
struct Uuid {
  std::int64_t time_us = 0;  ///< strictly later than in every older dataset that the job knew
  std::int64_t chance = 0;   ///< 63 random bits
  auto operator<=>(const Uuid&) const = default;
};

/// 32 hexadecimal digits.
std::string text_of(const Uuid& uuid);
/// The inverse; accepts nothing else.
std::optional<Uuid> parse_uuid(std::string_view text);

/// In DatasetInfo::flags, beside those of scr.h: the program wrote the files under their own names
/// in the prefix directory.
inline constexpr std::uint32_t flag_in_place = 1U << 2;
/// Only with flag_in_place: the files existed before, and no call of Cairn wrote them. Cairn
/// deletes them only if a user names the dataset.
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
  /// SCR_PREFIX_SIZE counts it, and may delete it. All others stay until a user names them.
  bool counts_in_window() const { return is_checkpoint() && !is_output() && !was_found(); }
};

void put(Encoder& out, const Uuid& uuid);
Uuid get_uuid(Decoder& in);
void put(Encoder& out, const DatasetInfo& dataset);
DatasetInfo get_dataset(Decoder& in);

}  // namespace cairn
