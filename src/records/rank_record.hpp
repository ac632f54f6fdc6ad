// What one rank knows of its part of one dataset: the commit record (docs/format/rank-record.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/settings.hpp"
#include "files/files.hpp"
#include "records/dataset_info.hpp"
#include "records/set_layout.hpp"

namespace cairn {

/// Bytes [begin, begin + length) of a file.
struct FilePart {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
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
  /// What of the file is this rank's data, where several ranks have written it; else all of it is.
  std::optional<FilePart> part{};

  std::uint64_t begin() const { return part ? part->begin : 0; }
  std::uint64_t length() const { return part ? part->length : size; }
  /// True for one of those who share a file that is not empty: so it is counted once.
  bool begins_here() const { return begin() == 0 && (length() > 0 || size == 0); }
};

/// Of a part that is written and not protected yet: nothing of it has a checksum, and nothing is
/// synced. It is what the program wrote as long as its node runs and its files have the size and
/// the time of change that the record names.
struct Exposure {
  std::string boot;           ///< of the node that wrote it (Files::boot())
  std::int64_t since_us = 0;  ///< when it was written, since 1970

  bool operator==(const Exposure&) const = default;
};

struct RankRecord {
  DatasetInfo dataset;
  int rank = 0;
  std::vector<FileEntry> files;
  Encoding encoding;
  std::vector<std::uint32_t> data_crcs;    ///< one per data block
  std::vector<std::uint32_t> parity_crcs;  ///< one per parity block, by parity_index
  std::optional<Exposure> exposure{};      ///< with it there are no checksums, and a set of one

  std::uint64_t data_bytes() const;
  /// Index of this rank in its set.
  int index_in_set() const;
  /// Where this rank ran when the set was made.
  const std::string& node() const;
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

/// True for what Cairn keeps in this prefix directory, or in one below it, and for files on the way
/// to their names, which begin with ".cairn.". No file of a dataset may have such a name.
bool is_own_name(const std::string& name);

}  // namespace cairn
