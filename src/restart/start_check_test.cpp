#include "restart/start_check.hpp"

#include <gtest/gtest.h>

#include "restart/restart_world.hpp"

namespace cairn {
namespace {

class CheckedStart : public testing::Test {
 protected:
  Code check(bool has_gone_back = false, bool is_answered = false) const {
    const Status status = check_start(
        {ranks_of_run, has_gone_back, is_answered, asked_for_, cached_, first_}, settings_);
    return status ? Code::ok : status.error().code;
  }

  Settings settings_ = usual_settings();
  std::vector<CachedDataset> cached_;
  std::optional<DatasetRecord> first_;
  std::optional<Uuid> asked_for_;
};

TEST_F(CheckedStart, IsAllowedWhereThereIsNothing) { EXPECT_EQ(check(), Code::ok); }

TEST_F(CheckedStart, FailsBesideACachedCheckpointOfAnotherNumberOfRanks) {
  cached_ = {cached_at(30, CacheState::other_ranks), cached_at(10)};
  EXPECT_EQ(check(), Code::wrong_ranks);
  EXPECT_EQ(check(false, true), Code::wrong_ranks) << "SCR_Have_restart has said so too";
  EXPECT_EQ(check(true), Code::ok) << "the program has gone back to another one";
  settings_.on_mismatch = OnMismatch::fresh;
  EXPECT_EQ(check(), Code::ok);
}

TEST_F(CheckedStart, FailsBesideANewerOneOfThePrefixDirectoryOfAnotherNumberOfRanks) {
  cached_ = {cached_at(30)};
  first_ = listed_at(40, ranks_of_others);
  EXPECT_EQ(check(), Code::wrong_ranks);
  EXPECT_EQ(check(true), Code::ok);
  EXPECT_EQ(check(false, true), Code::ok) << "it has come to be seen too late";
  settings_.elastic = true;
  EXPECT_EQ(check(), Code::ok);
  settings_ = usual_settings();
  settings_.on_mismatch = OnMismatch::fresh;
  EXPECT_EQ(check(), Code::ok);
}

TEST_F(CheckedStart, IsAllowedBesideAnOlderOneOfAnotherNumberOfRanks) {
  cached_ = {cached_at(30), cached_at(10)};
  first_ = listed_at(20, ranks_of_others);
  EXPECT_EQ(check(), Code::ok);
  asked_for_ = checkpoint_at(10).uuid;
  EXPECT_EQ(check(), Code::wrong_ranks) << "newer than the one that the program asked for";
}

TEST_F(CheckedStart, IsAllowedBesideOneOfTheSameNumberOfRanks) {
  first_ = listed_at(40);
  EXPECT_EQ(check(), Code::ok);
}

}  // namespace
}  // namespace cairn
