#include "files/clock.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace cairn {
namespace {

template <class Source>
std::int64_t us_of() {
  const auto since = Source::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

class SystemClock final : public Clock {
 public:
  std::int64_t now_us() override { return us_of<std::chrono::system_clock>(); }
  std::int64_t steady_us() override { return us_of<std::chrono::steady_clock>(); }
  void sleep_us(std::int64_t us) override {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  std::uint64_t random() override {
    // The result if the kernel has no getrandom (before Linux 3.17), or a sandbox denies it.
    auto value = static_cast<std::uint64_t>(now_us()) * 1'000'003;
    value ^= static_cast<std::uint64_t>(::getpid()) << 44;
    while (::getrandom(&value, sizeof(value), 0) < 0 && errno == EINTR) continue;
    return value;
  }
};

}  // namespace

std::unique_ptr<Clock> make_system_clock() { return std::make_unique<SystemClock>(); }

}  // namespace cairn
