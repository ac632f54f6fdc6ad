#include "aggregate/buffered_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

namespace cairn {
namespace {

/// A chunk with more ranges is written first, so that the list of ranges stays small.
constexpr std::size_t ranges_most = 1024;

constexpr std::uint64_t offset_most = std::numeric_limits<std::int64_t>::max();

}  // namespace

BufferedFile::BufferedFile(Scheduler& scheduler, std::unique_ptr<BackingFile> backing,
                           std::uint64_t size)
    : scheduler_(scheduler),
      chunk_bytes_(scheduler.options().chunk_bytes),
      backing_(std::move(backing)),
      backing_size_(size),
      size_(size) {}

std::uint64_t BufferedFile::size() {
  const std::scoped_lock lock(mutex_);
  return size_;
}

int BufferedFile::write(std::uint64_t offset, Bytes data) {
  const std::scoped_lock turn(turn_);
  Lock lock(mutex_);
  return put(lock, offset, data);
}

int BufferedFile::append(Bytes data) {
  const std::scoped_lock turn(turn_);
  Lock lock(mutex_);
  return put(lock, size_, data);
}

int BufferedFile::put(Lock& lock, std::uint64_t offset, Bytes data) {
  if (offset > offset_most || data.size() > offset_most - offset) return -EFBIG;
  if (data.empty()) return 0;
  try {
    prepare({offset, offset + data.size()});
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  ++scheduler_.counters().writes_in;
  scheduler_.counters().bytes_in += data.size();
  while (!data.empty()) {
    const std::uint64_t window = offset / chunk_bytes_;
    const Bytes part =
        data.first(std::min<std::uint64_t>(data.size(), (window + 1) * chunk_bytes_ - offset));
    Chunk& chunk = chunk_for(lock, window);
    chunk.write(offset, part);
    offset += part.size();
    data = data.subspan(part.size());
    size_ = std::max(size_, offset);
    if (chunk.number() == 0 && chunk.full(chunk_bytes_)) {
      enqueue(window);
      announce();
    }
  }
  return 0;
}

/// Allocates all that taking the bytes needs, so that put() takes all of them or none.
void BufferedFile::prepare(Range range) {
  const std::uint64_t first = range.begin / chunk_bytes_, last = (range.end - 1) / chunk_bytes_;
  while (blanks_.size() < last - first + 1) {
    Windows made;
    made.emplace(0, Window{nullptr, std::make_shared<Chunk>()});
    blanks_.push_back(made.extract(made.begin()));
  }
  for (auto at = windows_.lower_bound(first); at != windows_.end() && at->first <= last; ++at)
    if (at->second.filling) at->second.filling->make_room();
}

/// The caller holds `turn_`, so no second thread opens a chunk meanwhile.
Chunk& BufferedFile::chunk_for(Lock& lock, std::uint64_t window) {
  auto found = windows_.find(window);
  if (found != windows_.end() && found->second.filling &&
      found->second.filling->written().all().size() >= ranges_most) {
    enqueue(window);
    wait_written(lock, found->second.filling->number());
    found = windows_.find(window);
  }
  if (found != windows_.end() && found->second.filling) return *found->second.filling;
  Scheduler::Memory memory = scheduler_.memory_at_once();
  if (memory.get() == nullptr) {
    lock.unlock();
    memory = scheduler_.memory();
    lock.lock();
  }
  Chunk& chunk = new_chunk(window);
  chunk.begin(window * chunk_bytes_, std::move(memory));
  chunk.open(scheduler_, shared_from_this(), window);
  return chunk;
}

/// Takes one of those that prepare() has made.
Chunk& BufferedFile::new_chunk(std::uint64_t window) {
  Windows::node_type blank = std::move(blanks_.back());
  blanks_.pop_back();
  Chunk& chunk = *blank.mapped().filling;
  const auto found = windows_.find(window);
  if (found != windows_.end()) {
    found->second.filling = std::move(blank.mapped().filling);
  } else {
    blank.key() = window;
    windows_.insert(std::move(blank));
  }
  return chunk;
}

/// Precondition: the window has a chunk that is being filled.
void BufferedFile::enqueue(std::uint64_t window) {
  Chunk& chunk = *windows_.at(window).filling;
  if (chunk.number() != 0) return;
  chunk.close(scheduler_);
  chunk.enqueue(queue_, ++last_number_, window);
}

void BufferedFile::enqueue_all() {
  for (const auto& [index, window] : windows_)
    if (window.filling) enqueue(index);
}

void BufferedFile::send_off(std::uint64_t window) {
  const std::scoped_lock lock(mutex_);
  const auto found = windows_.find(window);
  if (found == windows_.end() || !found->second.filling) return;
  enqueue(window);
  announce();
}

void BufferedFile::announce() {
  if (has_work()) scheduler_.ready(shared_from_this());
}

std::uint64_t BufferedFile::opened() {
  const std::scoped_lock lock(mutex_);
  return reported_;
}

int BufferedFile::drain(std::uint64_t& seen) {
  Lock lock(mutex_);
  enqueue_all();
  wait_written(lock, last_number_);
  return report_error(seen);
}

int BufferedFile::sync(std::uint64_t& seen, bool data_only) {
  // Linux may return an error to only one of several syncs. No other may end before that one.
  const std::scoped_lock one_by_one(syncing_);
  Lock lock(mutex_);
  enqueue_all();
  wait_written(lock, last_number_);
  const int error = visit_backing(lock, [&] { return backing_->sync(data_only); });
  if (error != 0) note_error(error);
  return report_error(seen);
}

void BufferedFile::settle() {
  Lock lock(mutex_);
  enqueue_all();
  wait_written(lock, last_number_);
}

int BufferedFile::take_unreported_error() {
  const std::scoped_lock lock(mutex_);
  std::uint64_t seen = reported_;
  return report_error(seen);
}

bool BufferedFile::has_failed() {
  const std::scoped_lock lock(mutex_);
  return errors_ > 0;
}

int BufferedFile::resize(std::uint64_t bytes) {
  const std::scoped_lock turn(turn_);
  Lock lock(mutex_);
  begin_alone(lock);
  lock.unlock();
  const int error = backing_->resize(bytes);
  lock.lock();
  if (error == 0) {
    drop_from(bytes);
    backing_size_ = bytes;
    find_size();
  }
  end_alone();
  return error;
}

int BufferedFile::change_backing(const std::function<int(BackingFile&)>& change) {
  const std::scoped_lock turn(turn_);
  Lock lock(mutex_);
  enqueue_all();
  wait_written(lock, last_number_);
  begin_alone(lock);
  lock.unlock();
  int error = change(*backing_);
  const std::int64_t bytes = backing_->size();
  lock.lock();
  if (bytes < 0 && error == 0) error = static_cast<int>(bytes);
  if (bytes >= 0) backing_size_ = static_cast<std::uint64_t>(bytes);
  find_size();
  end_alone();
  return error;
}

void BufferedFile::abandon() {
  const std::scoped_lock lock(mutex_);
  drop_from(0);
  find_size();
  changed();
}

void BufferedFile::close() {
  const std::scoped_lock turn(turn_);
  Lock lock(mutex_);
  enqueue_all();
  wait_written(lock, last_number_);
  begin_alone(lock);
  backing_.reset();
}

void BufferedFile::begin_alone(Lock& lock) {
  alone_ = true;
  while (visitors_ > 0 || !under_way_.empty()) wait(lock);
}

void BufferedFile::end_alone() {
  alone_ = false;
  announce();
  changed();
}

void BufferedFile::wait(Lock& lock) {
  ++waiting_;
  changed_.wait(lock);
  --waiting_;
}

void BufferedFile::changed() {
  if (waiting_ > 0) changed_.notify_all();
}

/// Drops data from `offset` on that are not being written yet.
void BufferedFile::drop_from(std::uint64_t offset) {
  for (auto at = windows_.lower_bound(offset / chunk_bytes_); at != windows_.end();) {
    const auto here = at++;
    if (!here->second.filling) continue;
    here->second.filling->cut(offset);
    if (here->second.filling->written().empty()) drop(here);
  }
}

void BufferedFile::drop(Windows::iterator window) {
  Chunk& chunk = *window->second.filling;
  if (chunk.number() == 0)
    chunk.close(scheduler_);
  else
    queue_.erase(chunk.number());
  window->second.filling.reset();
  if (!window->second.writing) windows_.erase(window);
}

void BufferedFile::find_size() {
  size_ = backing_size_;
  if (windows_.empty()) return;
  const Window& last = windows_.rbegin()->second;
  for (const auto& chunk : {last.writing, last.filling})
    if (chunk) size_ = std::max(size_, chunk->written().end());
}

/// Each open handle receives the error once; without open handles, the next one that opens does.
void BufferedFile::note_error(int error) {
  error_ = error;
  ++errors_;
}

int BufferedFile::report_error(std::uint64_t& seen) {
  if (seen == errors_) return 0;
  seen = reported_ = errors_;
  return error_;
}

}  // namespace cairn
