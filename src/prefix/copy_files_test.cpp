// Files of a rank copied in pieces that several threads share.
#include "prefix/copy_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

#include "comm/group.hpp"
#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "redundancy/protect.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t mib = 1 << 20;

/// Files in a cache, with their record.
class CopyFiles : public ::testing::TestWithParam<int> {
 protected:
  void write(const std::vector<std::size_t>& sizes) {
    record_.dataset.ranks = 1;
    record_.encoding.members = {0};
    record_.encoding.member_nodes = {"n"};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::string content(sizes[i], '\0');
      for (std::size_t at = 0; at < content.size(); ++at)
        content[at] = static_cast<char>((at * 11 + at / 4096 + i) % 251);
      const std::string name = fmt::format("{}/f{}", i % 3, i);
      from_.push_back(folder_.file(name));
      fs::create_directories(folder_of(from_.back()));
      std::ofstream(from_.back(), std::ios::binary) << content;
      to_.push_back(target_ / name);
      fs::create_directories(folder_of(to_.back()));
      record_.files.push_back({name, content.size(), 0440, 0, 0, {5, 1'000'000'000}});
    }
    Team(1).run([&](Communicator& comm) {
      Group alone(comm, {0});
      ASSERT_TRUE(protect(alone, *posix_, folder_, record_, 1 << 20));
    });
  }

  Status copy(
      const FileHook& hook = [](const FileOperation&) { return Status{}; }, bool durable = true,
      bool past_cache = false) {
    const auto files = make_hooked_files(*posix_, hook);
    const auto clock = make_system_clock();
    const auto background = make_background_thread();
    Throttle throttle(*clock, 0);
    return copy_files(*files, {*background, GetParam(), 2 * mib}, record_, from_, to_,
                      {0600, true, durable, false, past_cache}, throttle);
  }

  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// What matters is whether it is refused.
  Status copy_soon_lost() {
    return copy([](const FileOperation&) { return Status{}; }, false);
  }

  void expect_copies() {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      ASSERT_TRUE(read(to_[i]) == read(from_[i])) << to_[i];
      EXPECT_EQ(posix_->info(to_[i])->mode, 0440U);
      EXPECT_EQ(posix_->info(to_[i])->times.modify_ns, 1'000'000'000);
    }
  }

  TemporaryFolder base_{"/dev/shm"};
  TemporaryFolder target_;  // on a disk, if there is one
  RankFolder folder_{base_.path() + "/rank.0"};
  std::unique_ptr<Files> posix_ = make_posix_files();
  RankRecord record_;
  std::vector<std::string> from_;
  std::vector<std::string> to_;
};

/// Over several pieces, from one to the next, many in one, and of no bytes.
std::vector<std::size_t> all_kinds() {
  std::vector<std::size_t> sizes = {0, 5 * mib + 7, 0, 3 * mib};
  for (std::size_t i = 0; i < 600; ++i) sizes.push_back(i * 13 % 3000);
  sizes.insert(sizes.end(), {mib, 0, 0});
  return sizes;
}

TEST_P(CopyFiles, ByteForByteWithModesAndTimes) {
  write(all_kinds());
  ASSERT_TRUE(copy());
  expect_copies();
  const Status again = copy();  // over read-only files of an earlier try
  ASSERT_TRUE(again) << again.error().text;
  expect_copies();
}

/// Blocks have 256 KiB, and pieces 2 MiB.
TEST_P(CopyFiles, PastTheCacheInFewWritesByteForByte) {
  write(all_kinds());
  std::mutex mutex;
  std::map<std::string, int> writes;
  const auto count = [&](const FileOperation& operation) -> Status {
    const std::scoped_lock lock(mutex);
    if (operation.name == "write") ++writes[std::string(operation.path)];
    return {};
  };
  ASSERT_TRUE(copy(count, true, true));
  expect_copies();
  EXPECT_LE(writes.at(to_[1]), 4);  // 5 MiB and a bit
  EXPECT_LE(writes.at(to_[3]), 4);
}

/// A block reaches over the end of a file, of which others wait to be written.
TEST_P(CopyFiles, PastTheCacheWhereAFileEndsWithinAPiece) {
  constexpr std::size_t kib = 1 << 10;
  write({600 * kib, 700 * kib + 1, 900 * kib, 300 * kib});
  const Status copied = copy([](const FileOperation&) { return Status{}; }, true, true);
  ASSERT_TRUE(copied) << copied.error().text;
  expect_copies();
}

/// To make a view of a file in memory, the kernel looks at all its pages.
TEST_P(CopyFiles, AFileOfManyPiecesIsLookedAtOnce) {
  write({9 * mib});
  std::atomic<int> views = 0;
  ASSERT_TRUE(copy([&](const FileOperation& operation) -> Status {
    if (operation.name == "view") ++views;
    return {};
  }));
  EXPECT_EQ(views, 1);
}

TEST_P(CopyFiles, NothingAtAllIsCopiedToo) {
  write({});
  EXPECT_TRUE(copy());
  write({0});
  EXPECT_TRUE(copy());
  expect_copies();
}

/// Which file was written, or became durable, last.
class LastOperations {
 public:
  Status note(const FileOperation& operation) {
    const std::scoped_lock lock(mutex_);
    ++now_;
    if (operation.name == "create" || operation.name == "write" ||
        operation.name == "set_attributes")
      changed_[std::string(operation.path)] = now_;
    // Of the attributes too.
    if (operation.name == "sync_all") synced_[std::string(operation.path)] = now_;
    if (operation.name.starts_with("open")) ++opened_[std::string(operation.path)];
    if (operation.name == "sync_file_system") all_synced_ = now_;
    return {};
  }

  void expect_durable(const std::string& path) {
    ASSERT_TRUE(changed_.contains(path)) << path;
    const int synced = synced_.contains(path) ? synced_[path] : all_synced_;
    EXPECT_GT(synced, changed_[path]) << path;
  }

  /// Else the descriptor that is synced may not hear of what went wrong with the bytes of another.
  /// Of several threads each may have opened one, of which one is used.
  void expect_one_descriptor(const std::string& path, int threads) {
    EXPECT_LE(opened_[path], threads) << path;
  }

  std::size_t files_synced() const { return synced_.size(); }
  bool synced_at_once() const { return all_synced_ > 0; }

 private:
  std::mutex mutex_;
  int now_ = 0;
  int all_synced_ = 0;
  std::map<std::string, int> changed_;
  std::map<std::string, int> synced_;
  std::map<std::string, int> opened_;
};

TEST_P(CopyFiles, EveryFileIsSyncedAfterItsLastChange) {
  for (const bool many : {false, true}) {
    record_ = {};
    from_.clear();
    to_.clear();
    write(many ? all_kinds() : std::vector<std::size_t>{0, 5 * mib + 7, 100, 0, 3 * mib, 5});
    LastOperations last;
    ASSERT_TRUE(copy([&](const FileOperation& operation) { return last.note(operation); }));
    for (const std::string& path : to_) {
      last.expect_durable(path);
      last.expect_one_descriptor(path, GetParam());
    }
    const bool at_once = many && *posix_->open_file_system(target_.path()) != nullptr;
    EXPECT_EQ(last.synced_at_once(), at_once);
    EXPECT_EQ(last.files_synced(), at_once ? 0U : to_.size());
  }
}

TEST_P(CopyFiles, AFlippedByteAnywhereIsRefusedByName) {
  write(all_kinds());
  for (const std::size_t file :
       {std::size_t{1}, std::size_t{3}, std::size_t{300}, to_.size() - 3}) {
    const std::string whole = read(from_[file]);
    ASSERT_FALSE(whole.empty());
    for (const std::size_t at : {std::size_t{0}, whole.size() - 1}) {
      std::string damaged = whole;
      damaged[at] ^= 1;
      std::ofstream(from_[file], std::ios::binary) << damaged;
      const Status copied = copy_soon_lost();
      ASSERT_FALSE(copied) << from_[file] << " at " << at;
      EXPECT_EQ(copied.error().code, Code::corrupt);
      EXPECT_NE(copied.error().text.find(from_[file]), std::string::npos) << copied.error().text;
    }
    std::ofstream(from_[file], std::ios::binary) << whole;
  }
  EXPECT_TRUE(copy_soon_lost());
}

TEST_P(CopyFiles, AFileOfAnotherSizeOrNoneIsRefused) {
  write(all_kinds());
  for (const std::size_t file : {std::size_t{0}, std::size_t{1}, std::size_t{300}}) {
    const std::size_t size = record_.files[file].size;
    fs::resize_file(from_[file], size + 1);
    const Status longer = copy_soon_lost();
    ASSERT_FALSE(longer);
    EXPECT_EQ(longer.error().code, Code::corrupt);
    fs::rename(from_[file], from_[file] + ".away");
    const Status gone = copy_soon_lost();
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::lost);
    fs::rename(from_[file] + ".away", from_[file]);
    fs::resize_file(from_[file], size);
  }
  EXPECT_TRUE(copy_soon_lost());
}

TEST_P(CopyFiles, AnErrorOfAnyThreadIsReported) {
  write(all_kinds());
  for (const char* name : {"create", "write", "set_attributes", "open", "view"}) {
    const Status copied = copy([&](const FileOperation& operation) -> Status {
      if (operation.name == name) return fail(Code::no_space, "no room: {}", name);
      return {};
    });
    ASSERT_FALSE(copied) << name;
    EXPECT_EQ(copied.error().code, Code::no_space) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CopyFiles, ::testing::Values(1, 2, 4),
                         [](const auto& threads) { return fmt::format("{}", threads.param); });

}  // namespace
}  // namespace cairn
