#include "interpose/moving.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

namespace cairn::interpose {
namespace {

class MovingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "moving.XXXXXX";
    root_ = mkdtemp(name.data());
    std::filesystem::create_directories(root_ / "cache/deep");
    std::filesystem::create_directories(root_ / "plain");
    directory_ = open((root_ / "plain").c_str(), O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override {
    close(directory_);
    std::filesystem::remove_all(root_);
  }

  std::string cached(const std::string& name) const { return root_ / "cache" / name; }
  std::string plain(const std::string& name) const { return root_ / "plain" / name; }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t count_of_plain() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(root_ / "plain"), {}));
  }

  std::filesystem::path root_;
  int directory_ = -1;
};

TEST_F(MovingTest, AFileArrivesWithItsModeAndTimes) {
  write(cached("a"), "text");
  ASSERT_EQ(chmod(cached("a").c_str(), 0640), 0);
  const timespec times[2] = {{1000, 5}, {2000, 7}};
  ASSERT_EQ(utimensat(AT_FDCWD, cached("a").c_str(), times, 0), 0);
  write(plain("a"), "an older text that is longer");
  ASSERT_EQ(move_file(cached("a").c_str(), directory_, "a", Durability::synced), 0);
  struct stat state;
  ASSERT_EQ(stat(plain("a").c_str(), &state), 0);
  EXPECT_EQ(read(plain("a")), "text");
  EXPECT_EQ(state.st_mode & 0777, 0640u);
  EXPECT_EQ(state.st_mtim.tv_sec, 2000);
  EXPECT_FALSE(std::filesystem::exists(cached("a")));
  EXPECT_EQ(count_of_plain(), 1u);
}

TEST_F(MovingTest, HolesStayHoles) {
  const int file = open(cached("a").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(pwrite(file, "begin", 5, 0), 5);
  ASSERT_EQ(pwrite(file, "middle", 6, 8 << 20), 6);
  ASSERT_EQ(ftruncate(file, 16 << 20), 0);
  close(file);
  const std::string before = read(cached("a"));
  ASSERT_EQ(move_file(cached("a").c_str(), directory_, "a", Durability::synced), 0);
  EXPECT_EQ(read(plain("a")), before);
  struct stat state;
  ASSERT_EQ(stat(plain("a").c_str(), &state), 0);
  EXPECT_LT(state.st_blocks * 512, 1 << 20);
}

TEST_F(MovingTest, AFileThatIsOpenForWritingStays) {
  write(cached("a"), "text");
  const int file = open(cached("a").c_str(), O_WRONLY | O_APPEND);
  EXPECT_EQ(move_file(cached("a").c_str(), directory_, "a", Durability::synced), EBUSY);
  close(file);
  EXPECT_EQ(read(cached("a")), "text");
  EXPECT_EQ(count_of_plain(), 0u);
  const int reader = open(cached("a").c_str(), O_RDONLY);
  EXPECT_EQ(move_file(cached("a").c_str(), directory_, "a", Durability::synced), 0);
  close(reader);
}

TEST_F(MovingTest, AFailureLeavesBothAsTheyWere) {
  write(cached("a"), "text");
  std::filesystem::create_directory(root_ / "plain/a");
  EXPECT_EQ(move_file(cached("a").c_str(), directory_, "a", Durability::synced), EISDIR);
  EXPECT_EQ(read(cached("a")), "text");
  EXPECT_EQ(count_of_plain(), 1u);
  EXPECT_EQ(move_file(cached("missing").c_str(), directory_, "a", Durability::synced), ENOENT);
}

TEST_F(MovingTest, AFileForWhichThereIsNoSpaceStays) {
  write(cached("a"), std::string(1 << 20, 'x'));
  constexpr int cannot_mount = 2;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", plain("").c_str(), "tmpfs", 0, "size=64k") != 0)
      _exit(cannot_mount);
    const int full = open(plain("").c_str(), O_RDONLY | O_DIRECTORY);
    _exit(move_file(cached("a").c_str(), full, "a", Durability::not_synced) == ENOSPC ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == cannot_mount) GTEST_SKIP() << "only root may mount";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::filesystem::file_size(cached("a")), 1u << 20);
}

