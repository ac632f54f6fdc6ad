// What only mode threaded does: the writing goes on behind the program, within limits.

#include <sys/wait.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <string_view>

#include "rbio/slow_files.hpp"
#include "rbio/step_check.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

using namespace std::chrono_literals;

class SeriesThreadedTest : public testing::Test {
 protected:
  std::string directory() const { return folder_ / "series"; }
  static Shape shape_of(int ranks, int group_size) {
    Shape shape;
    shape.ranks = ranks;
    shape.options.group_size = group_size;
    shape.options.pace = 0;
    return shape;
  }
  Services services(std::shared_ptr<Files> files) const {
    return {std::move(files), make_shared_memory(), Log()};
  }
  std::unique_ptr<Series> open(Communicator& comm, std::shared_ptr<Files> files,
                               const Shape& shape) const {
    auto series = Series::open(comm, services(std::move(files)), placement_of(shape), directory(),
                               shape.options);
    EXPECT_TRUE(series) << series.error().text;
    return series ? *std::move(series) : nullptr;
  }
  /// Collective. From here on the calls that the barrage holds up hang.
  void let_files_hang(Communicator& comm) {
    comm.barrier();
    barrage_.close();
    comm.barrier();
  }
  static std::uint64_t bytes_of_a_step() {
    std::uint64_t bytes = 0;
    for (std::size_t field = 0; field < test_shapes().size(); ++field)
      bytes += total_of(field) * test_shapes()[field].element_bytes();
    return bytes;
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> posix_ = make_posix_files();
  Barrage barrage_;
};

TEST_F(SeriesThreadedTest, FilesAreTheSameAsThoseOfModeSync) {
  Shape shape = shape_of(6, 2);
  shape.options.files = 2;
  write_steps(*posix_, folder_ / "threaded", shape, {1, 2});
  shape.options.mode = Mode::sync;
  write_steps(*posix_, folder_ / "sync", shape, {1, 2});
  for (const std::string name : {"/step.1/part.0.rbio", "/step.1/part.1.rbio",
                                 "/step.2/part.0.rbio", "/step.2/part.1.rbio"}) {
    const auto threaded = read_file(*posix_, folder_ / "threaded" + name, 1 << 30);
    const auto sync = read_file(*posix_, folder_ / "sync" + name, 1 << 30);
    ASSERT_TRUE(threaded && sync);
    EXPECT_EQ(*threaded, *sync) << name;
  }
}

TEST_F(SeriesThreadedTest, DataMayChangeWhileTheStepIsWritten) {
  const auto files = hanging_files(*posix_, barrage_, "write");
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm, files, shape_of(4, 0));
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    let_files_hang(comm);
    const auto ticket = series->begin(comm, 1);
    ASSERT_TRUE(ticket);
    program.forget();
    EXPECT_FALSE(series->is_finished(*ticket).value());
    comm.barrier();
    barrage_.open();
    while (!series->is_finished(*ticket).value()) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(series->wait(comm, *ticket));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*posix_, directory(), shape_of(4, 0), 1);
}

TEST_F(SeriesThreadedTest, AStepIsPublishedWithoutAFurtherCallOfTheProgram) {
  constexpr auto patience = 60s;
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm, std::shared_ptr<Files>(make_posix_files()), shape_of(4, 2));
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    const auto limit = std::chrono::steady_clock::now() + patience;
    while (!posix_->info(directory() + "/step.1") && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(posix_->info(directory() + "/step.1"));
    comm.barrier();
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, AStepIsNotSpreadOverMoreTimeThanItMayTake) {
  Shape shape = shape_of(1, 1);
  shape.options.pace = 1;
  shape.options.timeout_s = 2;
  Team(1).run([&](Communicator& comm) {
    const auto series = open(comm, std::shared_ptr<Files>(make_posix_files()), shape);
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    std::this_thread::sleep_for(3s);
    const Ticket second = series->begin(comm, 2).value();
    while (!series->is_finished(second).value()) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(series->wait(comm, second));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, OnlyTheThirdStepWaitsForABuffer) {
  const auto files = hanging_files(*posix_, barrage_, "write");
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm, files, shape_of(4, 2));
    Program program(*series, comm.rank(), comm.size());
    let_files_hang(comm);
    for (const std::uint64_t step : {1U, 2U}) {
      program.compute(step);
      ASSERT_TRUE(series->begin(comm, step));  // no write has returned
    }
    const double waited_s = series->statistics().wait_s;
    program.compute(3);
    comm.barrier();
    std::atomic<bool> is_begun = false;
    std::thread releases;
    if (comm.rank() == 0)
      releases = std::thread([&] {
        std::this_thread::sleep_for(200ms);
        EXPECT_FALSE(is_begun);
        barrage_.open();
      });
    const auto third = series->begin(comm, 3);
    is_begun = true;
    if (releases.joinable()) releases.join();
    ASSERT_TRUE(third) << third.error().text;
    program.forget();
    EXPECT_GT(series->statistics().wait_s, waited_s + 0.05);
    EXPECT_TRUE(series->wait(comm, *third));
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*posix_, directory(), shape_of(4, 0), 3);
}

