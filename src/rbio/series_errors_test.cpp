// The error of a step comes from the local calls as soon as a rank knows it.

#include <functional>

#include "files/hooked_files.hpp"
#include "rbio/done_page.hpp"
#include "rbio/slow_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

using namespace std::chrono_literals;

/// The writer of the first two of four ranks cannot write steps 2 and 4. Whether ranks share
/// memory.
class SeriesErrorsTest : public testing::TestWithParam<bool> {
 protected:
  SeriesErrorsTest() { shape_.options.pace = 0; }

  std::unique_ptr<Series> open(Communicator& comm) {
    Services services{failing_, GetParam() ? make_shared_memory() : nullptr, Log()};
    auto series = Series::open(comm, std::move(services), placement_of(shape_), folder_ / "series",
                               shape_.options);
    EXPECT_TRUE(series) << series.error().text;
    return series ? *std::move(series) : nullptr;
  }
  static void wait_until_finished(Series& series, Ticket ticket) {
    while (!series.is_finished(ticket).value()) std::this_thread::sleep_for(1ms);
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> posix_ = make_posix_files();
  Barrage barrage_;
  std::shared_ptr<Files> failing_ =
      make_hooked_files(*posix_, [this](const FileOperation& operation) -> Status {
        if (operation.name != "write") return {};
        if (operation.path.ends_with(".4/part.0.rbio")) barrage_.pass();
        if (operation.path.ends_with(".2/part.0.rbio") ||
            operation.path.ends_with(".4/part.0.rbio"))
          return fail(Code::no_space, "{}: it is full", operation.path);
        return {};
      });
  Shape shape_;
};

TEST_P(SeriesErrorsTest, RanksOfTheWritersGroupGetTheErrorBeforeTheyWait) {
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm);
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->wait(comm, 1));
    const Ticket failing = series->begin(comm, 2).value();
    // With messages, ranks make calls while others wait for them.
    wait_until_finished(*series, failing);
    const Status known = series->failure_of(failing);
    EXPECT_EQ(known.has_value(), comm.rank() >= 2);
    if (!known) {
      EXPECT_EQ(known.error().code, Code::no_space);
      EXPECT_TRUE(known.error().is_reported);
      EXPECT_EQ(known.error().text.ends_with("it is full"), comm.rank() == 0) << known.error().text;
    }
    EXPECT_TRUE(series->failure_of(1));
    EXPECT_TRUE(series->progress()) << "failure_of() has returned it";
    const Status waited = series->wait(comm, failing);
    ASSERT_FALSE(waited);
    EXPECT_TRUE(waited.error().text.find("it is full") != std::string::npos) << waited.error().text;
    EXPECT_EQ(series->failure_of(failing).error().text, waited.error().text) << "on all ranks";
    EXPECT_TRUE(series->begin(comm, 3)) << "wait() has returned the error";
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_P(SeriesErrorsTest, RanksOfOtherGroupsGetTheErrorFromTheirNextCollectiveCall) {
  using Call = std::function<Status(Series&, Communicator&)>;
  const std::vector<Call> calls = {
      [](Series& series, Communicator& comm) -> Status {
        CAIRN_TRY(series.begin(comm, 3));
        return {};
      },
      [](Series& series, Communicator& comm) { return series.wait(comm, 1); },
      [](Series& series, Communicator& comm) { return series.close(comm); }};
  for (const Call& call : calls)
    Team(4).run([&](Communicator& comm) {
      const auto series = open(comm);
      Program program(*series, comm.rank(), comm.size());
      const Ticket failing = series->begin(comm, 2).value();
      wait_until_finished(*series, failing);
      comm.barrier();  // the writer of ranks 0 and 1 has failed
      const bool is_of_its_group = comm.rank() < 2;
      EXPECT_EQ(series->failure_of(failing).has_value(), !is_of_its_group);
      EXPECT_TRUE(series->progress()) << "the others cannot know it";
      const Status returned = call(*series, comm);
      ASSERT_FALSE(returned);
      EXPECT_EQ(returned.error().code, Code::no_space);
      EXPECT_TRUE(returned.error().text.find("it is full") != std::string::npos);
    });
}

TEST_P(SeriesErrorsTest, ProgressReturnsTheErrorOnceAndBeginReturnsItAllTheSame) {
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_TRUE(series->progress());
    const Ticket failing = series->begin(comm, 2).value();
    wait_until_finished(*series, failing);
    EXPECT_EQ(series->progress().has_value(), comm.rank() >= 2);
    EXPECT_TRUE(series->progress());
    comm.barrier();
    EXPECT_EQ(series->begin(comm, 3).error().code, Code::no_space);
    EXPECT_TRUE(series->progress()) << "begin() has returned it on all ranks";
    EXPECT_TRUE(series->begin(comm, 3));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_P(SeriesErrorsTest, ProgressReturnsTheErrorOfAnEarlierStepAlsoIfThatOfALaterOneWasReturned) {
  for (const bool are_settled : {false, true}) {
    barrage_.close();
    Team(4).run([&](Communicator& comm) {
      const auto series = open(comm);
      Program program(*series, comm.rank(), comm.size());
      const Ticket first = series->begin(comm, 4).value();
      const Ticket second = series->begin(comm, 2).value();
      comm.barrier();
      barrage_.open();
      wait_until_finished(*series, first);
      wait_until_finished(*series, second);
      if (comm.rank() < 2) {
        EXPECT_FALSE(series->failure_of(second));
      }
      if (are_settled) {
        EXPECT_TRUE(series->steps(comm));
      }
      if (comm.rank() < 2) {
        const Status earlier = series->progress();
        ASSERT_FALSE(earlier);
        const std::string& text = earlier.error().text;
        EXPECT_TRUE(text.starts_with("step 4") || text.find(".4/part.0") != std::string::npos)
            << text;
        EXPECT_TRUE(series->progress());
      }
      EXPECT_FALSE(series->close(comm));
    });
  }
}

TEST_P(SeriesErrorsTest, InModeCollectiveEachRankKnowsWhenBeginReturns) {
  shape_.options.mode = Mode::collective;
  Team(4).run([&](Communicator& comm) {
    const auto series = open(comm);
    Program program(*series, comm.rank(), comm.size());
    const Ticket failing = series->begin(comm, 2).value();
    EXPECT_TRUE(series->is_finished(failing).value());
    // Of the ranks that write the part, those that have data in it.
    if (comm.rank() == 0) {
      EXPECT_EQ(series->failure_of(failing).error().code, Code::no_space);
    }
    EXPECT_EQ(series->wait(comm, failing).error().code, Code::no_space);
    EXPECT_TRUE(series->close(comm));
  });
}

INSTANTIATE_TEST_SUITE_P(Memory, SeriesErrorsTest, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Shared" : "Messages"; });

TEST(DonePage, OldOutcomesAreForgottenAndNeverMixedUp) {
  const auto page = make_segment(nullptr, done_page_bytes, Log()).value();
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    EXPECT_EQ(outcome_in(*page, number), Code::ok) << "not yet";
    note_done(*page, number, number % 3 == 0 ? Code::io : Code::ok);
    EXPECT_EQ(last_done(*page), number);
    EXPECT_EQ(outcome_in(*page, number), number % 3 == 0 ? Code::io : Code::ok);
  }
  EXPECT_EQ(outcome_in(*page, 900), Code::io);
  EXPECT_EQ(outcome_in(*page, 3), Code::ok);
}

}  // namespace
}  // namespace cairn::rbio
