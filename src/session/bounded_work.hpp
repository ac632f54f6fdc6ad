// Work of a call where the file system may hang.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "files/background.hpp"
#include "files/clock.hpp"

namespace cairn {

/// How long a run waits for what it changes last in the prefix directory; and if its time is over.
inline constexpr std::int64_t longest_closing_us = 60'000'000;
inline constexpr std::int64_t longest_closing_in_hurry_us = 5'000'000;
/// How long a process that ends without SCR_Finalize waits for threads that look at the directory.
inline constexpr std::int64_t longest_leaving_us = 1'000'000;

/// All functions are local.
class BoundedWork {
 public:
  /// Does `work` in a thread, and waits for it, but not longer than `longest_us`. False if it is
  /// not done by then: it goes on, and until the process ends all that it uses must stay, and this
  /// too. Meanwhile another call does nothing, and returns false. Without a thread for it the
  /// caller does it, however long that takes.
  bool carry_out(Background& background, Clock& clock, std::int64_t longest_us,
                 std::function<void()> work);
  /// What was not done in time is not done yet.
  bool goes_on() const { return thread_ && !is_done_; }

 private:
  std::atomic<bool> is_done_ = false;
  std::unique_ptr<Repeated> thread_;
};

}  // namespace cairn
