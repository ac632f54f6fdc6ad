// Groups that span nodes: data travel by messages after begin() has returned.

#include "rbio/held_messages.hpp"
#include "rbio/slow_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

using namespace std::chrono_literals;

class SeriesNodesTest : public testing::Test {
 protected:
  std::string directory() const { return folder_ / "series"; }
  /// One group; the first two ranks are on the node of its writer.
  static Shape shape_of(int ranks) {
    Shape shape;
    shape.ranks = ranks;
    shape.options.group_size = ranks;
    shape.options.pace = 0;
    return shape;
  }
  /// Each rank over a network that holds data back while it is closed.
  void run(int ranks, const std::function<void(Communicator&)>& rank_main) {
    Team(ranks).run([&](Communicator& team) {
      HeldMessages comm(team, [this] { return is_closed_.load(); });
      rank_main(comm);
    });
  }
  /// By rank 0, while all ranks are here.
  void set_closed(Communicator& comm, bool is_closed) {
    comm.barrier();
    if (comm.rank() == 0) is_closed_ = is_closed;
    comm.barrier();
  }
  static void wait_until_finished(Series& series, Ticket ticket) {
    while (!series.is_finished(ticket).value()) std::this_thread::sleep_for(1ms);
  }
  bool is_published(std::uint64_t step) {
    return files_->info(SeriesDirectory(*files_, directory()).step_path(step)).has_value();
  }

  std::atomic<bool> is_closed_ = false;
  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(SeriesNodesTest, DataMayChangeBeforeTheyHaveLeftTheNode) {
  const Shape shape = shape_of(5);
  run(5, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    set_closed(comm, true);
    const auto ticket = series->begin(comm, 1);
    ASSERT_TRUE(ticket) << ticket.error().text;
    program.forget();
    EXPECT_FALSE(series->is_finished(*ticket).value());
    set_closed(comm, false);
    wait_until_finished(*series, *ticket);  // also on the other nodes, without a collective call
    EXPECT_TRUE(series->wait(comm, *ticket));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(3), 1);
}

TEST_F(SeriesNodesTest, ARankOnAnotherNodeIsNotFinishedBeforeItsWriterIs) {
  Barrage barrage;
  const auto files = hanging_files(*files_, barrage, "write");
  const Shape shape = shape_of(4);
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    comm.barrier();
    barrage.close();
    comm.barrier();
    const auto ticket = series->begin(comm, 1);
    ASSERT_TRUE(ticket);
    while (!barrage.is_reached()) EXPECT_FALSE(series->is_finished(*ticket).value());
    comm.barrier();
    for (int look = 0; look < 20; ++look) EXPECT_FALSE(series->is_finished(*ticket).value());
    comm.barrier();
    barrage.open();
    wait_until_finished(*series, *ticket);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesNodesTest, ProgressAloneBringsAStepToItsEnd) {
  const Shape shape = shape_of(4);
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    set_closed(comm, true);
    ASSERT_TRUE(series->begin(comm, 1));
    set_closed(comm, false);
    while (!is_published(1)) EXPECT_TRUE(series->progress());
    comm.barrier();
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(2), 1);
}

TEST_F(SeriesNodesTest, OnlyTheThirdStepWaitsUntilDataHaveLeft) {
  const Shape shape = shape_of(4);
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    set_closed(comm, true);
    for (const std::uint64_t step : {1U, 2U}) {
      program.compute(step);
      ASSERT_TRUE(series->begin(comm, step));
      program.forget();
    }
    program.compute(3);
    comm.barrier();
    std::thread releases;
    std::atomic<bool> is_begun = false;
    if (comm.rank() == 0)
      releases = std::thread([&] {
        std::this_thread::sleep_for(100ms);
        EXPECT_FALSE(is_begun);
        is_closed_ = false;
      });
    const auto third = series->begin(comm, 3);
    is_begun = true;
    if (releases.joinable()) releases.join();
    ASSERT_TRUE(third) << third.error().text;
    program.forget();
    EXPECT_TRUE(series->wait(comm, *third));
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_TRUE(series->close(comm));
  });
  for (const std::uint64_t step : {1U, 2U, 3U})
    Team(2).run([&](Communicator& comm) {
      const auto series = open_series(comm, *files_, directory(), shape_of(2));
      Program program(*series, comm.rank(), comm.size());
      ASSERT_TRUE(series->restore(comm, step));
      EXPECT_TRUE(program.holds(step));
    });
}

