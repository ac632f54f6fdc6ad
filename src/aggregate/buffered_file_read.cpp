// Reading a BufferedFile: the data of its backing file, overlaid with the chunks in memory.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "aggregate/buffered_file.hpp"

namespace cairn {
namespace {

/// The chunks, in the order of their windows, have all of the range.
bool covered(const std::vector<std::shared_ptr<const Chunk>>& chunks, Range range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    std::uint64_t to = at;
    for (const auto& chunk : chunks) to = chunk->written().covered_to(to);
    if (to == at) return false;
    at = to;
  }
  return true;
}

void overlay(const std::vector<std::shared_ptr<const Chunk>>& chunks, std::uint64_t offset,
             MutableBytes buffer) {
  for (const auto& chunk : chunks) chunk->overlay(offset, buffer);
}

/// Bytes, or minus an errno; fewer than asked for only at the end.
ssize_t read_on(BackingFile& backing, std::uint64_t offset, MutableBytes buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = backing.read_at(offset + done, buffer.subspan(done));
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

/// 0 or minus an errno. Fills the buffer with zeros behind the end of the backing file.
int read_padded(BackingFile& backing, std::uint64_t offset, MutableBytes buffer) {
  const ssize_t got = read_on(backing, offset, buffer);
  if (got < 0) return static_cast<int>(got);
  const MutableBytes hole = buffer.subspan(static_cast<std::size_t>(got));
  std::memset(hole.data(), 0, hole.size());
  return 0;
}

}  // namespace

/// The older chunk of a window comes first.
std::vector<std::shared_ptr<const Chunk>> BufferedFile::chunks_in(Range range) const {
  std::vector<std::shared_ptr<const Chunk>> chunks;
  for (auto at = windows_.lower_bound(range.begin / chunk_bytes_);
       at != windows_.end() && at->first * chunk_bytes_ < range.end; ++at)
    for (const auto& chunk : {at->second.writing, at->second.filling})
      if (chunk) chunks.push_back(chunk);
  return chunks;
}

ssize_t BufferedFile::read(std::uint64_t offset, MutableBytes buffer) {
  Lock lock(mutex_);
  while (alone_) wait(lock);
  if (offset >= size_) return 0;
  buffer = buffer.first(std::min<std::uint64_t>(buffer.size(), size_ - offset));
  // A chunk that is written meanwhile stays in memory as long as `chunks` refers to it.
  const auto chunks = chunks_in({offset, offset + buffer.size()});
  if (!covered(chunks, {offset, offset + buffer.size()})) {
    const int error = visit_backing(lock, [&] { return read_padded(*backing_, offset, buffer); });
    if (error != 0) return error;
  }
  overlay(chunks, offset, buffer);
  return static_cast<ssize_t>(buffer.size());
}

}  // namespace cairn
