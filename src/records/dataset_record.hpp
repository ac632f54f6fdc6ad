// The record of a whole dataset in the prefix directory (docs/format/dataset-record.md), and the
// listing of all of them.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "records/dataset_info.hpp"
#include "records/dataset_state.hpp"

namespace cairn {

struct DatasetRecord {
  DatasetInfo info;
  std::string job_id;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint32_t ranks_per_manifest = 1;
  bool settled = false;  ///< every file has its own name; else some still have their staged names
  std::int64_t flushed_us = 0;  ///< since 1970, as all times here; 0: never
  std::int64_t fetched_us = 0;
  std::int64_t failed_us = 0;  ///< could not be fetched, or the application could not use it
  std::string failure;         ///< why
  std::uint32_t attempts = 0;  ///< restarts begun from it since the last one that went well
  bool quarantined = false;    ///< no restart takes it until a user lifts it
  /// The label of the newer dataset that wrote files of the same names; empty: none has.
  std::string replaced_by;

  bool operator==(const DatasetRecord&) const = default;
  std::uint32_t manifests() const {
    return static_cast<std::uint32_t>((std::uint64_t{info.ranks} + ranks_per_manifest - 1) /
                                      ranks_per_manifest);
  }
  /// "dataset 5 (ckpt.5)"
  std::string label() const;
};

/// For a dataset that the index lists: a state for which is_listed() is true.
PrefixState state_of(const DatasetRecord& record);
/// The same, but ignores quarantine, which says nothing about the files.
PrefixState state_of_files(const DatasetRecord& record);

inline constexpr std::uint32_t dataset_record_version = 1;
inline constexpr std::uint32_t listing_version = 1;

/// Returns a sealed envelope.
Blob encode(const DatasetRecord& record);
/// Reads the whole content of a record's file. Errors: corrupt, newer_format.
Result<DatasetRecord> decode_dataset_record(Bytes content);

Blob encode(const std::vector<DatasetRecord>& listing);
Result<std::vector<DatasetRecord>> decode_listing(Bytes content);

}  // namespace cairn
