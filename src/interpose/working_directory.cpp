#include "interpose/working_directory.hpp"

#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace cairn::interpose {

bool WorkingDirectory::read_kept(PathText& out) const {
  const std::uint64_t before = version_.load(std::memory_order_acquire);
  if (before % 2 != 0) return false;
  const std::uint64_t length = length_.load(std::memory_order_acquire);
  const bool is_current = kept_generation_.load(std::memory_order_acquire) ==
                          generation_.load(std::memory_order_acquire);
  // The words are copied whole.
  if (!is_current || length == 0 || length + sizeof(std::uint64_t) >= out.capacity) return false;
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < length; ++i) {
    const std::uint64_t word = words_[i].load(std::memory_order_acquire);
    std::memcpy(out.text + i * sizeof word, &word, sizeof word);
  }
  out.length = length;
  out.text[length] = '\0';
  return version_.load(std::memory_order_acquire) == before;
}

void WorkingDirectory::keep(std::string_view path, std::uint64_t generation) {
  if (path.size() > words_most * sizeof(std::uint64_t) ||
      getpid() != process_.load(std::memory_order_relaxed))
    return;
  std::uint64_t version = version_.load(std::memory_order_relaxed);
  if (version % 2 != 0 ||
      !version_.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
    return;
  for (std::size_t at = 0; at < path.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, path.data() + at, std::min(sizeof word, path.size() - at));
    words_[at / sizeof word].store(word, std::memory_order_release);
  }
  length_.store(path.size(), std::memory_order_release);
  kept_generation_.store(generation, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

bool WorkingDirectory::read(PathText& out) {
  if (read_kept(out)) return true;
  const int saved = errno;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  const long length = syscall(SYS_getcwd, out.text, out.capacity);
  errno = saved;
  // A deleted directory is "(unreachable)...".
  if (length <= 1 || out.text[0] != '/') return false;
  out.length = static_cast<std::size_t>(length) - 1;
  keep(out.view(), generation);
  return true;
}

void WorkingDirectory::adopt_process() {
  process_.store(getpid(), std::memory_order_relaxed);
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + version % 2, std::memory_order_release);
  forget();
}

}  // namespace cairn::interpose
