#include "transfer/urgent_help.hpp"

#include <utility>

namespace cairn {
namespace {

constexpr std::int64_t look_every_us = 50'000;

}  // namespace

void UrgentHelp::begin() {
  thread_ = background_.keep_working([this] { return help(); });
}

void UrgentHelp::in_parallel(int /*threads*/, const std::function<void()>& work) {
  {
    const std::scoped_lock lock(mutex_);
    work_ = &work;
  }
  try {
    work();
  } catch (...) {
    withdraw();
    throw;
  }
  withdraw();
  if (const auto thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
}

/// Nothing is left to be taken; what was taken is waited for.
void UrgentHelp::withdraw() {
  std::unique_lock lock(mutex_);
  work_ = nullptr;
  changed_.wait(lock, [this] { return !is_helping_; });
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
  std::exception_ptr thrown;
  try {
    (*work)();
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  if (thrown) thrown_ = thrown;
  is_helping_ = false;
  changed_.notify_all();
  return look_every_us;
}

}  // namespace cairn