/// A file system that is not done with a step before the program comes with the second one after
/// it, and then takes some time.
class HalfAsFast {
 public:
  std::shared_ptr<Files> over(Files& inner) {
    return make_hooked_files(inner, [this](const FileOperation& operation) -> Status {
      if (operation.name != "write" || !operation.path.ends_with("part.0.rbio")) return {};
      const std::uint64_t step = step_of(operation.path);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return begun_ >= step + 2; });
      lock.unlock();
      std::this_thread::sleep_for(20ms);
      return {};
    });
  }
  void program_comes_with(std::uint64_t step) {
    const std::scoped_lock lock(mutex_);
    begun_ = step;
    changed_.notify_all();
  }

 private:
  /// From ".../attempt.1-2.STEP/part.0.rbio".
  static std::uint64_t step_of(std::string_view path) {
    path.remove_suffix(std::string_view("/part.0.rbio").size());
    return parse_number(path.substr(path.rfind('.') + 1)).value();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;
};

TEST_F(SeriesThreadedTest, StepsThatComeTwiceTooOftenAreWrittenWithinTheLimit) {
  Shape shape = shape_of(3, 0);
  shape.ranks_per_node = 3;
  shape.options.memory_bytes = bytes_of_a_step() * 5 / 2;
  shape.options.timeout_s = 60;
  HalfAsFast half;
  const auto files = half.over(*posix_);
  constexpr std::uint64_t last = 5;
  Team(3).run([&](Communicator& comm) {
    const auto series = open(comm, files, shape);
    Program program(*series, comm.rank(), comm.size());
    std::vector<std::uint64_t> steps;
    for (std::uint64_t step = 1; step <= last; ++step) {
      program.compute(step);
      if (comm.rank() == 0) half.program_comes_with(step);
      ASSERT_TRUE(series->begin(comm, step));
      steps.push_back(step);
    }
    if (comm.rank() == 0) half.program_comes_with(last + 2);
    program.forget();
    const Statistics statistics = series->statistics();
    EXPECT_EQ(statistics.steps, last);
    EXPECT_GT(statistics.wait_s, 0.03);  // three begins, each for 100 ms or more of writing
    EXPECT_GE(statistics.begin_s, statistics.wait_s + statistics.copy_s);
    if (comm.rank() == 0) {
      EXPECT_LE(statistics.peak_buffer_bytes, shape.options.memory_bytes);
      EXPECT_GE(statistics.peak_buffer_bytes, 2 * bytes_of_a_step());
      EXPECT_GT(statistics.write_s, 0.05);
    }
    EXPECT_EQ(series->steps(comm).value(), steps);
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*posix_, directory(), shape, last);
}

TEST_F(SeriesThreadedTest, TheBytesWrittenAreThoseOfTheFields) {
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape_of(3, 3));
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    const auto written = static_cast<std::int64_t>(series->statistics().written_bytes);
    EXPECT_EQ(static_cast<std::uint64_t>(allreduce(comm, written, Reduce::sum)), bytes_of_a_step());
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, AStepLargerThanTheLimitIsAnErrorOnAllRanks) {
  Shape shape = shape_of(4, 2);
  shape.options.memory_bytes = 4096;
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    const auto begun = series->begin(comm, 1);
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::no_space);
    for (std::size_t field = 0; field < test_shapes().size(); ++field)
      ASSERT_TRUE(series->set_field(field, nullptr, 0));
    const auto small = series->begin(comm, 2);
    ASSERT_TRUE(small) << small.error().text;
    EXPECT_EQ(*small, 1);
    EXPECT_TRUE(series->wait(comm, *small));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, ALimitOfExactlyOneStepOfSmallFieldsIsEnough) {
  Shape shape = shape_of(3, 0);
  shape.ranks_per_node = 3;
  constexpr int fields = 50;
  constexpr std::uint64_t bytes = 100;
  shape.options.memory_bytes = 3 * fields * bytes;
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape);
    Blob data(bytes, static_cast<std::byte>(comm.rank()));
    for (int field = 0; field < fields; ++field)
      ASSERT_TRUE(series->add_field({fmt::format("f{}", field), ElementType::uint8, 1}, data.data(),
                                    data.size()));
    const auto begun = series->begin(comm, 1);
    ASSERT_TRUE(begun) << begun.error().text;
    data.assign(bytes, std::byte{9});
    ASSERT_TRUE(series->restore(comm, 1));
    EXPECT_EQ(data, Blob(bytes, static_cast<std::byte>(comm.rank())));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, AStepThatDoesNotFitOnOneWriterHoldsNoBufferOfAnother) {
  Shape shape = shape_of(4, 2);
  shape.options.memory_bytes = 65536;
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape);
    Blob data(100000);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint8, 1}, nullptr, 0));
    for (const std::uint64_t step : {1U, 2U, 3U}) {
      ASSERT_TRUE(series->set_field(0, data.data(), comm.rank() == 3 ? data.size() : 20000));
      EXPECT_EQ(series->begin(comm, step).error().code, Code::no_space);
    }
    ASSERT_TRUE(series->set_field(0, data.data(), 20000));
    const auto small = series->begin(comm, 4);
    ASSERT_TRUE(small) << small.error().text;
    EXPECT_TRUE(series->wait(comm, *small));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, ARankTakesNoBufferForAStepThatItsWriterCannotHold) {
  Shape shape = shape_of(3, 0);
  shape.ranks_per_node = 3;
  shape.options.memory_bytes = 65536;
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape);
    Blob data(30000);  // fits, but not that of all three
    ASSERT_TRUE(series->add_field({"x", ElementType::uint8, 1}, data.data(), data.size()));
    EXPECT_EQ(series->begin(comm, 1).error().code, Code::no_space);
    EXPECT_EQ(series->statistics().peak_buffer_bytes, 0U);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, AnErrorComesBackOnceFromTheNextBegin) {
  std::atomic<bool> is_full = false;
  const auto full = make_hooked_files(*posix_, [&](const FileOperation& operation) -> Status {
    // Only the second group has no space.
    if (is_full && operation.name == "write" && operation.path.ends_with("part.1.rbio"))
      return fail(Code::no_space, "{}: no space", operation.path);
    return {};
  });
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *full, directory(), shape_of(4, 2));
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    comm.barrier();
    is_full = true;
    comm.barrier();
    const auto failed = series->begin(comm, 2);
    ASSERT_TRUE(failed);
    while (!series->is_finished(*failed).value()) std::this_thread::sleep_for(1ms);
    comm.barrier();
    is_full = false;
    const auto next = series->begin(comm, 3);
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code, Code::no_space);
    EXPECT_EQ(series->wait(comm, *failed).error().code, Code::no_space);
    program.compute(4);
    const auto fourth = series->begin(comm, 4);
    ASSERT_TRUE(fourth) << fourth.error().text;
    EXPECT_TRUE(series->wait(comm, *fourth));
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 4}));
    EXPECT_TRUE(series->close(comm));
    // What the failed step has left is gone before the run has ended.
    if (comm.rank() == 0) {
      EXPECT_EQ(posix_->list(directory() + "/.rbio").value(),
                (std::vector<std::string>{"generation", "lock"}));
    }
  });
  expect_restored(*posix_, directory(), shape_of(4, 0), 4);
}

