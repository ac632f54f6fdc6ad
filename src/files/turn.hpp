// Turns of threads, for work that is faster if one thread at a time does it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace cairn {

/// Threads take turns to save time. A thread that has waited too long goes on without its turn.
/// No std::timed_mutex: the thread sanitizer does not know its calls with a time.
class Turns {
 public:
  /// False if another thread keeps the turn for `longest_wait`.
  bool take(std::chrono::nanoseconds longest_wait) {
    std::unique_lock lock(mutex_);
    if (!given_back_.wait_for(lock, longest_wait, [this] { return !is_taken_; })) return false;
    is_taken_ = true;
    return true;
  }
  /// After take() has returned true.
  void give_back() {
    {
      const std::scoped_lock lock(mutex_);
      is_taken_ = false;
    }
    given_back_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  bool is_taken_ = false;
};

/// Takes a turn, or none if that takes too long.
class Turn {
 public:
  Turn(Turns& turns, std::chrono::nanoseconds longest_wait)
      : turns_(turns), is_mine_(turns.take(longest_wait)) {}
  ~Turn() {
    if (is_mine_) turns_.give_back();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_mine() const { return is_mine_; }

 private:
  Turns& turns_;
  const bool is_mine_;
};

}  // namespace cairn
