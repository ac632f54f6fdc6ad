// A job whose copies a test can hold back, for the tests of what datasets survive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/job_bed.hpp"

namespace cairn {

/// Files on their way to the prefix directory are made.
inline bool stages(const FileOperation& operation) {
  return operation.name == "create" && operation.path.find("/.cairn.") != std::string::npos;
}

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// Shut, it holds every thread that comes to it.
class Barrier {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait_for(int held) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ >= held; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int held_ = 0;
};

inline Safety safety(JobRank& rank, int dataset) {
  return rank.session->safety_of(fmt::format("ckpt.{}", dataset));
}

/// Which of these datasets is how safe, as one text.
inline std::string safeties(JobRank& rank, const std::vector<int>& datasets) {
  std::string text;
  for (const int dataset : datasets)
    text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(safety(rank, dataset)));
  return text;
}

inline Result<bool> wait_for(JobRank& rank, int dataset, Safety wanted, double seconds = 30) {
  return rank.session->wait_for(fmt::format("ckpt.{}", dataset), wanted, seconds);
}

inline void expect_reached(JobRank& rank, int dataset, Safety wanted, double seconds = 30) {
  const auto reached = wait_for(rank, dataset, wanted, seconds);
  ASSERT_TRUE(reached) << reached.error().text;
  EXPECT_TRUE(*reached);
}

inline void expect_too_late(JobRank& rank, int dataset, Safety wanted, double seconds) {
  const auto reached = wait_for(rank, dataset, wanted, seconds);
  ASSERT_TRUE(reached) << reached.error().text;
  EXPECT_FALSE(*reached);
}

inline void expect_error(JobRank& rank, int dataset, Safety wanted, double seconds, Code code) {
  const auto reached = wait_for(rank, dataset, wanted, seconds);
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().code, code) << reached.error().text;
}

class SafetyBed : public PrefixJobBed {
 public:
  SafetyBed() {
    settings.flush_async = true;
    settings.flush_interval = 1;
    settings.stores[0].count = 2;
  }

  /// Asked before each file operation of a rank, by any of its threads. Set before a run.
  std::function<Status(int rank, const FileOperation&)> hook;

  void hold_copies_at(Barrier& barrier) {
    hook = [&barrier](int /*rank*/, const FileOperation& operation) -> Status {
      if (stages(operation)) barrier.pass();
      return {};
    };
  }

  /// Before a byte of the cached files is read: from the moment that `is_shut`.
  void hold_prefix_at(Barrier& barrier, std::atomic<bool>& is_shut) {
    hook = [&, prefix = settings.prefix](int /*rank*/, const FileOperation& operation) -> Status {
      const bool logs = operation.path.ends_with("/log.json");
      if (is_shut && operation.path.starts_with(prefix) && !logs) barrier.pass();
      return {};
    };
  }

  /// A run with threads that copy.
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
};

inline void finalize(JobRank& rank) {
  const Status ended = rank.session->finalize();
  EXPECT_TRUE(ended) << ended.error().text;
}

}  // namespace cairn
