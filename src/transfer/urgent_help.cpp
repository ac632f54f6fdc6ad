#include "transfer/urgent_help.hpp"

#include <utility>

namespace cairn {
namespace {

constexpr std::int64_t look_every_us = 50'000;
constexpr std::int64_t until_helped_us = 500;

/// Null if it throws nothing.
std::exception_ptr exception_of(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

void UrgentHelp::begin() {
  thread_ = background_.keep_working([this] { return help(); });
}

void UrgentHelp::in_parallel(int /*threads*/, const std::function<void()>& work) {
  {
    const std::scoped_lock lock(mutex_);
    work_ = &work;
  }
  const std::exception_ptr own = exception_of(work);
  withdraw();
  const std::exception_ptr of_helper = std::exchange(thrown_, nullptr);
  if (own) std::rethrow_exception(own);
  if (of_helper) std::rethrow_exception(of_helper);
}

bool UrgentHelp::is_helping() const {
  const std::scoped_lock lock(mutex_);
  return is_helping_;
}

/// Nothing is left to be taken; what was taken is waited for, on the clock, which a simulation
/// knows.
void UrgentHelp::withdraw() {
  {
    const std::scoped_lock lock(mutex_);
    work_ = nullptr;
  }
  while (is_helping()) clock_.sleep_us(until_helped_us);
}

std::int64_t UrgentHelp::help() {
  const std::function<void()>* work = nullptr;
  const bool is_urgent = pace_.is_urgent();
  {
    const std::scoped_lock lock(mutex_);
    if (!is_urgent || work_ == nullptr) return look_every_us;
    work = work_;
    is_helping_ = true;
  }
  const std::exception_ptr thrown = exception_of(*work);
  const std::scoped_lock lock(mutex_);
  if (thrown) thrown_ = thrown;
  is_helping_ = false;
  return look_every_us;
}

}  // namespace cairn
