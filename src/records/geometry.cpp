#include "records/geometry.hpp"

#include <algorithm>

namespace cairn {

std::uint64_t Geometry::data_offset(std::uint64_t index) const {
  const std::uint64_t full = full_rows * columns;
  return index <= full ? index * block_bytes : full * block_bytes + (index - full) * tail_bytes;
}

std::uint32_t Geometry::data_length(std::uint64_t index, std::uint64_t data_bytes) const {
  const std::uint64_t from = data_offset(index);
  if (from >= data_bytes) return 0;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(width(index / columns), data_bytes - from));
}

std::uint64_t Geometry::data_blocks(std::uint64_t data_bytes) const {
  const std::uint64_t full = full_rows * columns;
  if (data_bytes <= full * block_bytes) return (data_bytes + block_bytes - 1) / block_bytes;
  return full + (data_bytes - full * block_bytes + tail_bytes - 1) / tail_bytes;
}

Geometry make_geometry(std::uint64_t largest_bytes, std::uint32_t columns,
                       std::uint32_t block_bytes) {
  Geometry geometry{block_bytes, columns, 0, 0};
  const std::uint64_t row_bytes = std::uint64_t{block_bytes} * columns;
  geometry.full_rows = largest_bytes / row_bytes;
  const std::uint64_t rest = largest_bytes % row_bytes;
  geometry.tail_bytes = static_cast<std::uint32_t>((rest + columns - 1) / columns);
  return geometry;
}

}  // namespace cairn
