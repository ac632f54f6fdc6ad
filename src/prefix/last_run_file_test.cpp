#include "prefix/last_run_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/contents.hpp"

namespace cairn {
namespace {

class LastRunFile : public ::testing::Test {
 protected:
  LastRunFile() {
    record_.job_id = "77";
    record_.user = "ada";
    record_.nodes = {{"n0", "host", 2}, {"n1", "host", 1}};
    record_.cache_base = "/dev/shm/%n";
    record_.stores = {{"/dev/shm/%n", false}};
    record_.host = "host";
    record_.process = this_process();
    record_.started_us = 8;
  }
  LastRunRecord kept() {
    const auto read = read_last_run(*files_, prefix_);
    EXPECT_TRUE(read && *read) << (read ? "there is none" : read.error().text);
    return read && *read ? **read : LastRunRecord{};
  }
  Status keep() { return keep_last_run(*files_, *clock_, prefix_, record_); }
  RunState state() { return state_of_run(*files_, *clock_, prefix_, record_); }
  /// The signs of life of an owner, so many seconds ago.
  void own(std::uint64_t process, std::int64_t seconds_ago, const std::string& job,
           const std::string& user) {
    OwnerRecord owner{1, {1, 1}, job, user, "elsewhere", process, 1, 0};
    owner.beat_us = clock_->now_us() - seconds_ago * 1'000'000;
    ASSERT_TRUE(files_->make_folder(prefix_.root(), 0777));
    ASSERT_TRUE(write_file_atomically(*files_, prefix_.owner(), encode(owner), false));
  }

  void own(std::uint64_t process, std::int64_t seconds_ago) {
    own(process, seconds_ago, record_.job_id, record_.user);
  }

  TemporaryFolder folder_;
  const PrefixFolder prefix_{folder_.path()};
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  LastRunRecord record_;
};

TEST_F(LastRunFile, HoldsWhatTheLastRunWrote) {
  const auto none = read_last_run(*files_, prefix_);
  ASSERT_TRUE(none) << none.error().text;
  EXPECT_FALSE(*none);
  ASSERT_TRUE(keep());
  EXPECT_EQ(kept(), record_);
  EXPECT_EQ(kept().ranks(), 3U);
}

TEST_F(LastRunFile, DamageIsAnErrorThatNamesTheFileAndTheRemedy) {
  ASSERT_TRUE(keep());
  const Blob sound = *read_file(*files_, prefix_.job().last_run(), 1 << 20);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    Blob flipped = sound;
    flipped[at] ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(*files_, prefix_.job().last_run(), flipped, false));
    const auto read = read_last_run(*files_, prefix_);
    ASSERT_FALSE(read) << at;
    EXPECT_NE(read.error().text.find(prefix_.job().last_run()), std::string::npos)
        << read.error().text;
    EXPECT_NE(read.error().text.find("SCR_JOB_ID"), std::string::npos) << read.error().text;
  }
}

TEST_F(LastRunFile, ARunMarksItsOwnEndAndNoOther) {
  ASSERT_TRUE(keep());
  LastRunRecord another = record_;
  another.started_us = 7;
  ASSERT_TRUE(mark_last_run_ended(*files_, *clock_, prefix_, another));
  EXPECT_EQ(kept().ended_us, 0);
  ASSERT_TRUE(mark_last_run_ended(*files_, *clock_, prefix_, record_));
  EXPECT_NE(kept().ended_us, 0);
}

TEST_F(LastRunFile, TheEndOfARunWaitsForTheRunThatIsJustBeginning) {
  ASSERT_TRUE(keep());
  auto lock = files_->lock(prefix_.job().last_run_lock());
  ASSERT_TRUE(lock) << lock.error().text;
  std::thread ending([this] { (void)mark_last_run_ended(*files_, *clock_, prefix_, record_); });
  clock_->sleep_us(100'000);
  EXPECT_EQ(kept().ended_us, 0);
  LastRunRecord successor = record_;
  successor.started_us = 9;
  ASSERT_TRUE(write_file_atomically(*files_, prefix_.job().last_run(), encode(successor), false));
  lock->reset();
  ending.join();
  EXPECT_EQ(kept(), successor);
}

TEST_F(LastRunFile, TheBeginningOfARunWaitsForTheEndThatIsJustBeingMarked) {
  ASSERT_TRUE(keep());
  const LastRunRecord before = record_;
  auto lock = files_->lock(prefix_.job().last_run_lock());
  ASSERT_TRUE(lock) << lock.error().text;
  record_.started_us = 9;
  std::thread beginning([this] { (void)keep(); });
  clock_->sleep_us(100'000);
  EXPECT_EQ(kept(), before);
  lock->reset();
  beginning.join();
  EXPECT_EQ(kept(), record_);
}

TEST_F(LastRunFile, NothingIsMarkedWhereTheFileIsGone) {
  EXPECT_TRUE(mark_last_run_ended(*files_, *clock_, prefix_, record_));
  EXPECT_FALSE(std::filesystem::exists(prefix_.job().last_run()));
}

TEST_F(LastRunFile, ARunOfThisMachineRunsAsLongAsItsProcessLives) {
  EXPECT_EQ(state(), RunState::runs);
  record_.process.start_ticks -= 1;
  own(record_.process.process, 0);  // which says nothing: the process is known to be gone
  EXPECT_EQ(state(), RunState::died);
  record_.ended_us = 9;
  EXPECT_EQ(state(), RunState::ended);
}

TEST_F(LastRunFile, ARunOfAnotherMachineRunsAsLongAsItGivesSignsOfLife) {
  record_.process.kernel = "another";
  EXPECT_EQ(state(), RunState::unknown);
  own(record_.process.process, 5);
  EXPECT_EQ(state(), RunState::runs);
  own(record_.process.process, 60);
  EXPECT_EQ(state(), RunState::unknown);
  own(record_.process.process + 1, 5);
  EXPECT_EQ(state(), RunState::unknown) << "the owner is another process";
  own(record_.process.process, 5, "another job", record_.user);
  EXPECT_EQ(state(), RunState::unknown) << "processes of two machines may have one id";
  own(record_.process.process, 5, record_.job_id, "another user");
  EXPECT_EQ(state(), RunState::unknown);
}

}  // namespace
}  // namespace cairn
