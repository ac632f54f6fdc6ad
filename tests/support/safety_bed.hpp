// A job whose copies a test can hold back, for the tests of what datasets survive.
#pragma once

#include "support/async_bed.hpp"

namespace cairn {

inline Safety safety(JobRank& rank, int dataset) {
  return rank.session->safety().of(fmt::format("ckpt.{}", dataset));
}

/// Which of these datasets is how safe, as one text.
inline std::string safeties(JobRank& rank, const std::vector<int>& datasets) {
  std::string text;
  for (const int dataset : datasets)
    text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(safety(rank, dataset)));
  return text;
}

inline Result<bool> wait_for(JobRank& rank, int dataset, Safety wanted, double seconds = 30) {
  return rank.session->safety().wait(fmt::format("ckpt.{}", dataset), wanted, seconds);
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

class SafetyBed : public AsyncBed {
 public:
  SafetyBed() {
    settings.flush_interval = 1;
    settings.stores[0].count = 2;
  }

  /// There is no room in the prefix directory for files.
  void fill_while(std::atomic<bool>& is_full) {
    hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
      return is_full && stages(operation) ? fail(Code::no_space, "injected at {}", operation.path)
                                          : Status{};
    };
  }
};

/// Dataset 1 is damaged on one node before its copy reads it.
class DamagedBed : public SafetyBed {
 public:
  DamagedBed() {
    hook = [&, prefix = settings.prefix](int /*rank*/, const FileOperation& operation) -> Status {
      const bool logs = operation.path.ends_with("/log.json");
      if (is_shut_ && operation.path.starts_with(prefix) && !logs) gate_.pass();
      return {};
    };
  }

  void write_damaged(JobRank& rank) {
    rank.comm.barrier();
    is_shut_ = true;
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      flip_bit(parts("n1", 1).front() + "/files/ckpt.1/rank 2.0");
      gate_.open();
    }
  }

 private:
  Gate gate_;
  std::atomic<bool> is_shut_ = false;
};

}  // namespace cairn
