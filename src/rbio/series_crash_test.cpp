// The run dies, or an operation fails, at each step of the protocol.

#include "files/hooked_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

struct Death {};

class SeriesCrashTest : public testing::Test {
 protected:
  SeriesCrashTest() {
    shape_.ranks = 3;
    shape_.options.group_size = 1;
    shape_.options.files = 2;
  }
  std::string directory() const { return folder_ / "series"; }

  /// Operations on files that writing step 2 takes.
  std::uint64_t operations_of_a_step() {
    const TemporaryFolder other;
    write_steps(*files_, other / "series", shape_, {1});
    std::uint64_t count = 0;
    const auto counted = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      count = operation.index + 1;
      return {};
    });
    write_steps(*counted, other / "series", shape_, {2});
    return count;
  }

  Shape shape_;
  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(SeriesCrashTest, AfterADeathAtAnyOperationTheNewestWholeStepIsRestored) {
  const std::uint64_t operations = operations_of_a_step();
  ASSERT_GT(operations, 20U);
  bool old_seen = false, new_seen = false;
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {1});
    const auto dying = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.index >= at) throw Death{};
      return {};
    });
    try {
      write_steps(*dying, directory(), shape_, {2});
    } catch (const Death&) {  // how many operations there are depends on who comes first
    }
    Team(2).run([&](Communicator& comm) {
      Shape two = shape_;
      two.ranks = 2;
      two.options = {};
      const auto series = open_series(comm, *files_, directory(), two);
      Program program(*series, comm.rank(), comm.size());
      const auto restored = series->restore(comm, std::nullopt);
      ASSERT_TRUE(restored) << restored.error().text;
      EXPECT_TRUE(program.holds(*restored));
      if (comm.rank() == 0) (*restored == 2 ? new_seen : old_seen) = true;
    });
    const auto left = files_->list(directory() + "/.rbio");
    ASSERT_TRUE(left);
    EXPECT_EQ(*left, (std::vector<std::string>{"generation", "lock"}));
  }
  EXPECT_TRUE(old_seen && new_seen);
}

TEST_F(SeriesCrashTest, AStepThatIsWrittenAgainIsNeverLost) {
  const std::uint64_t operations = operations_of_a_step() + 10;
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {2});
    const auto dying = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.index >= at) throw Death{};
      return {};
    });
    try {
      write_steps(*dying, directory(), shape_, {2});
    } catch (const Death&) {
    }
    expect_restored(*files_, directory(), shape_, 2);
  }
}

TEST_F(SeriesCrashTest, AnErrorOfAnyOperationReachesAllRanksAndLeavesTheStepBefore) {
  const std::uint64_t operations = operations_of_a_step();
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {1});
    const auto failing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.index == at) return fail(Code::no_space, "{}: no space", operation.path);
      return {};
    });
    Team(3).run([&](Communicator& comm) {
      const auto series = Series::open(comm, services_of(*failing), placement_of(shape_),
                                       directory(), shape_.options);
      if (!series) return;
      Program program(**series, comm.rank(), comm.size());
      program.compute(2);
      const auto begun = (*series)->begin(comm, 2);
      ASSERT_TRUE(begun) << begun.error().text;
      const Status written = (*series)->wait(comm, *begun);
      const auto restored = (*series)->restore(comm, std::nullopt);
      ASSERT_TRUE(restored) << restored.error().text;
      EXPECT_TRUE(program.holds(*restored));
      if (written) {
        EXPECT_EQ(*restored, 2U);
      }
    });
  }
}

}  // namespace
}  // namespace cairn::rbio
