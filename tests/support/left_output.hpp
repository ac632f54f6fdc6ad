// An output that a run has left in the caches only.
#pragma once

#include <filesystem>
#include <fstream>

#include "support/safety_bed.hpp"

namespace cairn {

/// On nodes that have nothing of what the caches have now.
inline void run_elsewhere(AsyncBed& bed, const JobBed::RankMain& rank_main) {
  const Names nodes = {"n0", "n1", "n2", "n3"};
  for (const std::string& node : nodes) bed.save(node, node);
  bed.lose_all_nodes();
  bed.run_async(rank_main);
  bed.lose_all_nodes();
  for (const std::string& node : nodes) bed.bring_back(node, node);
}

/// By all ranks: an output of this name, and only the files of rank 0 have their usual names.
inline void write_with_other_files(JobRank& rank, int dataset) {
  ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_output));
  if (rank.number() == 0) {
    EXPECT_TRUE(rank.write_files(dataset));
  } else {
    const auto path = rank.session->route_file(
        fmt::format("{}/other/rank {}", rank.settings.prefix, rank.number()));
    ASSERT_TRUE(path);
    std::ofstream(*path) << "other";
  }
  EXPECT_TRUE(rank.session->complete_output(true));
  finalize(rank);
}

/// Output 1 could not be copied before the first run ended, but checkpoint 2 was.
class LeftOutput : public testing::Test {
 protected:
  void leave(Scheme scheme) {
    leave_before(scheme, [](JobRank& rank) { rank.expect_written(2); });
  }
  /// As leave(), and it is the newest dataset: Init reads all of it.
  void leave_newest(Scheme scheme) {
    leave_before(scheme, [](JobRank&) {});
  }
  /// There is no room in the prefix directory for output 1.
  static std::function<Status(int, const FileOperation&)> first_is_full() {
    return [](int, const FileOperation& operation) -> Status {
      const bool is_first = operation.path.find("/ckpt.1/") != std::string::npos;
      return is_first && stages(operation) ? fail(Code::no_space, "injected") : Status{};
    };
  }
  std::string cached_file() const {
    return bed_.parts("n1", number_).front() + "/files/ckpt.1/rank 2.0";
  }

  void leave_before(Scheme scheme, const JobBed::RankMain& others) {
    bed_.settings.log_json = true;
    bed_.settings.checkpoints[0].scheme = scheme;
    bed_.settings.stores[0].count = 9;
    bed_.settings.flush_async = false;
    bed_.hook = first_is_full();
    bed_.run_async([&](JobRank& rank) {
      rank.expect_not_copied(1, flag_output);
      others(rank);
      rank.expect_not_all_copied();
    });
    bed_.settings.flush_async = true;
    bed_.hook = nullptr;
  }

  /// Of SINGLE. There is no room in the prefix directory for any of them.
  void leave_all(const std::vector<int>& datasets, std::uint32_t flags) {
    bed_.settings.log_json = true;
    bed_.settings.checkpoints[0].scheme = Scheme::single;
    bed_.settings.stores[0].count = 9;
    bed_.settings.flush_async = false;
    std::atomic<bool> is_full = true;
    bed_.fill_while(is_full);
    bed_.run_async([&](JobRank& rank) {
      for (const int dataset : datasets) rank.expect_not_copied(dataset, flags);
      rank.expect_not_all_copied();
    });
    bed_.settings.flush_async = true;
    bed_.hook = nullptr;
  }

  void run_elsewhere(const JobBed::RankMain& rank_main) { cairn::run_elsewhere(bed_, rank_main); }
  /// Of one of its files.
  void take_name() {
    std::filesystem::create_directories(folder_of(newer()));
    std::ofstream(newer()) << "by hand";
  }
  std::string newer() const { return bed_.file(1, 2); }

  SafetyBed bed_;
  int number_ = 1;  ///< of the dataset with the name ckpt.1 that is left
};

inline void expect_lost(const Status& completed) {
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().code, Code::lost) << completed.error().text;
  EXPECT_NE(completed.error().text.find("dataset 1 (ckpt.1) is lost"), std::string::npos)
      << completed.error().text;
}

}  // namespace cairn