TEST_F(SeriesNodesTest, StepsThatComeTwiceTooOftenStayWithinTheLimitOnAllRanks) {
  Shape shape = shape_of(4);
  std::uint64_t bytes = 0;
  for (std::size_t field = 0; field < test_shapes().size(); ++field)
    bytes += total_of(field) * test_shapes()[field].element_bytes();
  shape.options.memory_bytes = bytes * 5 / 2;
  const auto files = slow_files(*files_, 20ms);
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    for (std::uint64_t step = 1; step <= 6; ++step) {
      program.compute(step);
      std::this_thread::sleep_for(40ms);  // the writes of a step take twice as long
      const auto begun = series->begin(comm, step);
      ASSERT_TRUE(begun) << begun.error().text;
      program.forget();
    }
    const std::uint64_t peak = series->statistics().peak_buffer_bytes;
    EXPECT_LE(peak, shape.options.memory_bytes);
    EXPECT_EQ(peak > 0, comm.rank() != 1);  // rank 1 copies into the buffer of rank 0
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(3), 6);
}

TEST_F(SeriesNodesTest, DataThatDoNotArriveFailTheStepOnAllRanksAndNotTheNext) {
  Shape shape = shape_of(4);
  shape.options.timeout_s = 0.2;
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    set_closed(comm, true);
    program.compute(2);
    ASSERT_TRUE(series->begin(comm, 2));
    program.forget();
    const Status late = series->wait(comm, 2);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::io);
    EXPECT_EQ(late.error().rank, 0);
    EXPECT_TRUE(series->is_finished(2).value());
    ASSERT_TRUE(series->begin(comm, 3));
    EXPECT_EQ(series->begin(comm, 4).error().code, Code::io);  // both buffers are in use
    EXPECT_EQ(series->restore(comm, std::nullopt).value(), 1U);
    set_closed(comm, false);
    program.compute(5);
    auto begun = series->begin(comm, 5);
    if (!begun) begun = series->begin(comm, 5);  // the first one returns the error of step 3
    ASSERT_TRUE(begun) << begun.error().text;
    program.forget();
    const Status written = series->wait(comm, *begun);
    EXPECT_TRUE(written) << written.error().text;
    EXPECT_EQ(series->steps(comm).value(), (std::vector<std::uint64_t>{1, 5}));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape, 5);
}

TEST_F(SeriesNodesTest, CloseDoesNotWaitForEverForData) {
  Shape shape = shape_of(3);
  shape.options.timeout_s = 0.2;
  write_steps(*files_, directory(), shape, {1});
  run(3, [&](Communicator& comm) {
    Services services = services_of(*files_);
    services.memory = nullptr;  // what is left behind would stay until the end of the tests
    const auto series =
        Series::open(comm, services, placement_of(shape), directory(), shape.options).value();
    Program program(*series, comm.rank(), comm.size());
    set_closed(comm, true);
    ASSERT_TRUE(series->begin(comm, 2));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(series->close(comm).error().code, Code::io);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  });
  expect_restored(*files_, directory(), shape, 1);
}

TEST_F(SeriesNodesTest, AProgramThatMakesNoCallForLongLosesNoStep) {
  Shape shape = shape_of(3);
  shape.options.timeout_s = 0.3;
  run(3, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    set_closed(comm, true);
    for (const std::uint64_t step : {1U, 2U}) {
      program.compute(step);
      const auto begun = series->begin(comm, step);
      ASSERT_TRUE(begun) << begun.error().text;
      std::this_thread::sleep_for(400ms);
      EXPECT_TRUE(series->is_finished(*begun).value()) << "only wait() knows more";
      set_closed(comm, step == 1);
    }
    EXPECT_TRUE(series->wait(comm, 1));
    EXPECT_TRUE(series->wait(comm, 2));
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(2), 2);
}

