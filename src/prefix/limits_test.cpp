// What a job may do to the parallel file system at a time.
#include <array>
#include <mutex>
#include <set>
#include <thread>

#include "prefix/fetch.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

using Limits = PrefixFixture;

/// How many ranks are at it at the same time. Who begins waits until `width` are, or were.
class AtATime {
 public:
  explicit AtATime(int width) : width_(static_cast<std::size_t>(width)) {}

  void begin(int rank) {
    {
      const std::scoped_lock lock(mutex_);
      at_it_.insert(rank);
      most_ = std::max(most_, at_it_.size());
    }
    while (most() < width_) std::this_thread::yield();
  }
  void end(int rank) {
    const std::scoped_lock lock(mutex_);
    at_it_.erase(rank);
  }
  std::size_t most() {
    const std::scoped_lock lock(mutex_);
    return most_;
  }

 private:
  const std::size_t width_;
  std::mutex mutex_;
  std::set<int> at_it_;
  std::size_t most_ = 0;
};

TEST_F(Limits, SoManyRanksCopyAtATimeAndNoMore) {
  for (int width = 1; width <= ranks; ++width) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    AtATime writing(width);
    const auto watch = [&](int rank, const FileOperation& operation) -> Status {
      if (operation.path.find("/done/0.") != std::string_view::npos)
        writing.end(rank);
      else if (operation.name == "create" &&
               operation.path.find("/.cairn.") != std::string_view::npos)
        writing.begin(rank);
      return {};
    };
    run(
        [&](PrefixRank& rank) {
          rank.site.limits.width = width;
          ASSERT_TRUE(flush_dataset(rank, 1));
        },
        watch);
    EXPECT_EQ(writing.most(), static_cast<std::size_t>(width));
  }
}

TEST_F(Limits, SoManyRanksFetchAtATimeAndNoMore) {
  flush_well(1);
  for (int width = 1; width <= ranks; ++width) {
    AtATime reading(width);
    const auto watch = [&](int rank, const FileOperation& operation) -> Status {
      const bool copies =
          operation.name == "create" && operation.path.find("/back.") != std::string_view::npos;
      if (copies && operation.path.ends_with("f0")) reading.begin(rank);
      if (copies && operation.path.ends_with("f1")) reading.end(rank);
      return {};
    };
    run(
        [&](PrefixRank& rank) {
          rank.site.limits.read_width = width;
          std::vector<std::string> damaged;
          const Listing listing = *read_listing(*rank.files, folder(), damaged);
          const RankFolder into{
              fmt::format("{}/back.{}.{}", base_.path(), width, rank.comm.rank())};
          ASSERT_TRUE(make_folders(*rank.files, into.files(), 0700));
          ASSERT_TRUE(fetch(rank.comm, rank.site, listing[0], into));
        },
        watch);
    EXPECT_EQ(reading.most(), static_cast<std::size_t>(width));
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
    run([&](PrefixRank& rank) {
      rank.site.ranks_on_node = ranks;
      rank.site.limits = {width, bytes_per_s, width};
      const auto& clock = *clocks[static_cast<std::size_t>(rank.comm.rank())];
      const RankRecord record = write_part(rank, 1);
      // The last block is on its way when the copy ends.
      const auto moved = static_cast<double>(record.data_bytes() - 4096);
      const double least_s = moved * width / static_cast<double>(bytes_per_s) - saved_s;
      std::int64_t from_us = clock.now;
      ASSERT_TRUE(flush(rank.comm, rank.site, record, cached_paths(record, 1), "job"));
      EXPECT_GE(static_cast<double>(clock.now - from_us) * 1e-6, least_s);
      from_us = clock.now;
      std::vector<std::string> damaged;
      const Listing listing = *read_listing(*rank.files, folder(), damaged);
      const RankFolder into{fmt::format("{}/back.{}", base_.path(), rank.comm.rank())};
      ASSERT_TRUE(fetch(rank.comm, rank.site, listing[0], into));
      EXPECT_GE(static_cast<double>(clock.now - from_us) * 1e-6, least_s);
    });
  }
}

}  // namespace
}  // namespace cairn