TEST_F(SeriesThreadedTest, AnErrorThatNoCallHasReturnedComesBackFromClose) {
  const auto broken = make_hooked_files(*posix_, [](const FileOperation& operation) -> Status {
    if (operation.name == "sync" && operation.path.ends_with("part.2.rbio"))
      return fail(Code::io, "{}: broken", operation.path);
    return {};
  });
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *broken, directory(), shape_of(3, 1));
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    const Status closed = series->close(comm);
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, Code::io);
    EXPECT_EQ(closed.error().rank, 2);
  });
}

TEST_F(SeriesThreadedTest, AnExceptionInTheThreadFailsTheStepAndTheProgramGoesOn) {
  const auto throwing = make_hooked_files(*posix_, [](const FileOperation& operation) -> Status {
    if (operation.name == "write" && operation.path.ends_with("1-1.1/part.0.rbio"))
      throw std::bad_alloc();
    return {};
  });
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *throwing, directory(), shape_of(3, 1));
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    EXPECT_EQ(series->wait(comm, 1).error().code, Code::io);
    program.compute(2);
    ASSERT_TRUE(series->begin(comm, 2));
    EXPECT_TRUE(series->wait(comm, 2));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*posix_, directory(), shape_of(3, 1), 2);
}

TEST_F(SeriesThreadedTest, AnExceptionInTheThreadThatRemovesOlderStepsLeavesThemToTheNextStep) {
  const auto throwing = make_hooked_files(*posix_, [](const FileOperation& operation) -> Status {
    if (operation.name == "rename" && operation.path.ends_with("/step.1")) throw std::bad_alloc();
    return {};
  });
  Shape shape = shape_of(3, 1);
  shape.options.keep = 1;
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *throwing, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    for (const int step : {1, 2}) {
      program.compute(step);
      ASSERT_TRUE(series->begin(comm, static_cast<std::uint64_t>(step)));
    }
    EXPECT_TRUE(series->close(comm));
  });
  EXPECT_TRUE(std::filesystem::exists(directory() + "/step.1"));
  expect_restored(*posix_, directory(), shape, 2);
}