TEST_F(SeriesNodesTest, AStepThatOneNodeCannotHoldIsAnErrorOnAllRanks) {
  Shape shape = shape_of(4);
  shape.options.memory_bytes = 4096;
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->begin(comm, 1).error().code, Code::no_space);
    for (std::size_t field = 0; field < test_shapes().size(); ++field)
      ASSERT_TRUE(series->set_field(field, nullptr, 0));
    const auto small = series->begin(comm, 2);
    ASSERT_TRUE(small) << small.error().text;
    wait_until_finished(*series, *small);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesNodesTest, ABufferThatGrowsStaysWithinTheLimitOnAnotherNode) {
  Shape shape = shape_of(3);
  constexpr std::uint64_t page = 4096;
  shape.options.memory_bytes = 20 * page;
  run(3, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Blob data(comm.rank() == 2 ? 19 * page : 0);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint8, 1}, nullptr, 0));
    for (const std::uint64_t pages : {10U, 19U}) {
      ASSERT_TRUE(series->set_field(0, data.data(), comm.rank() == 2 ? pages * page : 0));
      const auto begun = series->begin(comm, pages);
      ASSERT_TRUE(begun) << begun.error().text;
      ASSERT_TRUE(series->wait(comm, *begun));
    }
    EXPECT_LE(series->statistics().peak_buffer_bytes, shape.options.memory_bytes);
    EXPECT_EQ(series->statistics().peak_buffer_bytes > 0, comm.rank() != 1);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesNodesTest, InModeSyncDataHaveArrivedAndAreWrittenWhenBeginReturns) {
  Shape shape = shape_of(4);
  shape.options.mode = Mode::sync;
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    set_closed(comm, true);
    std::thread releases;
    if (comm.rank() == 0)
      releases = std::thread([&] {
        std::this_thread::sleep_for(100ms);
        is_closed_ = false;
      });
    const auto begun = series->begin(comm, 1);
    if (comm.rank() == 0) {
      EXPECT_TRUE(is_published(1)) << "the writer has written";
    }
    program.forget();
    if (releases.joinable()) releases.join();
    ASSERT_TRUE(begun) << begun.error().text;
    EXPECT_TRUE(series->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(2), 1);
}

TEST_F(SeriesNodesTest, SplitWritersReceiveFromOtherNodes) {
  Shape shape = shape_of(4);
  shape.options.mode = Mode::split;
  shape.options.group_size = 2;
  shape.ranks_per_node = 1;
  run(4, [&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    const bool is_writer = comm.rank() % 2 == 0;
    std::vector<std::uint32_t> values(is_writer ? 0 : 1000 * static_cast<unsigned>(comm.rank()));
    auto* data = reinterpret_cast<std::byte*>(values.data());
    ASSERT_TRUE(series->add_field({"x", ElementType::uint32, 1}, data, values.size()));
    for (const std::uint32_t step : {1U, 2U}) {
      std::fill(values.begin(), values.end(), step);
      const auto ticket = series->begin(comm, step);
      ASSERT_TRUE(ticket) << ticket.error().text;
      std::fill(values.begin(), values.end(), 0);
      wait_until_finished(*series, *ticket);
    }
    ASSERT_TRUE(series->restore(comm, 1));
    EXPECT_EQ(std::count(values.begin(), values.end(), 1U),
              static_cast<std::ptrdiff_t>(values.size()));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesNodesTest, EachLayoutGivesTheSameBytesAsOneNode) {
  Shape shape = shape_of(6);
  shape.ranks_per_node = 6;
  write_steps(*files_, folder_ / "one node", shape, {1});
  const auto expected = read_file(*files_, folder_ / "one node/step.1/part.0.rbio", 1 << 30);
  ASSERT_TRUE(expected);
  for (const int ranks_per_node : {1, 2, 4}) {
    for (const Mode mode : {Mode::threaded, Mode::sync}) {
      shape.ranks_per_node = ranks_per_node;
      shape.options.mode = mode;
      const std::string other =
          fmt::format("{}/{} {}", folder_.path(), ranks_per_node, static_cast<int>(mode));
      write_steps(*files_, other, shape, {1});
      const auto found = read_file(*files_, other + "/step.1/part.0.rbio", 1 << 30);
      ASSERT_TRUE(found);
      EXPECT_EQ(*found, *expected) << other;
    }
  }
}

}  // namespace
}  // namespace cairn::rbio