/// From now on, in this process.
bool let_sync_fail() {
  std::array<sock_filter, 4> steps = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(MovingTest, AFileThatCannotBeSyncedStays) {
  write(cached("a"), "text");
  write(plain("a"), "older");
  constexpr int cannot_filter = 2;
  const pid_t child = fork();
  if (child == 0) {
    if (!let_sync_fail()) _exit(cannot_filter);
    _exit(move_file(cached("a").c_str(), directory_, "a", Durability::synced) == EIO ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == cannot_filter) GTEST_SKIP() << "the kernel has no filters";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(cached("a")), "text");
  EXPECT_EQ(read(plain("a")), "older");
  EXPECT_EQ(count_of_plain(), 1u);
}

TEST_F(MovingTest, LinksAndDirectoriesAreNoFiles) {
  ASSERT_EQ(symlink("/etc/passwd", cached("link").c_str()), 0);
  EXPECT_EQ(move_file(cached("link").c_str(), directory_, "a", Durability::synced), ELOOP);
  EXPECT_EQ(move_file(cached("deep").c_str(), directory_, "a", Durability::synced), EINVAL);
  EXPECT_EQ(count_of_plain(), 0u);
}

TEST_F(MovingTest, SettleMovesTheWholeTree) {
  write(cached("a"), "1");
  write(cached("deep/b"), "2");
  EXPECT_TRUE(holds_files(root_ / "cache"));
  const Moved moved = settle(root_ / "cache", root_ / "plain");
  EXPECT_EQ(moved.files, 2);
  EXPECT_EQ(moved.failed + moved.busy + moved.older, 0);
  EXPECT_EQ(read(plain("a")), "1");
  EXPECT_EQ(read(plain("deep/b")), "2");
  EXPECT_FALSE(holds_files(root_ / "cache"));
  remove_empty_directories(root_ / "cache", false);
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/deep"));
  EXPECT_TRUE(std::filesystem::exists(root_ / "cache"));
}

TEST_F(MovingTest, SettleMovesOnlyWhatIsWanted) {
  write(cached("a"), "1");
  write(cached("deep/b"), "2");
  const Moved moved = settle(root_ / "cache", root_ / "plain",
                             [](std::string_view name) { return name == "deep/b"; });
  EXPECT_EQ(moved.files, 1);
  EXPECT_TRUE(std::filesystem::exists(cached("a")));
}

TEST_F(MovingTest, ANewerFileOfAnotherProgramIsKept) {
  write(cached("a"), "older");
  write(plain("a"), "newer");
  const timespec times[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, plain("a").c_str(), times, 0), 0);
  const Moved moved = settle(root_ / "cache", root_ / "plain");
  EXPECT_EQ(moved.older, 1);
  EXPECT_EQ(read(plain("a")), "newer");
  EXPECT_EQ(read(plain("a.cairn-older")), "older");
}

TEST_F(MovingTest, AnOldTimeOfTheCachedFileDoesNotMakeItOlder) {
  write(plain("a"), "from before");
  usleep(20'000);  // the kernel's clock is coarse
  write(cached("a"), "the program's");
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, cached("a").c_str(), times, 0), 0);
  EXPECT_EQ(settle(root_ / "cache", root_ / "plain").older, 0);
  EXPECT_EQ(read(plain("a")), "the program's");
}

