#include "rbio/field_stream.hpp"

#include <algorithm>

namespace cairn::rbio {
Status stream_field(Files& files, const std::string& step_path, const StepIndex& index,
                    std::size_t field, const std::function<Status(Bytes)>& sink) {
  Blob block(block_bytes);
  std::unique_ptr<File> file;
  std::string path;
  for (const auto& [part, piece] : index.pieces(field)) {
    const std::string wanted = step_path + "/" + part_name(part);
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
