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
  bool failed = false;       ///< a restart could not read or use it
  bool complete = false;     ///< according to SCR's index
  std::string trouble;       ///< why it is not complete; empty if it may be
  bool may_pass = false;     ///< the trouble is transient: it could not be read now
  bool has_details = false;  ///< read_scr_details() has filled in the ranks
  std::vector<std::vector<ScrFile>> ranks;

  /// SCR has completed it, but its records cannot be read.
  bool is_damaged() const { return complete && id != 0 && !trouble.empty(); }
  /// "SCR's dataset 5 (ckpt.5)"
  std::string label() const;
  /// Always the same for one dataset, so that it is not imported twice.
  Uuid uuid() const;
};

struct ScrIndex {
  std::string current;               ///< a name; empty if there is none
  std::vector<ScrDataset> datasets;  ///< the oldest first
};

std::string scr_index_path(const std::string& prefix);
/// The directory of SCR's records of one dataset.
std::string scr_dataset_folder(const std::string& prefix, std::uint64_t id);

/// False only if SCR has certainly left no index.
bool may_have_scr_index(Files& files, const std::string& prefix);

/// Reads <prefix>/.scr/index.scr, and no other file of a dataset. not_found if SCR has left
/// nothing. Damage of one dataset is its trouble, and no error.
Result<ScrIndex> read_scr_index(Files& files, const std::string& prefix);

/// Reads, once, SCR's other records of this dataset: its files, and whether it is complete.
void read_scr_details(Files& files, const std::string& prefix, ScrDataset& dataset);

}  // namespace cairn