TEST_F(MovingTest, SettleReportsWhatItCouldNotMove) {
  std::filesystem::create_directory(root_ / "plain/a");
  usleep(20'000);  // the kernel's clock is coarse, and what is newer is kept
  write(cached("a"), "1");
  const Moved moved = settle(root_ / "cache", root_ / "plain");
  EXPECT_EQ(moved.failed, 1);
  EXPECT_NE(moved.first_error.find("plain/a: "), std::string::npos);
}

TEST_F(MovingTest, ParentsAreMadeForTheUserOnly) {
  EXPECT_EQ(make_parents((root_ / "cache").string(), cached("x/y/z").c_str()), 0);
  struct stat state;
  ASSERT_EQ(stat(cached("x/y").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0700u);
  write(cached("file"), "");
  EXPECT_EQ(make_parents((root_ / "cache").string(), cached("file/y/z").c_str()), ENOTDIR);
}

/// A program deletes or replaces a file while another thread moves it.
class ChangedMeanwhileTest : public MovingTest {
 protected:
  /// Makes the change once a part of the file is copied, and before all of it is. The result of the
  /// move.
  int move_while(const std::function<void()>& change) {
    constexpr int attempts_most = 50;
    for (int attempt = 0; attempt < attempts_most; ++attempt) {
      TearDown();
      SetUp();
      write(cached("a"), std::string(32 << 20, 'x'));
      int result = -1;
      std::thread mover([&] {
        result = move_file(cached("a").c_str(), directory_, "a", Durability::not_synced);
      });
      while (count_of_plain() == 0) std::this_thread::yield();
      change();
      const bool is_in_time = !std::filesystem::exists(plain("a"));
      mover.join();
      if (is_in_time) return result;
    }
    return -1;
  }
};

TEST_F(ChangedMeanwhileTest, ADeletedFileDoesNotComeBack) {
  EXPECT_EQ(move_while([this] { std::filesystem::remove(cached("a")); }), ENOENT);
  EXPECT_EQ(count_of_plain(), 0u);
}

TEST_F(ChangedMeanwhileTest, ARenamedFileIsThereOnce) {
  EXPECT_EQ(move_while([this] { std::filesystem::rename(cached("a"), cached("b")); }), ENOENT);
  EXPECT_EQ(count_of_plain(), 0u);
  EXPECT_TRUE(std::filesystem::exists(cached("b")));
}

TEST_F(ChangedMeanwhileTest, AFileThatReplacesItIsNotLost) {
  const auto replace = [this] {
    write(cached("b"), "newer");
    std::filesystem::rename(cached("b"), cached("a"));
  };
  EXPECT_EQ(move_while(replace), EBUSY);
  EXPECT_EQ(read(cached("a")), "newer");
  EXPECT_EQ(count_of_plain(), 0u);
}

class OwnFileTest : public MovingTest {
 protected:
  /// A file that a checkpoint has by another name.
  void SetUp() override {
    MovingTest::SetUp();
    std::filesystem::create_directories(root_ / "checkpoint");
    write(cached("a"), "whole");
    chmod(cached("a").c_str(), 0640);
    std::filesystem::create_hard_link(cached("a"), root_ / "checkpoint/a");
  }
  int own(Content content) const { return make_own(root_ / "cache", cached("a").c_str(), content); }
  static ino_t inode_of(const std::string& path) {
    struct stat state {};
    stat(path.c_str(), &state);
    return state.st_ino;
  }
  std::string in_checkpoint() const { return read(root_ / "checkpoint/a"); }
};

TEST_F(OwnFileTest, AChangeAfterTheCopyIsNotInTheCheckpoint) {
  ASSERT_EQ(own(Content::kept), 0);
  EXPECT_EQ(read(cached("a")), "whole");
  std::ofstream(cached("a"), std::ios::app) << " and more";
  EXPECT_EQ(read(cached("a")), "whole and more");
  EXPECT_EQ(in_checkpoint(), "whole");
  struct stat state;
  ASSERT_EQ(stat(cached("a").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0640u);
  EXPECT_EQ(state.st_nlink, 1u);
}

TEST_F(OwnFileTest, AFileThatIsToBeEmptiedIsNotCopied) {
  ASSERT_EQ(own(Content::emptied), 0);
  EXPECT_EQ(read(cached("a")), "");
  EXPECT_EQ(in_checkpoint(), "whole");
  struct stat state;
  ASSERT_EQ(stat(cached("a").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0640u);
}

TEST_F(OwnFileTest, AFileWithOneNameStaysTheSameFile) {
  std::filesystem::remove(root_ / "checkpoint/a");
  const ino_t before = inode_of(cached("a"));
  for (const Content content : {Content::kept, Content::emptied}) {
    ASSERT_EQ(own(content), 0);
    EXPECT_EQ(inode_of(cached("a")), before);
    EXPECT_EQ(read(cached("a")), "whole");
  }
}

TEST_F(OwnFileTest, AFileThatIsWrittenToIsNotCopied) {
  const ino_t before = inode_of(cached("a"));
  const int writer = open(cached("a").c_str(), O_WRONLY);
  EXPECT_EQ(own(Content::kept), EBUSY);
  EXPECT_EQ(inode_of(cached("a")), before);
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/own.tmp"));
  close(writer);
  EXPECT_EQ(own(Content::kept), 0);
}

TEST_F(OwnFileTest, WhatAKilledProcessLeftIsNoObstacle) {
  write(root_ / "cache/own.tmp", "half");
  ASSERT_EQ(own(Content::kept), 0);
  EXPECT_EQ(read(cached("a")), "whole");
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/own.tmp"));
}

TEST_F(OwnFileTest, OfTwoProcessesThatAppendAtOnceNeitherLosesItsBytes) {
  constexpr int attempts = 200;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::filesystem::remove(root_ / "checkpoint/a");
    write(cached("a"), "whole");
    std::filesystem::create_hard_link(cached("a"), root_ / "checkpoint/a");
    std::barrier both(2);
    const auto append = [&](const std::string& text) {
      both.arrive_and_wait();
      EXPECT_EQ(own(Content::kept), 0);
      std::ofstream(cached("a"), std::ios::app) << text;
    };
    std::thread other([&] { append("1"); });
    append("2");
    other.join();
    const std::string all = read(cached("a"));
    ASSERT_TRUE(all == "whole12" || all == "whole21") << all;
    ASSERT_EQ(in_checkpoint(), "whole");
  }
}

}  // namespace
}  // namespace cairn::interpose
