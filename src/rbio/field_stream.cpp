#include "rbio/field_stream.hpp"

#include <algorithm>

namespace cairn::rbio {
namespace {

/// A piece of one rank that wrote, in the order of these ranks.
struct PlacedPiece {
  std::uint32_t part = 0;
  const Piece* piece = nullptr;
};

std::vector<PlacedPiece> pieces_by_rank(const StepIndex& index, std::size_t field) {
  std::vector<PlacedPiece> placed(index.ranks());
  for (const PartIndex& part : index.parts())
    for (const RankEntry& entry : part.entries)
      placed[entry.rank] = {part.header.part, &entry.pieces[field]};
  return placed;
}

}  // namespace

Status stream_field(Files& files, const std::string& step_path, const StepIndex& index,
                    std::size_t field, const std::function<Status(Bytes)>& sink) {
  Blob block(block_bytes);
  std::unique_ptr<File> file;
  std::string path;
  for (const auto& [part, piece] : pieces_by_rank(index, field)) {
    const std::string wanted = step_path + "/" + SeriesDirectory::part_name(part);
    if (path != wanted) {  // pieces of one part follow each other
      path = wanted;
      CAIRN_ASSIGN(file, files.open(path));
    }
    for (std::uint64_t begin = 0; begin < piece->bytes; begin += block_bytes) {
      const auto content = MutableBytes(block).first(std::min(block_bytes, piece->bytes - begin));
      CAIRN_TRY(read_piece(*file, path, *piece, begin, content));
      CAIRN_TRY(sink(content));
    }
  }
  return {};
}

}  // namespace cairn::rbio