/// The thread is not in the child, and the lock on the series is that of the parent.
TEST_F(SeriesThreadedTest, AChildMadeByForkNeitherWaitsForTheThreadNorReleasesTheSeries) {
  Team(1).run([&](Communicator& comm) {
    auto series = open_series(comm, *posix_, directory(), shape_of(1, 1));
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(10);  // the default action ends it
      series.reset();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const auto second = Series::open(comm, services_of(*posix_), placement_of(shape_of(1, 1)),
                                     directory(), shape_of(1, 1).options);
    EXPECT_EQ(second.error().code, Code::busy);
    ASSERT_TRUE(series->begin(comm, 2));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, AFileSystemThatHangsFailsTheStepAndTheProgramGoesOn) {
  Shape shape = shape_of(4, 2);
  shape.options.timeout_s = 0.2;
  const auto files = hanging_files(*posix_, barrage_, "sync");
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm, files, shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    let_files_hang(comm);
    program.compute(2);
    ASSERT_TRUE(series->begin(comm, 2));
    ASSERT_TRUE(series->begin(comm, 3));
    EXPECT_EQ(series->wait(comm, 2).error().code, Code::io);
    EXPECT_EQ(series->wait(comm, 3).error().code, Code::io);
    EXPECT_EQ(series->begin(comm, 4).error().code, Code::io);  // both buffers are in use
    EXPECT_EQ(series->restore(comm, std::nullopt).value(), 1U);
    EXPECT_TRUE(program.holds(1));
    comm.barrier();
    barrage_.open();
    program.compute(5);
    auto begun = series->begin(comm, 5);
    while (!begun) begun = series->begin(comm, 5);
    const Status written = series->wait(comm, *begun);
    EXPECT_TRUE(written) << written.error().text;
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 5}));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesThreadedTest, CloseLeavesAThreadThatHangsAndItPublishesNothing) {
  Shape shape = shape_of(2, 0);
  shape.options.timeout_s = 0.2;
  auto files = hanging_files(*posix_, barrage_, "write");
  const std::weak_ptr<Files> in_use = files;
  Team(2).run([&](Communicator& comm) {
    const auto series = open(comm, files, shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    let_files_hang(comm);
    ASSERT_TRUE(series->begin(comm, 2));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(series->close(comm).error().code, Code::io);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  });
  barrage_.wait_until_reached();
  files.reset();
  EXPECT_FALSE(in_use.expired());  // the thread still has them
  barrage_.open();
  while (!in_use.expired()) std::this_thread::sleep_for(1ms);
  const auto steps = SeriesDirectory(*posix_, directory()).steps().value();
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].step, 1U);
  EXPECT_TRUE(check_step(*posix_, directory() + "/step.1").troubles.empty());
}

