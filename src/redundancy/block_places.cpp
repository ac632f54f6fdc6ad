#include "redundancy/block_places.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace cairn {
namespace {

std::string text_of_blocks(std::uint64_t first, std::uint64_t end) {
  return end - first == 1 ? fmt::format("block {}", first)
                          : fmt::format("blocks {} to {}", first, end - 1);
}

std::string text_of_bytes(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("bytes {}-{}", begin, end - 1);
}

BadBlocks describe(const RankRecord& record, std::uint64_t first, std::uint64_t end,
                   const std::vector<std::string>& paths) {
  BadBlocks bad{record.rank, BlockKind::data, first, end, {}, {}};
  std::vector<std::string> bytes;
  for (const FileRange& range : places_of(record, first, end)) {
    bad.paths.push_back(paths[range.file]);
    bytes.push_back(text_of_bytes(range.begin, range.end));
  }
  if (bytes.size() > 1)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] += fmt::format(" of {}", name_of_path(bad.paths[i]));
  bad.text = fmt::format("{} does not match its checksum ({}: {})", fmt::join(bad.paths, " or "),
                         text_of_blocks(first, end), fmt::join(bytes, ", "));
  return bad;
}

}  // namespace

std::vector<FileRange> places_of(const RankRecord& record, std::uint64_t first, std::uint64_t end) {
  const Geometry geometry = SetLayout(record.encoding).geometry();
  const std::uint64_t from = geometry.data_offset(first);
  const std::uint64_t to =
      geometry.data_offset(end - 1) + geometry.data_length(end - 1, record.data_bytes());
  std::vector<FileRange> places;
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    const FileEntry& file = record.files[i];
    const std::uint64_t stop = start + file.length();
    if (start < to && from < stop)
      places.push_back({i, file.begin() + std::max(from, start) - start,
                        file.begin() + std::min(to, stop) - start});
    start = stop;
  }
  return places;
}

std::vector<BadBlocks> bad_data(const RankRecord& record, const BlockRanges& ranges,
                                const std::vector<std::string>& paths) {
  std::vector<BadBlocks> found;
  for (const auto& [first, end] : ranges) found.push_back(describe(record, first, end, paths));
  return found;
}

std::vector<BadBlocks> bad_parity(const RankRecord& record, const BlockRanges& ranges,
                                  const std::string& path) {
  const SetLayout layout(record.encoding);
  const int me = record.index_in_set();
  std::vector<BadBlocks> found;
  for (const auto& [first, end] : ranges) {
    // Those of a rank with several parity columns do not lie one after the other.
    const std::uint64_t begin = layout.parity_offset(me, first);
    const std::uint64_t stop = begin + layout.parity_length(me, first);
    const std::string bytes = end - first == 1 ? ": " + text_of_bytes(begin, stop) : "";
    found.push_back({record.rank,
                     BlockKind::parity,
                     first,
                     end,
                     {path},
                     fmt::format("{} does not match its checksum ({}{})", path,
                                 text_of_blocks(first, end), bytes)});
  }
  return found;
}

}  // namespace cairn
