#include "files/lock_patiently.hpp"

namespace cairn {

Result<std::unique_ptr<FileLock>> lock_patiently(Files& files, Clock& clock,
                                                 const std::string& path, std::int64_t give_up_us) {
  constexpr std::int64_t pause_us = 50'000;
  while (true) {
    auto lock = files.lock(path);
    if (lock || lock.error().code != Code::busy || clock.steady_us() > give_up_us) return lock;
    clock.sleep_us(pause_us);
  }
}

}  // namespace cairn
