#include "session/bounded_work.hpp"

#include <utility>

namespace cairn {
namespace {

constexpr std::int64_t between_looks_us = 500;
constexpr std::int64_t rest_us = 60'000'000;

}  // namespace

bool BoundedWork::carry_out(Background& background, Clock& clock, std::int64_t longest_us,
                            std::function<void()> work) {
  if (goes_on()) return false;
  thread_.reset();
  is_done_ = false;
  const auto shared = std::make_shared<std::function<void()>>(std::move(work));
  thread_ = background.keep_working([this, shared] {
    if (!is_done_) (*shared)();
    is_done_ = true;
    return rest_us;
  });
  if (!thread_) {
    (*shared)();
    is_done_ = true;
  }
  const std::int64_t end_us = clock.steady_us() + longest_us;
  while (!is_done_ && clock.steady_us() < end_us) clock.sleep_us(between_looks_us);
  if (is_done_) thread_.reset();
  return is_done_;
}

}  // namespace cairn
