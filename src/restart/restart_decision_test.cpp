#include "restart/restart_decision.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "restart/restart_world.hpp"

namespace cairn {
namespace {

using State = CacheState;
using Step = RestartStep;

class RestartDecided : public testing::Test {
 protected:
  RestartDecision decide() const { return decide_restart(facts_, settings_, attempts_); }

  /// `time`: of the dataset that it is about; 0: of none.
  void expect(Step step, int time) const {
    const RestartDecision decision = decide();
    EXPECT_EQ(name_of(decision.step), name_of(step)) << decision.why;
    EXPECT_EQ(decision.dataset.time_us, time);
  }
  void expect_why(Step step, const std::string& words) const {
    expect(step, 0);
    EXPECT_NE(decide().why.find(words), std::string::npos) << decide().why;
  }

  RestartFacts facts_ = facts_of({});
  Settings settings_ = usual_settings();
  RestartAttempts attempts_;
};

TEST_F(RestartDecided, WhereThereIsNothingTheRunBegins) { expect(Step::begin_anew, 0); }

TEST_F(RestartDecided, TheNewestInTheCachesIsTakenUnlessThePrefixDirectoryHasANewerOne) {
  facts_ = facts_of({cached_at(3), cached_at(2)}, {listed_at(3), listed_at(1)});
  expect(Step::take_cached, 3);
  facts_.listing = {listed_at(4)};
  expect(Step::fetch, 4);
}

TEST_F(RestartDecided, WhatWasFetchedIsOffered) {
  facts_ = facts_of({cached_at(2)}, {listed_at(7), listed_at(6), listed_at(2)});
  facts_.current = "2";
  attempts_ = {went_well(Step::fetch, 2)};
  expect(Step::take_cached, 2);
}

TEST_F(RestartDecided, ADamagedOneIsPassedOverForTheNextOlder) {
  facts_ = facts_of({}, {listed_at(4), listed_at(3)});
  attempts_ = {is_damaged(Step::fetch, 4)};
  expect(Step::fetch, 3);
  attempts_.push_back(is_damaged(Step::fetch, 3));
  expect_why(Step::start_fresh, "2 checkpoints were tried in /pfs");
}

TEST_F(RestartDecided, ACheckpointThatCannotBeReadNowStopsARunThatWouldStartFromScratch) {
  facts_ = facts_of({}, {listed_at(4)});
  attempts_ = {failed_for_now(Step::fetch, 4)};
  expect_why(Step::refuse_for_now, "the file system is away");
  facts_.cached = {cached_at(2)};
  expect(Step::take_cached, 2);
}

TEST_F(RestartDecided, NoRoomInTheCachesLeavesReadingInPlace) {
  facts_ = facts_of({}, {listed_at(4), listed_at(3)});
  attempts_ = {failed_for_now(Step::fetch, 4, Code::no_space)};
  expect(Step::read_in_place, 4);
  attempts_.push_back(is_damaged(Step::read_in_place, 4));
  expect(Step::fetch, 3);
}

TEST_F(RestartDecided, NoRoomInTheCachesIsNoFailureForWhichARunStops) {
  settings_.on_fetch_fail = OnFetchFail::stop;
  facts_ = facts_of({}, {listed_at(4)});
  attempts_ = {failed_for_now(Step::fetch, 4, Code::no_space)};
  expect(Step::read_in_place, 4);
}

TEST_F(RestartDecided, OfSeveralFailuresATransientOneIsEnoughToWaitForIt) {
  facts_ = facts_of({}, {listed_at(4), listed_at(3)});
  attempts_ = {failed_for_now(Step::fetch, 4), is_damaged(Step::fetch, 3)};
  expect_why(Step::refuse_for_now, "a block is damaged");
  attempts_ = {is_damaged(Step::fetch, 4), is_damaged(Step::fetch, 3)};
  facts_.unread = {unread_at(2)};
  expect_why(Step::refuse_for_now, "the record of 2 is away");
}

TEST_F(RestartDecided, WithStopNothingOlderIsTried) {
  settings_.on_fetch_fail = OnFetchFail::stop;
  facts_ = facts_of({cached_at(2)}, {listed_at(4), listed_at(3)});
  attempts_ = {is_damaged(Step::fetch, 4)};
  expect_why(Step::refuse, "cairn verify --repair 4");
  EXPECT_EQ(decide().code, Code::corrupt);
  attempts_[0].code = Code::not_found;
  EXPECT_EQ(decide().code, Code::lost) << "not_found means that there is no checkpoint";
  attempts_ = {failed_for_now(Step::fetch, 4)};
  expect_why(Step::refuse_for_now, "the file system is away");
  attempts_.clear();
  facts_.unread = {unread_at(5)};
  expect_why(Step::refuse_for_now, "the record of 5 is away");
}

TEST_F(RestartDecided, WithFreshNothingOlderIsTriedEither) {
  settings_.on_fetch_fail = OnFetchFail::fresh;
  facts_ = facts_of({}, {listed_at(4), listed_at(3)});
  attempts_ = {is_damaged(Step::fetch, 4)};
  expect_why(Step::start_fresh, "no older one is tried");
}

TEST_F(RestartDecided, OfAnotherNumberOfRanksTheRunIsRefusedOrItIsPassedOver) {
  facts_ = facts_of({}, {listed_at(4, ranks_of_others), listed_at(3)});
  expect_why(Step::refuse, "was written by 4 ranks, and this run has 8");
  EXPECT_EQ(decide().code, Code::wrong_ranks);
  settings_.on_mismatch = OnMismatch::fresh;
  expect(Step::fetch, 3);
  settings_.elastic = true;
  expect(Step::read_in_place, 4);
}

TEST_F(RestartDecided, OfAnotherNumberOfRanksTheRunIsRefusedWhateverElseCannotBeRead) {
  settings_.on_fetch_fail = OnFetchFail::fresh;
  facts_ = facts_of({}, {listed_at(4, ranks_of_others)});
  facts_.unread = {unread_at(5)};
  expect_why(Step::refuse, "was written by 4 ranks");
}

TEST_F(RestartDecided, WhatOthersHaveCopiedToThePrefixDirectoryIsReadThereByAnElasticRun) {
  settings_.elastic = true;
  facts_ = facts_of({cached_at(4, State::other_ranks)}, {listed_at(4, ranks_of_others)});
  facts_.cached[0].there = PrefixState::settled;
  expect(Step::read_in_place, 4);
}

TEST_F(RestartDecided, WhatOthersHaveInTheCachesIsCopiedForAnElasticRun) {
  facts_ = facts_of({cached_at(4, State::other_ranks)}, {listed_at(2)});
  expect_why(Step::refuse, "written by 4 ranks");
  settings_.elastic = true;
  expect(Step::offer_copy, 4);
  attempts_ = {failed_for_now(Step::offer_copy, 4)};
  expect_why(Step::refuse_for_now, "written by 4 ranks");
  attempts_ = {went_well(Step::offer_copy, 4)};
  facts_.cached[0].state = State::offered;
  expect(Step::take_cached, 4);
}

TEST_F(RestartDecided, AGlobalRestartReadsNothingInTheCaches) {
  settings_.global_restart = settings_.fetch_bypass = true;
  facts_ = facts_of({cached_at(4)}, {listed_at(2)});
  expect(Step::copy_first, 4);
  attempts_ = {failed_for_now(Step::copy_first, 4)};
  expect(Step::read_in_place, 2);
  attempts_ = {went_well(Step::copy_first, 4)};
  facts_.cached[0].there = PrefixState::settled;
  insert(facts_.listing, listed_at(4));
  expect(Step::read_in_place, 4);
}

TEST_F(RestartDecided, WhatCannotBeReadCountsOnlyWhereItMayBeNewer) {
  facts_ = facts_of({cached_at(4)});
  facts_.unread = {unread_at(3)};
  expect(Step::take_cached, 4);
  facts_.cached.clear();
  expect_why(Step::refuse_for_now, "the record of 3 is away");
  settings_.on_fetch_fail = OnFetchFail::fresh;
  expect_why(Step::start_fresh, "the record of 3 is away");
}

TEST_F(RestartDecided, APrefixDirectoryThatCannotBeReadDoesNotMeanFromScratch) {
  facts_.trouble = "/pfs is away";
  expect_why(Step::refuse_for_now, "/pfs is away");
  facts_.cached = {cached_at(1)};
  expect(Step::take_cached, 1);
  settings_.fetch = false;
  facts_.cached.clear();
  facts_.unread = {unread_at(3)};
  expect(Step::begin_anew, 0);
}

TEST_F(RestartDecided, WhatTheCachesCouldNotOpenIsReadInPlaceWhereThePrefixDirectoryHasIt) {
  facts_ = facts_of({cached_at(4, State::lost)}, {listed_at(4)});
  attempts_ = {failed_for_now(Step::take_cached, 4)};
  expect(Step::read_in_place, 4);
  facts_.listing.clear();
  expect_why(Step::refuse_for_now, "two nodes are lost");
}

TEST_F(RestartDecided, WithStopNothingTakesThePlaceOfWhatCouldNotBeOpened) {
  settings_.on_fetch_fail = OnFetchFail::stop;
  facts_ = facts_of({cached_at(4, State::lost), cached_at(2)});
  attempts_ = {failed_for_now(Step::take_cached, 4)};
  expect_why(Step::refuse, "two nodes are lost");
  facts_.cached.erase(facts_.cached.begin());
  expect(Step::take_cached, 2);
}

TEST_F(RestartDecided, ACopyThatFailedDoesNotLetTheRunStartOverWhatOthersWrote) {
  settings_.elastic = true;
  facts_ = facts_of({cached_at(4, State::left_alone)});
  facts_.cached[0].info.ranks = ranks_of_others;
  facts_.cached[0].reason = "a part is damaged";
  attempts_ = {failed_for_now(Step::take_cached, 4)};
  expect_why(Step::refuse, "written by 4 ranks");
  settings_.on_mismatch = OnMismatch::fresh;
  expect_why(Step::start_fresh, "a part is damaged");
}

TEST_F(RestartDecided, WhatScrLeftIsImportedWhenItComesNext) {
  facts_ = facts_of({}, {listed_at(2)});
  facts_.scr.unknown = {listed_at(3, 0)};
  facts_.scr.current = "3";
  expect(Step::import_first, 3);
  facts_.cached = {cached_at(5)};
  expect(Step::take_cached, 5);
  facts_.cached.clear();
  attempts_ = {is_damaged(Step::import_first, 3)};
  expect(Step::fetch, 2);
  settings_.on_fetch_fail = OnFetchFail::stop;
  expect_why(Step::refuse, "a block is damaged");
  facts_.cached = {cached_at(5)};
  expect(Step::take_cached, 5);
}

TEST_F(RestartDecided, AnUnreadableIndexOfScrCountsWhereNothingElseIsKnown) {
  facts_.scr.trouble = {"its index is damaged", false};
  expect_why(Step::start_fresh, "SCR left checkpoints in /pfs, but none can be imported");
  facts_.scr.trouble.may_pass = true;
  expect_why(Step::refuse_for_now, "its index is damaged");
  facts_.listing = {listed_at(1)};
  expect(Step::fetch, 1);
}

TEST_F(RestartDecided, WhatTheProgramAskedForGoesBeforeWhatIsNewer) {
  facts_ = facts_of({cached_at(4), cached_at(2)}, {listed_at(5), listed_at(3)});
  facts_.asked_for = checkpoint_at(2).uuid;
  expect(Step::take_cached, 2);
  facts_.asked_for = checkpoint_at(3).uuid;
  facts_.current = "3";
  expect(Step::fetch, 3);
}

/// It would not be offered.
TEST_F(RestartDecided, NothingNewerIsFetchedThanWhatTheProgramAskedFor) {
  facts_ = facts_of({}, {listed_at(5), listed_at(4, ranks_of_others), listed_at(3), listed_at(2)});
  facts_.asked_for = checkpoint_at(3).uuid;
  facts_.current = "3";
  attempts_ = {is_damaged(Step::fetch, 3)};
  expect(Step::fetch, 2);
  attempts_.push_back(is_damaged(Step::fetch, 2));
  expect_why(Step::start_fresh, "2 checkpoints were tried in /pfs");
}

TEST_F(RestartDecided, AfterTheRestartNothingIsTaken) {
  facts_ = facts_of({cached_at(4)}, {listed_at(5)});
  facts_.is_over = true;
  expect(Step::begin_anew, 0);
}

TEST_F(RestartDecided, OneThatItsLevelBypassesIsReadInPlace) {
  facts_ = facts_of({}, {listed_at(4)});
  facts_.bypassing = {checkpoint_at(4).uuid};
  expect(Step::read_in_place, 4);
}

TEST_F(RestartDecided, ItIsReportedWhySCR_CURRENTHasNoEffect) {
  settings_.current = "2";
  facts_ = facts_of({cached_at(4)}, {listed_at(2)});
  const auto why = [this] { return why_current_is_ignored(facts_, settings_, attempts_); };
  EXPECT_NE(why().find("the caches have a newer checkpoint"), std::string::npos) << why();
  facts_.cached.clear();
  EXPECT_EQ(why(), "");
  facts_.listing.clear();
  EXPECT_NE(why().find("there is no such checkpoint"), std::string::npos) << why();
}

TEST_F(RestartDecided, NothingIsSaidOfSCR_CURRENTWhereItDoesNotCountOrThePrefixDirectoryIsAway) {
  settings_.current = "2";
  facts_.trouble = "/pfs is away";
  EXPECT_EQ(why_current_is_ignored(facts_, settings_, attempts_), "");
  facts_ = facts_of({cached_at(4)}, {listed_at(2)});
  facts_.is_over = true;
  EXPECT_EQ(why_current_is_ignored(facts_, settings_, attempts_), "");
}

TEST(RestartAttempts, AfterARefusalOnlyTransientFailuresAreTriedAgain) {
  RestartAttempts attempts = {failed_for_now(Step::fetch, 5), went_well(Step::fetch, 4),
                              failed_for_now(Step::take_cached, 3),
                              is_damaged(Step::import_first, 2),
                              failed_for_now(Step::import_first, 1)};
  forget_retryable(attempts);
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].step, Step::take_cached);
  EXPECT_EQ(attempts[1].dataset.time_us, 2);
}

TEST(RestartDecisions, AllRanksHaveTheOneOfRank0) {
  Team(3).run([](Communicator& comm) {
    RestartDecision decision;
    if (comm.rank() == 0) decision = {Step::refuse, {7, 9}, Code::lost, "why"};
    share(comm, decision);
    EXPECT_EQ(decision.step, Step::refuse);
    EXPECT_EQ(decision.dataset, (Uuid{7, 9}));
    EXPECT_EQ(decision.code, Code::lost);
    EXPECT_EQ(decision.why, "why");
  });
}

}  // namespace
}  // namespace cairn
