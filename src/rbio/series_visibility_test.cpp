// What a series does where nodes do not see the same files, or where files vanish while it reads.

#include <atomic>
#include <string>
#include <string_view>

#include "files/hooked_files.hpp"
#include "files/passing_files.hpp"
#include "rbio/step_check.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

/// Two ranks on two nodes, each a writer.
class SeriesVisibilityTest : public testing::Test {
 protected:
  SeriesVisibilityTest() {
    shape_.ranks = 2;
    shape_.ranks_per_node = 1;
    shape_.options.timeout_s = 0.5;
    shape_.options.pace = 0;
  }
  std::string directory() const { return folder_ / "series"; }
  std::string step(std::uint64_t number) const { return directory() + "/" + step_name(number); }

  Shape shape_;
  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> posix_ = make_posix_files();
};

bool opens_a_part(const FileOperation& operation) {
  return operation.name == "open" && operation.path.find("/step.") != std::string_view::npos &&
         operation.path.ends_with(".rbio");
}

TEST_F(SeriesVisibilityTest, StepsThatOnlyRankZeroSeesAreNotTakenForAFirstRun) {
  write_steps(*posix_, directory(), shape_, {1, 2});
  Team(2).run([&](Communicator& comm) {
    const auto blind = make_hooked_files(*posix_, [&](const FileOperation& operation) -> Status {
      if (comm.rank() == 1 && opens_a_part(operation))
        return fail(Code::not_found, "cannot open {}: no such file", operation.path);
      return {};
    });
    const auto series = open_series(comm, *blind, directory(), shape_);
    Program program(*series, comm.rank(), comm.size());
    for (const auto wanted : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
      const auto restored = series->restore(comm, wanted);
      ASSERT_FALSE(restored);
      EXPECT_EQ(restored.error().code, Code::io);
      EXPECT_EQ(restored.error().rank, 1);
      EXPECT_NE(restored.error().text.find("not visible"), std::string::npos)
          << restored.error().text;
    }
  });
}

/// Calls `change` as rank 0 is about to do an operation, each time.
class Meanwhile {
 public:
  Meanwhile(Communicator& comm, Files& inner, FileHook change)
      : files_(make_hooked_files(inner, [&comm, change](const FileOperation& operation) -> Status {
          return comm.rank() == 0 ? change(operation) : Status{};
        })) {}
  Files& files() { return *files_; }

 private:
  std::unique_ptr<Files> files_;
};

TEST_F(SeriesVisibilityTest, ANewestStepThatVanishesIsNotTakenForAFirstRun) {
  for (const std::string_view when : {"info", "open"}) {
    SCOPED_TRACE(when);
    ASSERT_TRUE(remove_all(*posix_, directory()));
    write_steps(*posix_, directory(), shape_, {1});
    Team(2).run([&](Communicator& comm) {
      bool is_listed = false;
      Meanwhile vanishing(comm, *posix_, [&](const FileOperation& operation) -> Status {
        if (operation.name == "info" && operation.path == step(1)) is_listed = true;
        return is_listed && operation.name == when ? remove_all(*posix_, step(1)) : Status{};
      });
      const auto series = open_series(comm, vanishing.files(), directory(), shape_);
      Program program(*series, comm.rank(), comm.size());
      if (when == "info") {
        EXPECT_EQ(series->index_of_newest(comm).error().code, Code::io);
      } else {
        EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::io);
      }
      EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::not_found) << "now it is";
    });
  }
}

TEST_F(SeriesVisibilityTest, AnOlderStepThatKeepRemovesWhileItIsReadIsNotDamaged) {
  for (const std::string_view part : {"part.0.rbio", "part.1.rbio"}) {
    ASSERT_TRUE(remove_all(*posix_, directory()));
    write_steps(*posix_, directory(), shape_, {1, 2});
    Team(2).run([&](Communicator& comm) {
      bool is_looked_for = false;
      Meanwhile vanishing(comm, *posix_, [&](const FileOperation& operation) -> Status {
        if (operation.name == "info" && operation.path == step(1)) is_looked_for = true;
        if (!is_looked_for || operation.name != "open" || !operation.path.ends_with(part))
          return {};
        return remove_all(*posix_, step(1));
      });
      const auto series = open_series(comm, vanishing.files(), directory(), shape_);
      Program program(*series, comm.rank(), comm.size());
      EXPECT_EQ(series->restore(comm, 1).error().code, Code::not_found);
    });
  }
}

TEST_F(SeriesVisibilityTest, ASeriesThatVanishesWhileItIsOpenIsNotTakenForAFirstRun) {
  write_steps(*posix_, directory(), shape_, {1});
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape_);
    Program program(*series, comm.rank(), comm.size());
    comm.barrier();
    if (comm.rank() == 0) {
      EXPECT_TRUE(posix_->rename(directory(), folder_ / "elsewhere"));
    }
    comm.barrier();
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::io);
  });
}

