// Writes what one group has of a step, and publishes the step if it is the last group to finish.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "files/files.hpp"
#include "rbio/plan.hpp"
#include "rbio/series_directory.hpp"

namespace cairn::rbio {

/// One write call is so long, and ends at a multiple of it in the file.
constexpr std::uint64_t write_bytes = std::uint64_t{8} << 20;

struct PartTask {
  PartHeader header;
  bool writes_header = false;  ///< one group of each part does
  bool is_direct = true;       ///< past the page cache, where that can be
  std::vector<Share> shares;   ///< of the group, in rank order
  Bytes buffer;                ///< the data, laid out by BufferLayout
  int writer = 0;              ///< of
  int writers = 1;
};

/// Asked before each piece, with how many bytes of the group's data should be written by now: it
/// may wait, and its error ends the writing. With 0 it does not wait.
using WriteGate = std::function<Status(std::uint64_t written)>;

/// Local; needs no other rank. On success the group's bytes are durable.
Result<Publication> write_part(Files& files, SeriesDirectory& series, const PartTask& task,
                               const WriteGate& gate);

}  // namespace cairn::rbio
