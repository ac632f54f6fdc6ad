#include "aggregate/backing_write.hpp"

#include <cerrno>
#include <span>

namespace cairn {
namespace {

/// Pieces one behind the other.
struct Operation {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<Bytes> pieces;
};

std::vector<Operation> operations_of(const std::vector<std::shared_ptr<Chunk>>& chunks,
                                     std::uint64_t bytes_most) {
  std::vector<Operation> operations;
  const auto add = [&](std::uint64_t offset, Bytes piece) {
    if (operations.empty() || operations.back().offset + operations.back().bytes != offset ||
        operations.back().bytes + piece.size() > bytes_most ||
        operations.back().pieces.size() == pieces_most)
      operations.push_back({offset, 0, {}});
    operations.back().bytes += piece.size();
    operations.back().pieces.push_back(piece);
  };
  for (const auto& chunk : chunks)
    for (const Range& range : chunk->written().all())
      for (std::uint64_t from = range.begin; from < range.end; from += bytes_most)
        add(from, chunk->bytes({from, std::min(range.end, from + bytes_most)}));
  return operations;
}

/// How many bytes were written, as the system tells it.
ssize_t write_once(BackingFile& backing, std::uint64_t offset, std::span<const Bytes> pieces) {
  if (pieces.size() == 1) return backing.write_at(offset, pieces.front());
  return backing.write_pieces_at(offset, pieces.data(), static_cast<int>(pieces.size()));
}

/// Without the first `bytes`.
std::span<Bytes> rest_of(std::span<Bytes> pieces, std::uint64_t bytes) {
  while (!pieces.empty() && bytes >= pieces.front().size()) {
    bytes -= pieces.front().size();
    pieces = pieces.subspan(1);
  }
  if (!pieces.empty()) pieces.front() = pieces.front().subspan(bytes);
  return pieces;
}

/// 0 or minus an errno; `operation` is left as what is not written.
int carry_out(Scheduler::Counters& counters, BackingFile& backing, Operation& operation) {
  std::span<Bytes> left = operation.pieces;
  while (!left.empty()) {
    const ssize_t put = write_once(backing, operation.offset, left);
    ++counters.writes_out;
    if (put == -EINTR) continue;
    // A write of nothing tells no reason; going on could go on forever.
    if (put <= 0) return put < 0 ? static_cast<int>(put) : -EIO;
    counters.bytes_out += static_cast<std::uint64_t>(put);
    operation.offset += static_cast<std::uint64_t>(put);
    left = rest_of(left, static_cast<std::uint64_t>(put));
  }
  return 0;
}

}  // namespace

WriteOutcome write_chunks(Scheduler& scheduler, BackingFile& backing,
                          const std::vector<std::shared_ptr<Chunk>>& chunks) {
  WriteOutcome outcome;
  for (Operation& operation : operations_of(chunks, scheduler.options().write_bytes)) {
    if (scheduler.options().discard) {
      outcome.end = operation.offset + operation.bytes;
      continue;
    }
    const std::uint64_t from = operation.offset;
    const int error = carry_out(scheduler.counters(), backing, operation);
    if (operation.offset > from) outcome.end = operation.offset;
    if (error == 0) continue;
    ++scheduler.counters().errors;
    outcome.error = error;
  }
  return outcome;
}

}  // namespace cairn
