#include "prefix/halt_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

class HaltFileTest : public ::testing::Test {
 protected:
  HaltFile file() { return {*files_, *clock_, PrefixFolder{prefix_.path()}}; }
  void spoil(const std::string& content) {
    std::filesystem::create_directories(prefix_ / ".cairn");
    std::ofstream(prefix_ / ".cairn/halt", std::ios::binary) << content;
  }
  void spoil(const Blob& content) {
    spoil(std::string(reinterpret_cast<const char*>(content.data()), content.size()));
  }
  bool exists(const std::string& name) { return std::filesystem::exists(prefix_ / name); }

  // In memory: on a busy disk a few writers hold the lock for longer than others have patience.
  TemporaryFolder prefix_{std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ""};
  std::unique_ptr<Files> posix_ = make_posix_files();
  FileHook hook_;
  std::unique_ptr<Files> files_ = make_hooked_files(
      *posix_,
      [this](const FileOperation& operation) { return hook_ ? hook_(operation) : Status{}; });
  std::unique_ptr<Clock> clock_ = make_system_clock();
};

void ask_for_three(HaltRecord& record) { record.checkpoints_left = 3; }

TEST_F(HaltFileTest, NoFileAsksForNothingAndNothingIsMadeForNothing) {
  EXPECT_EQ(*file().read(), HaltRecord{});
  EXPECT_TRUE(file().update([](HaltRecord&) {}));
  EXPECT_TRUE(file().remove());
  EXPECT_TRUE(std::filesystem::is_empty(prefix_.path()));
}

TEST_F(HaltFileTest, WhatIsWrittenIsReadAndCanBeTakenAway) {
  ASSERT_TRUE(file().update(ask_for_three));
  EXPECT_EQ(file().read()->checkpoints_left, 3);
  ASSERT_TRUE(file().update([](HaltRecord& record) { record.reason = "JOB_HALTED"; }));
  EXPECT_EQ(file().read()->checkpoints_left, 3);
  EXPECT_EQ(file().read()->reason, "JOB_HALTED");
  EXPECT_FALSE(exists(".cairn/halt.tmp"));
  ASSERT_TRUE(file().remove());
  EXPECT_EQ(*file().read(), HaltRecord{});
}

TEST_F(HaltFileTest, WithoutAPrefixDirectoryThereIsNothingToReadAndNowhereToWrite) {
  HaltFile nowhere(*files_, *clock_, {prefix_ / "gone"});
  EXPECT_EQ(*nowhere.read(), HaltRecord{});
  EXPECT_EQ(nowhere.update(ask_for_three).error().code, Code::not_found);
  EXPECT_TRUE(nowhere.remove());
  EXPECT_FALSE(exists("gone"));
}

TEST_F(HaltFileTest, ADamagedOneIsReportedWithItsRemedyAndCanBeRemoved) {
  Blob cut = encode(HaltRecord{});
  cut.pop_back();
  for (const Blob& content : {Blob{}, cut, Blob(70'000, std::byte{1}),
                              seal(RecordType::rank, 1, {}), seal(RecordType::halt, 1, {})}) {
    spoil(content);
    const auto read = file().read();
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().text.find(prefix_ / ".cairn/halt"), std::string::npos)
        << read.error().text;
    if (read.error().code == Code::corrupt) {
      EXPECT_NE(read.error().text.find("cairn halt --remove --prefix " + prefix_.path()),
                std::string::npos);
    }
    EXPECT_FALSE(file().update(ask_for_three)) << "what it held is not guessed at";
    EXPECT_TRUE(file().remove());
    EXPECT_TRUE(file().read());
  }
}

TEST_F(HaltFileTest, ANewerFormatIsRefusedByName) {
  spoil(seal(RecordType::halt, halt_record_version + 1, {}));
  EXPECT_EQ(file().read().error().code, Code::newer_format);
}

TEST_F(HaltFileTest, AnErrorAtAnyOperationLeavesTheOldOrTheNew) {
  ASSERT_TRUE(file().update([](HaltRecord& record) { record.checkpoints_left = 7; }));
  int count = 0;
  for (bool failed = true; failed; ++count) {
    failed = false;
    hook_ = [left = count, &failed](const FileOperation& operation) mutable -> Status {
      if (left-- != 0) return {};
      failed = true;
      return fail(Code::io, "injected: {}", operation.name);
    };
    const Status updated = file().update(ask_for_three);
    hook_ = {};
    const auto now = file().read();
    ASSERT_TRUE(now) << now.error().text;
    EXPECT_TRUE(now->checkpoints_left == 3 || (!updated && now->checkpoints_left == 7)) << count;
    ASSERT_TRUE(file().update([](HaltRecord& record) { record.checkpoints_left = 7; }));
  }
  EXPECT_GT(count, 8);
}

TEST_F(HaltFileTest, WhereTheFileSystemHasNoLocksItGoesOnWithout) {
  hook_ = [](const FileOperation& operation) -> Status {
    if (operation.name == "lock") return fail(Code::io, "no locks available");
    return {};
  };
  EXPECT_TRUE(file().update(ask_for_three));
  EXPECT_EQ(file().read()->checkpoints_left, 3);
}

TEST_F(HaltFileTest, ALockThatIsNeverGivenBackIsWaitedForInVain) {
  ASSERT_TRUE(file().update(ask_for_three));
  const auto held = posix_->lock(prefix_ / ".cairn/halt.lock");
  ASSERT_TRUE(held);
  const Status refused = file().update([](HaltRecord& record) { record.checkpoints_left = 9; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_EQ(file().read()->checkpoints_left, 3);
}

TEST_F(HaltFileTest, ChangesOfManyAtOnceAreAllThere) {
  constexpr int writers = 4;
  constexpr int changes = 25;
  ASSERT_TRUE(file().update([](HaltRecord& record) { record.checkpoints_left = 1000; }));
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([this] {
      for (int i = 0; i < changes; ++i) {
        const Status updated =
            file().update([](HaltRecord& record) { --*record.checkpoints_left; });
        EXPECT_TRUE(updated) << updated.error().text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file().read()->checkpoints_left, 1000 - writers * changes);
}

TEST_F(HaltFileTest, TheGroupMayWriteAsTheUmaskSays) {
  namespace fs = std::filesystem;
  fs::permissions(prefix_.path(), fs::perms::set_gid, fs::perm_options::add);
  const ::mode_t before = ::umask(002);
  EXPECT_TRUE(file().update(ask_for_three));
  ::umask(before);
  const auto mode_of = [&](const std::string& name) {
    return static_cast<unsigned>(fs::status(prefix_ / name).permissions());
  };
  EXPECT_EQ(mode_of(".cairn"), 02775U) << "and its group is that of the folder";
  for (const char* name : {".cairn/halt", ".cairn/halt.lock"}) EXPECT_EQ(mode_of(name), 0664U);
}

}  // namespace
}  // namespace cairn
