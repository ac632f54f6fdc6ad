#include "aggregate/scheduler.hpp"

#include <limits>
#include <system_error>

#include "aggregate/buffered_file.hpp"
#include "base/blocked_signals.hpp"

namespace cairn {
namespace {

/// The search for the fullest chunk looks at no more, as it holds the lock.
constexpr std::size_t looked_at_most = 1024;

}  // namespace

Scheduler::Scheduler(const AggregateOptions& options)
    : options_(options), pool_(options.pool_bytes, options.chunk_bytes) {
  start_threads();
}

Scheduler::~Scheduler() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  called_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Scheduler::start_threads() {
  const BlockedSignals blocked;
  const std::scoped_lock lock(mutex_);
  try {
    for (int i = 0; i < options_.io_threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The limit of threads is reached; waiting writers do the rest.
  }
  writing_most_ = threads_.empty() ? std::numeric_limits<std::size_t>::max() : threads_.size();
}

AggregateStatistics Scheduler::statistics() const {
  AggregateStatistics all;
  all.writes_in = counters_.writes_in;
  all.bytes_in = counters_.bytes_in;
  all.writes_out = counters_.writes_out;
  all.bytes_out = counters_.bytes_out;
  all.waits = counters_.waits;
  all.errors = counters_.errors;
  const std::scoped_lock lock(mutex_);
  all.pool_used_bytes = pool_.used() * options_.chunk_bytes;
  all.pool_most_bytes = pool_.most_used() * options_.chunk_bytes;
  return all;
}

void Scheduler::add(std::shared_ptr<BufferedFile> file) {
  const std::scoped_lock lock(mutex_);
  files_.insert(std::move(file));
}

void Scheduler::remove(const std::shared_ptr<BufferedFile>& file) {
  const std::scoped_lock lock(mutex_);
  files_.erase(file);
}

std::vector<std::shared_ptr<BufferedFile>> Scheduler::files() const {
  const std::scoped_lock lock(mutex_);
  return {files_.begin(), files_.end()};
}

Scheduler::Memory Scheduler::memory_at_once() {
  const std::scoped_lock lock(mutex_);
  return {this, pool_.take()};
}

Scheduler::Memory Scheduler::memory() {
  std::unique_lock lock(mutex_);
  if (std::byte* const chunk = pool_.take()) return {this, chunk};
  ++counters_.waits;
  Waiter self;
  (first_waiter_ == nullptr ? first_waiter_ : last_waiter_->next) = &self;
  last_waiter_ = &self;
  ++waiters_;
  while (self.memory == nullptr) {
    if (coming() < waiters_ && !open_.empty()) {
      send_off_fullest(lock);
    } else if (can_write()) {
      write_for_next(lock);
    } else {
      self.asleep = true;
      self.woken.wait(lock, [&] { return !self.asleep; });
    }
  }
  return {this, self.memory};
}

/// Among equally full chunks it takes the newest. If programs write in turn to more files than
/// there are chunks, the oldest chunk is always that of the file written next; taking it, no two
/// writes would ever be merged.
void Scheduler::send_off_fullest(std::unique_lock<std::mutex>& lock) {
  auto fullest = open_.begin();
  std::size_t seen = 0;
  for (auto at = fullest; at != open_.end() && seen < looked_at_most; ++at, ++seen)
    if (at->bytes >= fullest->bytes) fullest = at;
  const std::shared_ptr<BufferedFile> file = fullest->file;
  const std::uint64_t window = fullest->window;
  lock.unlock();
  file->send_off(window);
  lock.lock();
}

void Scheduler::give_back(std::byte* chunk) {
  const std::scoped_lock lock(mutex_);
  if (first_waiter_ == nullptr) {
    pool_.give(chunk);
    return;
  }
  Waiter& first = *first_waiter_;
  first_waiter_ = first.next;
  --waiters_;
  first.memory = chunk;
  first.asleep = false;
  first.woken.notify_one();
}

Scheduler::OpenChunks::iterator Scheduler::opened(OpenChunks& chunk) {
  const std::scoped_lock lock(mutex_);
  open_.splice(open_.end(), chunk);
  if (coming() < waiters_) call_waiter();  // it can send this one off
  return std::prev(open_.end());
}

void Scheduler::closed(OpenChunks::iterator chunk) {
  const std::scoped_lock lock(mutex_);
  open_.erase(chunk);
}

void Scheduler::ready(std::shared_ptr<BufferedFile> file) {
  const std::scoped_lock lock(mutex_);
  ReadyFiles& place = file->ready_;
  if (!place.empty()) {
    place.front() = std::move(file);
    ready_.splice(ready_.end(), place);
  }
  call_worker();
}

bool Scheduler::may_write() {
  const std::scoped_lock lock(mutex_);
  if (writing_ >= writing_most_) return false;
  ++writing_;
  return true;
}

void Scheduler::done_writing() {
  const std::scoped_lock lock(mutex_);
  --writing_;
  call_worker();
}

void Scheduler::call_worker() {
  if (!can_write()) return;
  if (threads_.empty()) call_waiter();
  if (idle_ == 0) return;
  --idle_;
  ++calls_;
  called_.notify_one();
}

void Scheduler::call_waiter() {
  Waiter* found = first_waiter_;
  while (found != nullptr && !found->asleep) found = found->next;
  if (found == nullptr) return;
  found->asleep = false;
  found->woken.notify_one();
}

void Scheduler::work() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (can_write()) {
      write_for_next(lock);
      continue;
    }
    ++idle_;
    called_.wait(lock, [this] { return calls_ > 0 || over_; });
    if (calls_ > 0) --calls_;
  }
}

void Scheduler::write_for_next(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<BufferedFile> file = std::move(ready_.front());
  file->ready_.splice(file->ready_.end(), ready_, ready_.begin());
  ++writing_;
  lock.unlock();
  file->write_some();
  file.reset();
  lock.lock();
  --writing_;
  call_worker();
}

}  // namespace cairn