/// Also with as many of them, or where a node has an older series.
TEST_F(SeriesVisibilityTest, ANodeWithADirectoryOfItsOwnIsAnErrorOfOpen) {
  ASSERT_TRUE(posix_->make_folder(folder_ / "old", 0777));
  write_steps(*posix_, folder_ / "old/1", shape_, {1});
  write_steps(*posix_, directory(), shape_, {1});
  write_steps(*posix_, directory(), shape_, {2});
  // In the second layout no rank of the other node is a writer.
  for (const auto& [other, group_size] : {std::pair(folder_ / "none", 1),
                                          {folder_ / "old/1", 1},
                                          {folder_ / "none", 2},
                                          {folder_ / "old/1", 2}}) {
    SCOPED_TRACE(fmt::format("{}, groups of {}", other, group_size));
    shape_.options.group_size = group_size;
    Team(2).run([&](Communicator& comm) {
      const auto series = Series::open(comm, services_of(*posix_), placement_of(shape_),
                                       comm.rank() == 0 ? directory() : other, shape_.options);
      ASSERT_FALSE(series);
      EXPECT_EQ(series.error().code, Code::io);
      EXPECT_EQ(series.error().rank, 1);
      EXPECT_NE(series.error().text.find("shared by all nodes"), std::string::npos)
          << series.error().text;
    });
  }
  EXPECT_FALSE(posix_->info(folder_ / "none"));
}

TEST_F(SeriesVisibilityTest, ADirectoryThatReachesANodeALittleLateIsNoError) {
  shape_.options.timeout_s = 60;
  Team(2).run([&](Communicator& comm) {
    std::atomic<int> looks = 0;
    const auto late = make_hooked_files(*posix_, [&](const FileOperation& operation) -> Status {
      if (comm.rank() == 1 && operation.name == "open" && looks++ == 0)
        return fail(Code::not_found, "cannot open {}: no such file", operation.path);
      return {};
    });
    EXPECT_TRUE(open_series(comm, *late, directory(), shape_));
    EXPECT_EQ(looks > 1, comm.rank() == 1);
  });
}

/// A rank that sees the marker of the other writer late, or never.
class LateMarkers final : public PassingFiles {
 public:
  LateMarkers(int rank, int late_looks)
      : PassingFiles(make_posix_files()), rank_(rank), late_looks_(late_looks) {}

  Result<std::vector<std::string>> list(const std::string& path) override {
    CAIRN_ASSIGN(std::vector<std::string> names, PassingFiles::list(path));
    if (path.find("/attempt.") != std::string::npos && late_looks_-- > 0)
      std::erase(names, marker_name(rank_ == 0 ? 1 : 0));
    return names;
  }

 private:
  const int rank_;
  std::atomic<int> late_looks_;
};

TEST_F(SeriesVisibilityTest, AStepIsPublishedAlsoIfNoWriterHasSeenAllMarkers) {
  shape_.options.keep = 1;
  Team(2).run([&](Communicator& comm) {
    for (const std::uint64_t number : {1U, 2U}) {
      LateMarkers files(comm.rank(), 1);
      const auto series = open_series(comm, files, directory(), shape_);
      Program program(*series, comm.rank(), comm.size());
      program.compute(number);
      ASSERT_TRUE(series->begin(comm, number));
      const Status written = series->wait(comm, 1);
      EXPECT_TRUE(written) << written.error().text;
      EXPECT_EQ(series->steps(comm).value(), std::vector<std::uint64_t>{number});
      EXPECT_TRUE(series->close(comm));
    }
  });
  expect_restored(*posix_, directory(), shape_, 2);
}

TEST_F(SeriesVisibilityTest, MarkersThatRankZeroNeverSeesAreAnErrorThatNamesTheCause) {
  Team(2).run([&](Communicator& comm) {
    LateMarkers files(comm.rank(), 1000);
    const auto series = open_series(comm, files, directory(), shape_);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    const Status written = series->wait(comm, 1);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Code::io);
    EXPECT_NE(written.error().text.find("shared by all nodes"), std::string::npos)
        << written.error().text;
  });
  expect_restored(*posix_, directory(), shape_, 1);  // the next open sees them
}

TEST_F(SeriesVisibilityTest, AStepThatAUserRemovesWhileItIsPublishedIsLost) {
  Shape alone = shape_;
  alone.ranks = 1;
  Team(1).run([&](Communicator& comm) {
    const std::string attempt = directory() + "/.rbio/attempt.1-1.1";
    const auto files = make_hooked_files(*posix_, [&](const FileOperation& operation) -> Status {
      return operation.name == "list" && operation.path == attempt ? remove_all(*posix_, attempt)
                                                                   : Status{};
    });
    const auto series = open_series(comm, *files, directory(), alone);
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    EXPECT_EQ(series->wait(comm, 1).error().code, Code::lost);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesVisibilityTest, RanksThatRegisterDifferentFieldsCannotRestore) {
  write_steps(*posix_, directory(), shape_, {1});
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape_);
    if (comm.rank() == 1) {
      ASSERT_TRUE(series->add_field({"more", ElementType::int8, 1}, nullptr, 0));
    }
    Program program(*series, comm.rank(), comm.size());
    for (const auto wanted : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
      const auto restored = series->restore(comm, wanted);
      ASSERT_FALSE(restored);
      EXPECT_EQ(restored.error().code, Code::differs);
    }
  });
}

TEST_F(SeriesVisibilityTest, AStepWhoseDirectoryWasRenamedIsDamaged) {
  write_steps(*posix_, directory(), shape_, {1, 100});
  ASSERT_TRUE(posix_->rename(step(100), step(200)));
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape_);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->restore(comm, 200).error().code, Code::corrupt);
    EXPECT_EQ(series->restore(comm, std::nullopt), 1U);
    EXPECT_TRUE(program.holds(1));
    EXPECT_EQ(series->steps(comm).value(), std::vector<std::uint64_t>{1});
  });
  const StepCheck check = check_step(*posix_, step(200));
  ASSERT_EQ(check.troubles.size(), 1U);
  EXPECT_EQ(check.troubles[0].error.code, Code::corrupt);
}

}  // namespace
}  // namespace cairn::rbio
