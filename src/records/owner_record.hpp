// The owner of a prefix directory (docs/format/prefix.md), and the current checkpoint there.
#pragma once

#include <string>

#include "base/error.hpp"
#include "records/dataset_info.hpp"

namespace cairn {

struct OwnerRecord {
  std::uint64_t epoch = 0;  ///< counts the owners of the directory, from 1
  Uuid run;                 ///< identity of this launch
  std::string job_id;
  std::string user;
  std::string host;
  std::uint64_t process = 0;
  std::int64_t started_us = 0;  ///< since 1970
  std::int64_t beat_us = 0;     ///< its last sign of life; 0: it has ended

  bool operator==(const OwnerRecord&) const = default;
};

inline constexpr std::uint32_t owner_record_version = 1;
inline constexpr std::uint32_t current_version = 1;

Blob encode(const OwnerRecord& record);
Result<OwnerRecord> decode_owner_record(Bytes content);

/// The name of the checkpoint with which a restart begins.
Blob encode_current(const std::string& name);
Result<std::string> decode_current(Bytes content);

}  // namespace cairn
