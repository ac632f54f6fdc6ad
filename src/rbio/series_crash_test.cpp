// The process is killed before each change to files, or an operation fails, at each step of the
// protocol.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <tuple>

#include "files/hooked_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

/// Each rank writes, or two ranks of a node have one writer in mode split; or two ranks on two
/// nodes have one.
using Kind = std::tuple<Mode, bool>;

class SeriesCrashTest : public testing::TestWithParam<Kind> {
 protected:
  SeriesCrashTest() {
    const auto [mode, spans_nodes] = GetParam();
    shape_.ranks = spans_nodes ? 5 : mode == Mode::split ? 4 : 3;
    shape_.ranks_per_node = spans_nodes ? 1 : 2;
    shape_.options.mode = mode;
    shape_.options.group_size = spans_nodes || mode == Mode::split ? 2 : 1;
    shape_.options.files = files_in(mode, 2);
  }
  std::string directory() const { return folder_ / "series"; }

  /// Operations on files that writing step 2 takes, or only those that change something.
  std::uint64_t operations_of_a_step(bool only_changes = false) {
    const TemporaryFolder other(fast_folder());
    write_steps(*files_, other / "series", shape_, {1});
    std::atomic<std::uint64_t> count = 0;
    const auto counted = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (!only_changes || changes_files(operation)) ++count;
      return {};
    });
    write_steps(*counted, other / "series", shape_, {2});
    return count;
  }
  std::uint64_t changes_of_a_step() { return operations_of_a_step(true); }

  /// A process that is killed before change `at`, if it has so many.
  void write_and_die(const std::vector<std::uint64_t>& steps, std::uint64_t at) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::atomic<std::uint64_t> changes = 0;
      const auto dying = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
        if (changes_files(operation) && changes++ >= at) static_cast<void>(::raise(SIGKILL));
        return {};
      });
      write_steps(*dying, directory(), shape_, steps);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
  }

  Shape shape_;
  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_P(SeriesCrashTest, AfterADeathAtAnyChangeTheNewestWholeStepIsRestored) {
  const std::uint64_t changes = changes_of_a_step();
  ASSERT_GT(changes, 10U);
  bool old_seen = false, new_seen = false;
  for (std::uint64_t at = 0; at < changes; ++at) {
    SCOPED_TRACE(fmt::format("change {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {1});
    write_and_die({2}, at);
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

TEST_P(SeriesCrashTest, AStepThatIsWrittenAgainIsNeverLost) {
  const std::uint64_t changes = changes_of_a_step() + 5;
  for (std::uint64_t at = 0; at < changes; ++at) {
    SCOPED_TRACE(fmt::format("change {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {2});
    write_and_die({2}, at);
    expect_restored(*files_, directory(), shape_, 2);
  }
}

TEST_P(SeriesCrashTest, WhileOlderStepsAreRemovedTheNewestOneStays) {
  shape_.options.keep = 1;
  const std::uint64_t changes = changes_of_a_step() + 20;
  for (std::uint64_t at = changes / 2; at < changes; ++at) {
    SCOPED_TRACE(fmt::format("change {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {1});
    write_and_die({2}, at);
    Team(shape_.ranks).run([&](Communicator& comm) {
      const auto series = open_series(comm, *files_, directory(), shape_);
      Program program = program_of(*series, shape_, comm.rank());
      const auto restored = series->restore(comm, std::nullopt);
      ASSERT_TRUE(restored) << restored.error().text;
      EXPECT_TRUE(program.holds(*restored));
    });
  }
}

TEST_P(SeriesCrashTest, AnErrorOfAnyOperationReachesAllRanksAndLeavesTheStepBefore) {
  const std::uint64_t operations = operations_of_a_step();
  std::uint64_t failures = 0;
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    ASSERT_TRUE(remove_all(*files_, directory()));
    write_steps(*files_, directory(), shape_, {1});
    std::atomic<bool> is_over = false;
    const auto failing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.index >= at && !is_over)
        return fail(at % 2 == 0 ? Code::no_space : Code::io, "{}: failed", operation.path);
      return {};
    });
    Team(shape_.ranks).run([&](Communicator& comm) {
      const auto opened = Series::open(comm, services_of(*failing), placement_of(shape_),
                                       directory(), shape_.options);
      if (!opened) return;
      Series& series = **opened;
      Program program = program_of(series, shape_, comm.rank());
      program.compute(2);
      const auto begun = series.begin(comm, 2);
      ASSERT_TRUE(begun) << begun.error().text;
      program.forget();
      const Status written = series.wait(comm, *begun);
      if (!written) {
        EXPECT_EQ(written.error().code, at % 2 == 0 ? Code::no_space : Code::io);
        if (comm.rank() == 0) ++failures;
      }
      comm.barrier();
      is_over = true;
      comm.barrier();
      const auto restored = series.restore(comm, std::nullopt);
      ASSERT_TRUE(restored) << restored.error().text;
      EXPECT_TRUE(program.holds(*restored));
      if (written) {
        EXPECT_EQ(*restored, 2U);
      }
      program.compute(3);
      const auto next = series.begin(comm, 3);
      ASSERT_TRUE(next) << next.error().text;
      ASSERT_TRUE(series.wait(comm, *next));
      EXPECT_TRUE(series.close(comm));
    });
    if (files_->list(directory() + "/step.3")) expect_restored(*files_, directory(), shape_, 3);
  }
  EXPECT_GT(failures, 20U);
}

std::string name_of_kind(const testing::TestParamInfo<Kind>& kind) {
  const auto [mode, spans_nodes] = kind.param;
  const std::string name = mode == Mode::sync         ? "Sync"
                           : mode == Mode::collective ? "Collective"
                           : mode == Mode::split      ? "Split"
                                                      : "Threaded";
  return name + (spans_nodes ? "BetweenNodes" : "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, SeriesCrashTest,
                         testing::Values(Kind{Mode::threaded, false}, Kind{Mode::sync, false},
                                         Kind{Mode::collective, false}, Kind{Mode::split, false},
                                         Kind{Mode::threaded, true}),
                         name_of_kind);

}  // namespace
}  // namespace cairn::rbio
