#include "transfer/io_threads.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace cairn {

Status IoThreads::each(std::size_t count, const std::function<Status(std::size_t)>& piece) const {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  Status first;
  std::size_t first_at = count;
  const int useful =
      static_cast<int>(std::min<std::size_t>(count, static_cast<std::size_t>(threads)));
  background.in_parallel(useful, [&] {
    for (std::size_t at = next++; at < count && !failed; at = next++) {
      Status done = piece(at);
      if (done) continue;
      failed = true;
      const std::scoped_lock lock(mutex);
      if (at < first_at) first = std::move(done);
      first_at = std::min(first_at, at);
    }
  });
  return first;
}

}  // namespace cairn
