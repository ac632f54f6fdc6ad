// What one rank knows of its part of one dataset: the commit record (docs/format/rank-record.md).
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/settings.hpp"
#include "files/files.hpp"
#include "records/set_layout.hpp"

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

/// What all ranks of a dataset agree on.
struct DatasetInfo {
  Uuid uuid;                     ///< the identity; the rest is for people
  std::uint64_t number = 0;      ///< counts datasets of the job
  std::uint64_t checkpoint = 0;  ///< counts checkpoints of the job, 0 if it is none
  std::uint32_t flags = 0;       ///< SCR_FLAG_*
  std::uint32_t ranks = 0;       ///< ranks that wrote it
  std::string name;

  bool operator==(const DatasetInfo&) const = default;
  bool is_checkpoint() const { return (flags & 1U) != 0; }
  bool is_output() const { return (flags & 2U) != 0; }
};

/// One file of a rank. `name` is relative to the prefix directory, normalised, and cannot lead
/// outside.
struct FileEntry {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  FileTimes times;
};

struct RankRecord {
  DatasetInfo dataset;
  int rank = 0;
  std::vector<FileEntry> files;
  Encoding encoding;
  std::vector<std::uint32_t> data_crcs;    ///< one per data block
  std::vector<std::uint32_t> parity_crcs;  ///< one per parity block, by parity_index

  std::uint64_t data_bytes() const;
  /// Index of this rank in its set.
  int index_in_set() const;
};

inline constexpr std::uint32_t rank_record_version = 1;

/// The record as a sealed envelope.
Blob encode(const RankRecord& record);

/// From the payload of an envelope of the given version. A later version is newer_format; anything
/// that does not fit together is corrupt.
Result<RankRecord> decode_rank_record(Bytes payload, std::uint32_t version);

/// True for a relative path without empty, "." or ".." components, and no longer than a path may
/// be.
bool is_safe_name(const std::string& name);

}  // namespace cairn
