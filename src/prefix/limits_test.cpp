// What a job may do to the parallel file system at a time.
#include <array>
#include <mutex>
#include <set>

#include "prefix/fetch.hpp"
#include "prefix/prefix_harness.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using namespace prefix_harness;

using Limits = Prefix;

TEST_F(Limits, SoManyRanksCopyAtATimeAndNoMore) {
  for (int width = 1; width <= ranks; ++width) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    std::mutex mutex;
    std::set<int> writing;
    std::size_t most = 0;
    const auto watch = [&](int rank, const FileOperation& operation) -> Status {
      const bool begins =
          operation.name == "create" && operation.path.find("/.cairn.") != std::string_view::npos;
      const bool ends = operation.path.find("/done/0.") != std::string_view::npos;
      if (!begins && !ends) return {};
      {
        const std::scoped_lock lock(mutex);
        if (begins) writing.insert(rank);
        if (ends) writing.erase(rank);
        most = std::max(most, writing.size());
      }
      while (begins) {  // ends only if so many come
        const std::scoped_lock lock(mutex);
        if (most >= static_cast<std::size_t>(width)) break;
      }
      return {};
    };
    run(
        [&](RankRun& rank) {
          rank.site.limits.width = width;
          ASSERT_TRUE(flush_dataset(rank, 1));
        },
        watch);
    EXPECT_EQ(most, static_cast<std::size_t>(width));
  }
}

TEST_F(Limits, SoManyRanksFetchAtATimeAndNoMore) {
  flush_well(1);
  for (int width = 1; width <= ranks; ++width) {
    std::mutex mutex;
    std::set<int> reading;
    std::size_t most = 0;
    const auto watch = [&](int rank, const FileOperation& operation) -> Status {
      const bool copies = operation.path.find("/back.") != std::string_view::npos;
      const bool begins = copies && operation.name == "create" && operation.path.ends_with("f0");
      const bool ends = copies && operation.name == "create" && operation.path.ends_with("f1");
      if (!begins && !ends) return {};
      {
        const std::scoped_lock lock(mutex);
        if (begins) reading.insert(rank);
        most = std::max(most, reading.size());
        if (ends) reading.erase(rank);
      }
      while (begins) {  // ends only if so many come
        const std::scoped_lock lock(mutex);
        if (most >= static_cast<std::size_t>(width)) break;
      }
      return {};
    };
    run(
        [&](RankRun& rank) {
          rank.site.limits.read_width = width;
          std::vector<std::string> damaged;
          const Listing listing = *read_listing(rank.files, folder(), damaged);
          const RankFolder into{
              fmt::format("{}/back.{}.{}", base_.path(), width, rank.comm.rank())};
          ASSERT_TRUE(make_folders(rank.files, into.files(), 0700));
          ASSERT_TRUE(fetch(rank.comm, rank.site, listing[0], into));
        },
        watch);
    EXPECT_EQ(most, static_cast<std::size_t>(width));
  }
}

/// What the ranks of a node move in a second, by their clocks, on the way there and back.
TEST_F(Limits, ANodeKeepsToItsBandwidth) {
  constexpr std::uint64_t bytes_per_s = 10'000;
  constexpr double saved_s = 0.1;
  std::array<SleepersClock*, ranks> clocks{};
  make_clock = [&](int rank) {
    auto clock = std::make_unique<SleepersClock>();
    clocks[static_cast<std::size_t>(rank)] = clock.get();
    return clock;
  };
  for (const int width : {2, ranks}) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    run([&](RankRun& rank) {
      rank.site.ranks_on_node = ranks;
      rank.site.limits = {width, bytes_per_s, width};
      const auto& clock = *clocks[static_cast<std::size_t>(rank.comm.rank())];
      const RankRecord record = write_part(rank, 1);
      // The last block is on its way when the copy ends.
      const auto moved = static_cast<double>(record.data_bytes() - 4096);
      const double least_s = moved * width / static_cast<double>(bytes_per_s) - saved_s;
      std::int64_t from_us = clock.now;
      Status settled;
      ASSERT_TRUE(flush(rank.comm, rank.site, record, cached_paths(record, 1), "job", settled));
      EXPECT_GE(static_cast<double>(clock.now - from_us) * 1e-6, least_s);
      from_us = clock.now;
      std::vector<std::string> damaged;
      const Listing listing = *read_listing(rank.files, folder(), damaged);
      const RankFolder into{fmt::format("{}/back.{}", base_.path(), rank.comm.rank())};
      ASSERT_TRUE(fetch(rank.comm, rank.site, listing[0], into));
      EXPECT_GE(static_cast<double>(clock.now - from_us) * 1e-6, least_s);
    });
  }
}

}  // namespace
}  // namespace cairn
