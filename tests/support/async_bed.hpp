// A job that copies datasets to the prefix directory while its program goes on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "support/job_bed.hpp"

namespace cairn {

/// Files on their way to the prefix directory are made.
inline bool stages(const FileOperation& operation) {
  return operation.name == "create" && operation.path.find("/.cairn.") != std::string::npos;
}

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// Holds every thread that comes to it while it is shut.
class Gate {
 public:
  explicit Gate(bool is_open = false) : is_open_(is_open) {}

  void pass() {
    std::unique_lock lock(mutex_);
    ++came_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  /// Until so many threads have come.
  void wait_for(int threads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_ >= threads; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_;
  int came_ = 0;
};

/// Opens a gate for a call that waits too long, so that its test fails and does not hang.
class Rescue {
 public:
  Rescue(Gate& gate, int after_ms)
      : thread_([this, &gate, after_ms] {
          for (int ms = 0; ms < after_ms && !is_over_; ms += 10) sleep_ms(10);
          if (!is_over_) was_needed_ = true;
          gate.open();
        }) {}
  Rescue(const Rescue&) = delete;
  Rescue& operator=(const Rescue&) = delete;
  ~Rescue() { end(); }

  /// Opens the gate now. True if no call waited too long.
  bool end() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
    return !was_needed_;
  }

 private:
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> was_needed_ = false;
  std::thread thread_;
};

/// By all ranks, when the prefix directory answers again: no call waits for the threads that have
/// looked before, and may not have seen it yet.
inline void wait_for_answer(JobRank& rank) {
  while (!rank.session->have_restart()) sleep_ms(1);
}

/// Rank 0 does not copy the last part: the other ranks begin when it has marked its own as copied.
class RankZeroFirst {
 public:
  /// To be called by the hook of the bed, for each operation.
  void before(int rank, const FileOperation& operation) {
    const bool is_of_marker = operation.path.find("/done/") != std::string_view::npos;
    if (rank != 0)
      while (stages(operation) && !has_marked_) sleep_ms(1);
    else if (is_done_marker(operation, 0))
      is_marking_ = true;
    else if (is_marking_ && is_of_marker)
      has_marked_ = true;
  }

 private:
  std::atomic<bool> is_marking_ = false;
  std::atomic<bool> has_marked_ = false;
};

/// A dataset becomes visible in the prefix directory.
inline bool publishes(const FileOperation& operation) {
  return operation.name == "rename" &&
         operation.to.find("/.cairn/datasets/") != std::string_view::npos;
}

inline void finalize(JobRank& rank) {
  const Status ended = rank.session->finalize();
  EXPECT_TRUE(ended) << ended.error().text;
}

class AsyncBed : public PrefixJobBed {
 public:
  AsyncBed() { settings.flush_async = true; }

  /// Asked before each operation of a rank, by any of its threads. Set before a run.
  std::function<Status(int rank, const FileOperation&)> hook;

  void hold_copies_at(Gate& gate) {
    hook = [&gate](int /*rank*/, const FileOperation& operation) -> Status {
      if (stages(operation)) gate.pass();
      return {};
    };
  }

  /// A copy arrived by itself, and not because the end of the run copied it once more.
  bool arrived_by_itself(int dataset) const {
    const std::string all = log_text();
    const auto line = all.find(fmt::format("dataset {0} (ckpt.{0}) is in ", dataset));
    return line != std::string::npos &&
           all.substr(line, all.find('\n', line) - line).ends_with("while the program went on");
  }

  /// As run_well(), with a thread that copies.
  void run_async(const RankMain& rank_main) {
    EXPECT_TRUE(run(four_nodes(), [&](JobRank& rank) {
      rank.background = make_background_thread();
      if (hook)
        rank.hook = [this, number = rank.number()](const FileOperation& operation) {
          return hook(number, operation);
        };
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank_main(rank);
    }));
  }

  /// A run that makes these datasets, and whose ranks die when each has begun to copy the first:
  /// one of them cannot write its part.
  void die_amid_copy(std::initializer_list<int> datasets) {
    std::atomic<int> staged = 0;
    hook = [&staged](int number, const FileOperation& operation) -> Status {
      if (!stages(operation)) return {};
      ++staged;
      return number == 5 ? fail(Code::io, "injected") : Status{};
    };
    run_async([&](JobRank& rank) {
      for (const int dataset : datasets) rank.expect_written(dataset);
      while (staged < 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    hook = nullptr;
  }

  bool is_listed(int dataset) const {
    const auto names = listed();
    return std::find(names.begin(), names.end(), fmt::format("ckpt.{}", dataset)) != names.end();
  }
  /// False if that takes more than half a minute.
  bool comes_to_be_listed(int dataset) const {
    for (int ms = 0; ms < 30'000 && !is_listed(dataset); ++ms) sleep_ms(1);
    return is_listed(dataset);
  }
  void wait_until_listed(int dataset) const {
    while (!is_listed(dataset)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

}  // namespace cairn
