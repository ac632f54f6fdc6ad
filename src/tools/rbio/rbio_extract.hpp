// cairn rbio extract: one field of a step, over all ranks, as a file of NumPy or raw.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "rbio/field.hpp"
#include "tools/rbio/rbio_command.hpp"

namespace cairn {

/// In place of the name of the output file.
inline constexpr std::string_view standard_output = "-";

struct ExtractedFacts {
  std::uint64_t step = 0;
  std::string field;
  std::string dtype;
  std::vector<std::uint64_t> shape;  ///< elements, or elements and components
  std::uint64_t bytes = 0;           ///< of the data
  std::string file;
};

/// What comes before the data in a .npy file, version 1.0, C order.
std::string npy_header(std::string_view dtype, const std::vector<std::uint64_t>& shape);

/// Copies the field to the file `command.output`; each block is written only after its checksum has
/// matched. The file gets its name once all is written and durable, so that an error leaves what
/// was there.
Result<ExtractedFacts> extract_to_file(const RbioCommand& command, Files& files, const Log& log);

/// As that, to `out`: on an error it has the blocks before the damaged one.
Status extract_to_stream(const RbioCommand& command, Files& files, std::ostream& out,
                         const Log& log);

}  // namespace cairn