/// Step 1 is written again, and its publication hangs there.
bool is_in_publication(const FileOperation& operation, std::string_view name) {
  if (operation.name != name) return false;
  return operation.path.ends_with("/publishing") || operation.to.ends_with("/removed.1") ||
         (name == "sync_folder" && operation.path.ends_with("/.rbio"));
}

/// Rank 1 comes last, and publishes.
TEST_F(SeriesThreadedTest, AThreadThatHangsWhileItPublishesKeepsTheSeriesBusyForAllLaterHandles) {
  Shape shape = shape_of(2, 1);
  shape.options.timeout_s = 0.5;
  for (const std::string name : {"make_new_folder", "rename", "sync_folder"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(remove_all(*posix_, directory()));
    const std::string first_marker = directory() + "/.rbio/attempt.1-2.1/done.0";
    std::shared_ptr<Files> of_last =
        make_hooked_files(*posix_, [&, name](const FileOperation& operation) -> Status {
          if (is_in_publication(operation, name)) barrage_.pass();
          if (operation.name == "sync" &&
              operation.path.find("/attempt.1-2.1/part") != std::string_view::npos)
            while (!posix_->info(first_marker)) std::this_thread::sleep_for(1ms);
          return {};
        });
    const std::weak_ptr<Files> in_use = of_last;
    Team(2).run([&](Communicator& comm) {
      const auto series = comm.rank() == 1 ? open(comm, of_last, shape)
                                           : open_series(comm, *posix_, directory(), shape);
      Program program(*series, comm.rank(), comm.size());
      program.compute(1);
      ASSERT_TRUE(series->begin(comm, 1));
      ASSERT_TRUE(series->wait(comm, 1));
      let_files_hang(comm);
      ASSERT_TRUE(series->begin(comm, 1));
      EXPECT_EQ(series->close(comm).error().code, Code::io);
      const auto again =
          Series::open(comm, services_of(*posix_), placement_of(shape), directory(), shape.options);
      ASSERT_FALSE(again);
      EXPECT_EQ(again.error().code, Code::busy);
    });
    barrage_.wait_until_reached();
    of_last.reset();
    barrage_.open();
    while (!in_use.expired()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(SeriesDirectory(*posix_, directory()).steps().value().size(), 1U);
    EXPECT_TRUE(check_step(*posix_, directory() + "/step.1").troubles.empty());
  }
}

TEST_F(SeriesThreadedTest, WritingIsSpreadOverTheIntervalOfTheStepBefore) {
  Shape shape = shape_of(2, 0);
  shape.options.pace = 1;
  constexpr std::uint64_t bytes = 2 * write_bytes + 1;
  const Blob data(bytes, std::byte{7});
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *posix_, directory(), shape);
    ASSERT_TRUE(series->add_field({"density", ElementType::uint8, 1},
                                  const_cast<std::byte*>(data.data()),
                                  comm.rank() == 0 ? bytes : 0));
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    std::this_thread::sleep_for(600ms);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(series->begin(comm, 2));
    while (!series->is_finished(2).value()) std::this_thread::sleep_for(1ms);
    EXPECT_GT(std::chrono::steady_clock::now() - start, 500ms);
    EXPECT_TRUE(series->close(comm));
  });
}

}  // namespace
}  // namespace cairn::rbio
