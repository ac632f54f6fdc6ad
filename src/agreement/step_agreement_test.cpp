#include "agreement/step_agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <mutex>
#include <ostream>

#include "comm/team.hpp"

namespace cairn {

static std::ostream& operator<<(std::ostream& out, const StepNews& news) {
  constexpr std::array words = {"provisional", "withdrawn", "certain", "given up"};
  return out << news.step << " " << words[static_cast<std::size_t>(news.what)];
}

namespace {

using What = StepNews::What;

void write(StepTracker& tracker, std::int64_t step, const std::string& shape) {
  tracker.opened({step}, shape);
  tracker.closed({step}, shape);
}

/// Runs a program of several ranks, and checks that all ranks get the same news.
std::vector<StepNews> news_of(
    int ranks,
    const std::function<void(int rank, StepTracker&, const std::function<void()>& rounds)>&
        program) {
  std::vector<std::vector<StepNews>> all(static_cast<std::size_t>(ranks));
  Team(ranks).run([&](Communicator& comm) {
    StepTracker tracker;
    StepAgreement agreement;
    std::mutex mutex;
    auto& mine = all[static_cast<std::size_t>(comm.rank())];
    program(comm.rank(), tracker, [&] {
      for (int round = 0; round < 4; ++round)
        for (const StepNews& one : agreement.round(comm, tracker, mutex).news) mine.push_back(one);
    });
  });
  for (const auto& other : all) EXPECT_EQ(other, all[0]);
  return all[0];
}

TEST(StepAgreement, TheFirstStepIsCertainOnceItsWritersHavePassed) {
  const auto news = news_of(3, [](int rank, StepTracker& tracker, const auto& rounds) {
    if (rank > 0) write(tracker, 1, "a");
    rounds();  // rank 0 may write none, or be late
    if (rank > 0) tracker.opened({2}, "a");
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::certain}}));
}

TEST(StepAgreement, ALaterStepIsProvisionalOnceAllHaveClosedTheirUsualFiles) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    write(tracker, 2, "a");
    rounds();
    rounds();
    if (rank == 1) tracker.opened({2}, "a");
    rounds();
    if (rank == 1) tracker.closed({2}, "a");
    rounds();
    rounds();
    tracker.ended();
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::certain},
                                         {2, What::provisional},
                                         {2, What::withdrawn},
                                         {2, What::provisional},
                                         {2, What::certain}}));
}

TEST(StepAgreement, AFileThatWasOpenedAndClosedBetweenTwoRoundsWithdrawsToo) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    write(tracker, 2, "a");
    rounds();
    rounds();
    if (rank == 1) write(tracker, 2, "a");
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::certain},
                                         {2, What::provisional},
                                         {2, What::withdrawn},
                                         {2, What::provisional}}));
}

TEST(StepAgreement, AStepThatFailedOnOneRankIsGivenUpByAll) {
  const auto news = news_of(3, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    if (rank == 2) tracker.lost(1, Loss::left_out);
    rounds();
    write(tracker, 2, "a");
    tracker.ended();
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::given_up}, {2, What::certain}}));
}

TEST(StepAgreement, AllRanksLearnThatAFileOfOneWasOverwritten) {
  const auto news = news_of(3, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    if (rank == 1) tracker.lost(1, Loss::left_out);
    if (rank == 2) tracker.lost(1, Loss::overwritten);
    rounds();
    write(tracker, 2, "a");
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::given_up, true}, {2, What::provisional}}));
}

TEST(StepAgreement, AllRanksLearnThatTheStepOfOneHasFilesOfSeveralSteps) {
  const auto news = news_of(3, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    if (rank == 1) tracker.lost(1, Loss::overwritten);
    if (rank == 2) tracker.lost(1, Loss::mixed);
    rounds();
    write(tracker, 2, "a");
    rounds();
  });
  EXPECT_EQ(news,
            (std::vector<StepNews>{{1, What::given_up, false, true}, {2, What::provisional}}));
}

TEST(StepAgreement, RanksThatCountStepsDifferentlyGiveUp) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    tracker.opened({1, rank == 0 ? 7U : 8U}, "a");
    tracker.closed({1}, "a");
    tracker.ended();
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::given_up}}));
}

TEST(StepAgreement, AStepThatARankLeavesOutIsGivenUpWhenTwoMoreAreUnderWay) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    write(tracker, 1, "a");
    tracker.opened({2}, "a");
    rounds();
    tracker.closed({2}, "a");
    if (rank == 0) write(tracker, 3, "a");
    rounds();
    if (rank == 0) write(tracker, 4, "a");
    rounds();
    if (rank == 0) write(tracker, 5, "a");
    rounds();
  });
  EXPECT_EQ(
      news,
      (std::vector<StepNews>{
          {1, What::certain}, {2, What::provisional}, {2, What::certain}, {3, What::given_up}}));
}

TEST(StepAgreement, ALateFileMakesTheRanksGiveUpACertainStep) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    if (rank == 0) write(tracker, 1, "a");
    if (rank == 0) tracker.opened({2}, "a");
    rounds();
    if (rank == 1) write(tracker, 1, "a");
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::certain}, {1, What::given_up}}));
}

TEST(StepAgreement, ARankThatWasLateOnceIsWaitedFor) {
  const auto news = news_of(2, [](int rank, StepTracker& tracker, const auto& rounds) {
    if (rank == 0) write(tracker, 1, "a");
    if (rank == 0) write(tracker, 2, "a");
    rounds();
    if (rank == 1) write(tracker, 1, "a");
    rounds();
    if (rank == 0) tracker.opened({3}, "a");
    rounds();  // step 2 is not certain, though its only writer has passed
    if (rank == 1) write(tracker, 2, "a");
    rounds();
  });
  EXPECT_EQ(news, (std::vector<StepNews>{{1, What::certain},
                                         {2, What::provisional},
                                         {1, What::given_up},
                                         {2, What::withdrawn},
                                         {2, What::provisional}}));
}

TEST(StepAgreement, NothingIsSaidOfAProgramThatWritesNothing) {
  EXPECT_TRUE(news_of(2, [](int, StepTracker& tracker, const auto& rounds) {
                rounds();
                tracker.ended();
                rounds();
              }).empty());
}

TEST(StepAgreement, IsOverWhenAllRanksHaveEndedAndNothingIsUndecided) {
  Team(2).run([](Communicator& comm) {
    StepTracker tracker;
    StepAgreement agreement;
    std::mutex mutex;
    const auto is_last = [&] { return agreement.round(comm, tracker, mutex).is_last; };
    write(tracker, 1, "a");
    if (comm.rank() == 0) tracker.ended();
    EXPECT_FALSE(is_last());
    EXPECT_FALSE(is_last());
    tracker.ended();
    EXPECT_FALSE(is_last());
    EXPECT_FALSE(is_last());  // decides step 1
    EXPECT_TRUE(is_last());
  });
}

}  // namespace
}  // namespace cairn
