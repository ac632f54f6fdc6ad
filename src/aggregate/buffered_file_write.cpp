// How a BufferedFile's queue is written.

#include <algorithm>
#include <limits>
#include <utility>

#include "aggregate/buffered_file.hpp"

namespace cairn {

bool BufferedFile::has_work() const { return !alone_ && next_in_queue() != queue_.end(); }

/// The first chunk whose window is not being written.
BufferedFile::Queue::const_iterator BufferedFile::next_in_queue() const {
  return std::find_if(queue_.begin(), queue_.end(),
                      [&](const auto& of) { return !windows_.at(of.second).writing; });
}

void BufferedFile::write_some() {
  Lock lock(mutex_);
  if (has_work()) write_run(lock);
}

void BufferedFile::write_run(Lock& lock) {
  std::shared_ptr<Chunk> run = take_run();
  announce();
  lock.unlock();
  WriteOutcome outcome = write_chunks(scheduler_, *backing_, *run);
  // After an error only the size of the file shows how much was written.
  if (outcome.error != 0)
    outcome.end = std::max<std::uint64_t>(
        outcome.end, static_cast<std::uint64_t>(std::max<std::int64_t>(0, backing_->size())));
  lock.lock();
  finish(std::move(run), outcome);
}

std::shared_ptr<Chunk> BufferedFile::take_run() {
  const std::size_t chunks_most =
      std::min<std::size_t>(scheduler_.options().write_bytes / chunk_bytes_, pieces_most);
  std::uint64_t index = next_in_queue()->second;
  auto window = windows_.find(index);
  std::shared_ptr<Chunk> first, last;
  std::size_t count = 0;
  do {
    std::shared_ptr<Chunk> chunk = std::move(window->second.filling);
    window->second.writing = chunk;
    under_way_.insert(queue_.extract(chunk->number()));
    (last ? last->behind : first) = chunk;
    last = std::move(chunk);
    window = windows_.find(++index);
  } while (++count < chunks_most && window != windows_.end() && follows(*last, window->second));
  return first;
}

/// The next window can be part of the same operation.
bool BufferedFile::follows(const Chunk& chunk, const Window& next) const {
  return !next.writing && next.filling && next.filling->number() != 0 &&
         chunk.written().end() == next.filling->written().begin();
}

void BufferedFile::finish(std::shared_ptr<Chunk> run, const WriteOutcome& outcome) {
  while (run) {
    const auto window = windows_.find(run->begin() / chunk_bytes_);
    window->second.writing.reset();
    if (!window->second.filling) windows_.erase(window);
    under_way_.erase(run->number());
    run = std::exchange(run->behind, nullptr);
  }
  backing_size_ = std::max(backing_size_, outcome.end);
  if (outcome.error != 0) {
    note_error(outcome.error);
    find_size();
  }
  announce();
  changed();
}

std::uint64_t BufferedFile::oldest_unwritten() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  if (!queue_.empty()) oldest = queue_.begin()->first;
  if (!under_way_.empty()) oldest = std::min(oldest, under_way_.begin()->first);
  return oldest;
}

/// Waits until all chunks up to `number` are written. Writes some of them itself if it may.
void BufferedFile::wait_written(Lock& lock, std::uint64_t number) {
  while (oldest_unwritten() <= number) {
    if (has_work() && next_in_queue()->first <= number && scheduler_.may_write()) {
      write_run(lock);
      scheduler_.done_writing();
    } else {
      announce();
      wait(lock);
    }
  }
}

}  // namespace cairn
