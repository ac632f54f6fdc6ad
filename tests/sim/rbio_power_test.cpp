// rbIO on a disk that loses its power at any operation: steps that wait() has returned survive.

#include <gtest/gtest.h>

#include <atomic>
#include <tuple>

#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "memory_files.hpp"
#include "rbio/series.hpp"

namespace cairn::sim {
namespace {

using rbio::Mode;
using rbio::Series;

constexpr int ranks = 3;
constexpr std::uint64_t bytes_of_a_rank = 3000;

const std::string directory = "/disk/runs/series";

struct Restored {
  std::uint64_t step = 0;
  int version = 0;  ///< 0: not the same on all ranks
  int warnings = 0;
};

/// How steps are written, and whether the second one replaces the first.
class RbioPowerTest : public testing::TestWithParam<std::tuple<Mode, bool>> {
 protected:
  static Mode mode() { return std::get<0>(GetParam()); }
  static std::uint64_t second_step() { return std::get<1>(GetParam()) ? 1 : 2; }

  void begin_with_an_empty_disk() {
    disk_ = std::make_shared<Volume>(Volume::Medium::disk);
    files_ = make_memory_files({{"/disk", disk_}}, [] { return std::int64_t{5}; });
  }
  static Result<std::unique_ptr<Series>> open(Communicator& comm, Files& files, std::size_t keep,
                                              std::atomic<int>& warnings) {
    rbio::SeriesOptions options;
    options.mode = mode();
    options.group_size = 1;
    options.keep = keep;
    options.pace = 0;
    Placement placement;
    placement.node_of_rank.assign(ranks, 1);
    const auto shared = std::shared_ptr<Files>(std::shared_ptr<Files>(), &files);
    return Series::open(comm, {shared, nullptr, Log([&](auto, const auto&) { ++warnings; })},
                        placement, directory, options);
  }
  /// Each rank writes nothing but `version`. Returns whether wait() has returned success.
  static bool write(Files& files, std::uint64_t step, int version, std::size_t keep = 0) {
    std::atomic<bool> is_published = false;
    std::atomic<int> warnings = 0;
    Team(ranks).run([&](Communicator& comm) {
      const auto series = open(comm, files, keep, warnings);
      if (!series) return;
      Blob data(bytes_of_a_rank, static_cast<std::byte>(version));
      ASSERT_TRUE(
          (*series)->add_field({"x", rbio::ElementType::uint8, 1}, data.data(), data.size()));
      const auto begun = (*series)->begin(comm, step);
      if (begun && (*series)->wait(comm, *begun)) is_published = true;
      static_cast<void>((*series)->close(comm));
    });
    return is_published;
  }
  /// The same run, until there is no power for operation `at`.
  bool write_until(std::uint64_t at, std::size_t keep) {
    const auto dying = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.index >= at) return fail(Code::io, "{}: there is no power", operation.path);
      return {};
    });
    return write(*dying, second_step(), 2, keep);
  }
  std::uint64_t count_operations(std::size_t keep) {
    begin_with_an_empty_disk();
    EXPECT_TRUE(write(*files_, 1, 1));
    std::atomic<std::uint64_t> count = 0;
    const auto counted = make_hooked_files(*files_, [&](const FileOperation&) -> Status {
      ++count;
      return {};
    });
    EXPECT_TRUE(write(*counted, second_step(), 2, keep));
    return count;
  }
  Restored restore() {
    Restored found;
    std::atomic<int> warnings = 0;
    Team(ranks).run([&](Communicator& comm) {
      const auto series = open(comm, *files_, 0, warnings);
      ASSERT_TRUE(series) << series.error().text;
      Blob data(bytes_of_a_rank);
      ASSERT_TRUE(
          (*series)->add_field({"x", rbio::ElementType::uint8, 1}, data.data(), data.size()));
      const auto step = (*series)->restore(comm, std::nullopt);
      ASSERT_TRUE(step) << step.error().text;
      const auto version = static_cast<std::int64_t>(data[0]);
      const bool is_one = data == Blob(bytes_of_a_rank, data[0]);
      const std::int64_t lowest = allreduce(comm, is_one ? version : 0, Reduce::min);
      const std::int64_t highest = allreduce(comm, version, Reduce::max);
      if (comm.rank() != 0) return;
      found.step = *step;
      found.version = lowest == highest ? static_cast<int>(lowest) : 0;
    });
    found.warnings = warnings;
    return found;
  }
  /// A power failure at each operation that the second step takes.
  void fail_everywhere(std::size_t keep) {
    const std::uint64_t operations = count_operations(keep);
    int older = 0, newer = 0;
    for (std::uint64_t at = 0; at <= operations; ++at) {
      SCOPED_TRACE(fmt::format("operation {}", at));
      begin_with_an_empty_disk();
      ASSERT_TRUE(write(*files_, 1, 1));
      const bool is_published = write_until(at, keep);
      Chance chance(at);  // `sim --rbio-death` tries others
      disk_->power_failure(chance);
      const Restored restored = restore();
      if (is_published) {
        EXPECT_EQ(restored.version, 2);
      }
      EXPECT_TRUE(restored.version == 1 || restored.version == 2);
      EXPECT_EQ(restored.step, restored.version == 2 ? second_step() : 1);
      EXPECT_EQ(restored.warnings, 0) << "no step is there in part";
      ++(restored.version == 2 ? newer : older);
      if (HasFailure()) return;
    }
    EXPECT_GT(older, 0);
    EXPECT_GT(newer, 0);
  }

  std::shared_ptr<Volume> disk_;
  std::unique_ptr<Files> files_;
};

TEST_P(RbioPowerTest, StepsThatWaitReturnedSurviveAPowerFailureAndTheNewestIsWhole) {
  fail_everywhere(0);
}

TEST_P(RbioPowerTest, NoStepIsThereInPartWhileOlderOnesAreRemoved) { fail_everywhere(1); }

std::string name_of(const testing::TestParamInfo<std::tuple<Mode, bool>>& info) {
  const auto [mode, is_replaced] = info.param;
  const std::string name = mode == Mode::sync         ? "Sync"
                           : mode == Mode::collective ? "Collective"
                                                      : "Threaded";
  return name + (is_replaced ? "Again" : "");
}

INSTANTIATE_TEST_SUITE_P(Modes, RbioPowerTest,
                         testing::Combine(testing::Values(Mode::threaded, Mode::sync,
                                                          Mode::collective),
                                          testing::Bool()),
                         name_of);

}  // namespace
}  // namespace cairn::sim
