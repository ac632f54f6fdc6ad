#include "rbio/buffer_pool.hpp"

#include <algorithm>
#include <limits>

namespace cairn::rbio {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::size_t buffers_without_limit = 2;

std::uint64_t in_whole_pages(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

Result<std::shared_ptr<StepBuffer>> BufferPool::take(std::uint64_t step_bytes) {
  const std::uint64_t bytes = std::max<std::uint64_t>(step_bytes, 1);
  if (limit_bytes_ > 0 && bytes > limit_bytes_)
    return fail(Code::no_space,
                "a step needs a buffer of {} bytes (the data of the ranks that share it, and up to "
                "a page more per large field), and the option memory allows {}; raise it, or lower "
                "the number of ranks per writer",
                bytes, limit_bytes_);
  if (auto buffer = smallest_free(bytes)) {
    buffer->is_used = true;
    return buffer;
  }
  // Those that are free are too small, so they only take room.
  const std::size_t dropped = drop_free();
  const std::uint64_t room = room_bytes();
  if (room < bytes) return nullptr;
  // More than it needs only if another one of that size still fits.
  const std::uint64_t most = std::max(bytes, room / 2);
  // A program whose steps grow a little each time does not need a new buffer each time.
  const std::uint64_t spare = dropped > 0 ? bytes / 4 : 0;
  return make(std::clamp(in_whole_pages(bytes + spare), bytes, most));
}

/// Returns how many there were. Frees their memory at once, as their last users may still refer to
/// them.
std::size_t BufferPool::drop_free() {
  for (const auto& buffer : buffers_)
    if (!buffer->is_used) buffer->segment.reset();
  return std::erase_if(buffers_, [](const auto& buffer) { return !buffer->segment; });
}

std::vector<std::uint64_t> BufferPool::ids() const {
  std::vector<std::uint64_t> ids;
  for (const auto& buffer : buffers_) ids.push_back(buffer->id);
  return ids;
}

std::shared_ptr<StepBuffer> BufferPool::smallest_free(std::uint64_t bytes) const {
  std::shared_ptr<StepBuffer> best;
  for (const auto& buffer : buffers_)
    if (!buffer->is_used && buffer->bytes() >= bytes && (!best || buffer->bytes() < best->bytes()))
      best = buffer;
  return best;
}

std::uint64_t BufferPool::total_bytes() const {
  std::uint64_t total = 0;
  for (const auto& buffer : buffers_) total += buffer->bytes();
  return total;
}

std::uint64_t BufferPool::room_bytes() const {
  if (limit_bytes_ > 0) return limit_bytes_ - total_bytes();
  return buffers_.size() < buffers_without_limit ? std::numeric_limits<std::uint64_t>::max() : 0;
}

Result<std::shared_ptr<StepBuffer>> BufferPool::make(std::uint64_t bytes) {
  auto buffer = std::make_shared<StepBuffer>();
  buffer->id = ++last_id_;
  buffer->is_used = true;
  CAIRN_ASSIGN(buffer->segment, make_segment(memory_.get(), bytes, log_));
  buffers_.push_back(buffer);
  peak_bytes_ = std::max(peak_bytes_, total_bytes());
  return buffer;
}

}  // namespace cairn::rbio
