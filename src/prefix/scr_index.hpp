// What SCR 3 has recorded of the datasets in a prefix directory (docs/format/scr3.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/dataset_info.hpp"

namespace cairn {

struct ScrFile {
  std::string name;  ///< relative to the prefix directory
  std::optional<std::uint64_t> size;
  std::optional<std::uint32_t> crc32;
};

struct ScrDataset {
  std::uint64_t id = 0;
  std::string name;
  std::int64_t created_us = 0;
  std::uint64_t checkpoint = 0;  ///< counts checkpoints, 0 if it is none
  bool output = false;
  std::string job_id;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool failed = false;  ///< a restart could not read or use it
  std::string trouble;  ///< why it is no whole dataset; empty if it may be one
  std::vector<std::vector<ScrFile>> ranks;

  /// "SCR's dataset 5 (ckpt.5)"
  std::string label() const;
  /// Of one dataset always the same, so that it is not taken over twice.
  Uuid uuid() const;
};

struct ScrIndex {
  std::string current;               ///< a name; empty if there is none
  std::vector<ScrDataset> datasets;  ///< the oldest first
};

/// Reads <prefix>/.scr. not_found where SCR has left nothing. What is wrong with one dataset is its
/// trouble, and no error.
Result<ScrIndex> read_scr_index(Files& files, const std::string& prefix);

}  // namespace cairn
