#include "transfer/pace.hpp"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

/// A hint that is so old says nothing of what the program does now.
constexpr std::int64_t longest_stand_us = 1'000'000;
/// After it has stood back so long in a row, so that its data arrive even if the program computes
/// for shorter times than the thread needs to wake up.
constexpr std::int64_t pass_us = 250'000;

/// Between two looks at the hints. A thread that wakes up more often is a burden itself.
constexpr std::int64_t look_us = 1'000;
constexpr std::int64_t longest_rest_us = 10'000;
/// A shorter rest is saved up.
constexpr double shortest_rest_us = 1'000;

}  // namespace

void Pace::begin_computing() {
  hinted_us_ = clock_.steady_us();
  hint_ = Hint::computes;
}

void Pace::end_computing() {
  hinted_us_ = clock_.steady_us();
  hint_ = Hint::communicates;
}

bool Pace::may_work(std::int64_t now_us) {
  const bool stands_back =
      hint_ == Hint::communicates && now_us - hinted_us_ < longest_stand_us && now_us >= pass_us_;
  if (!stands_back) {
    standing_us_ = -1;
    return true;
  }
  if (standing_us_ < 0) standing_us_ = now_us;
  if (now_us - standing_us_ < longest_stand_us) return false;
  standing_us_ = -1;
  pass_us_ = now_us + pass_us;
  return true;
}

/// Rest that is not owed is not saved up.
void Pace::count(std::int64_t now_us) {
  const std::int64_t us = now_us - std::exchange(counted_us_, now_us);
  if (!is_working_) {
    rested_us_ += us;
    owed_us_ = std::max(0.0, owed_us_ - static_cast<double>(us));
  } else if (share_ > 0 && share_ < 1) {
    owed_us_ += static_cast<double>(us) * (1 - share_) / share_;
  }
}

bool Pace::is_urgent() const {
  return lifted_ > 0 || is_stopped_ || clock_.steady_us() >= deadline_us_;
}

/// The clock, which may let others go on, is not asked under the lock.
std::int64_t Pace::rest_us() {
  const std::int64_t now_us = clock_.steady_us();
  const std::scoped_lock lock(mutex_);
  return rest_us(now_us);
}

std::int64_t Pace::rest_us(std::int64_t now_us) {
  count(now_us);
  if (lifted_ > 0 || is_stopped_) {
    owed_us_ = 0;
    standing_us_ = -1;
    is_working_ = true;
    return 0;
  }
  std::int64_t rest = 0;
  if (!may_work(now_us)) rest = look_us;
  // Once it rests, it rests until nothing is owed.
  if (owed_us_ >= shortest_rest_us || (!is_working_ && owed_us_ >= 1))
    rest = std::max(rest, std::min(longest_rest_us, static_cast<std::int64_t>(owed_us_)));
  is_working_ = rest == 0;
  return rest;
}

void Pace::wait_for_turn() {
  while (const std::int64_t rest = rest_us()) clock_.sleep_us(rest);
}

void Pace::stop_working() {
  const bool has_limit = share_ > 0 && share_ < 1;
  const std::int64_t now_us = has_limit ? clock_.steady_us() : 0;
  const std::scoped_lock lock(mutex_);
  if (has_limit) count(now_us);
  is_working_ = false;
}

}  // namespace cairn
