// Reads every byte of a step, and names all that is not as it was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "rbio/part_file.hpp"
#include "rbio/restore.hpp"

namespace cairn::rbio {

/// One thing that is wrong. corrupt: damaged or missing; newer_format; else it cannot be read now.
struct Trouble {
  std::string file;
  std::optional<ByteRange> bytes;  ///< where only these are bad
  Error error;                     ///< its text names the file, and the bytes
};

struct StepCheck {
  std::uint64_t parts = 0;
  std::uint64_t bytes = 0;  ///< of all part files that are there
  std::vector<Trouble> troubles;
};

/// Numbers of the part files in a directory, ascending.
Result<std::vector<std::uint32_t>> parts_in(Files& files, const std::string& step_path);

/// Header, table, gaps, all blocks of all parts, and that the parts belong together.
StepCheck check_step(Files& files, const std::string& step_path);

/// Header and tables alone, in one process; fails as StepIndex::load().
Result<StepIndex> read_step_index(Files& files, const std::string& step_path);

/// Header and table of one part. corrupt if it is missing.
Result<PartIndex> read_part_index(Files& files, const std::string& path);

}  // namespace cairn::rbio
