// Which datasets wait for a place among those that are copied in the background.
#include <atomic>
#include <chrono>
#include <thread>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// Checkpoints could be made again; outputs must arrive.
TEST(SessionAsyncOrder, AnOutputThatWaitsDoesNotGiveWayToANewerCheckpoint) {
  PrefixJobBed bed;
  bed.settings.flush_async = true;
  bed.settings.flush_interval = 1;
  std::atomic<bool> is_open = false;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool stages =
          operation.name == "create" && operation.path.find("/.cairn.") != std::string::npos;
      while (stages && !is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {};
    };
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    std::thread opens;
    if (rank.number() == 0)
      opens = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        is_open = true;
      });
    rank.expect_written(3);
    EXPECT_TRUE(is_open) << "there was no place for the third";
    if (opens.joinable()) opens.join();
    EXPECT_TRUE(rank.session->finalize());
  }));
  EXPECT_FALSE(bed.logs("dataset 2 (ckpt.2) is not copied")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
