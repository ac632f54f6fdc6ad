#include "interpose/rules.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "interpose/listing.hpp"

namespace cairn::interpose {
namespace {

std::string cleaned(std::string_view directory, std::string_view path) {
  PathBuffer<64> memory;
  PathText out = memory.text();
  return clean_path(directory, path, out) ? std::string(out.view()) : "too long";
}

TEST(CleanPath, RemovesWhatNamesNothing) {
  EXPECT_EQ(cleaned("/work", "a/b"), "/work/a/b");
  EXPECT_EQ(cleaned("/work", "./a//b/."), "/work/a/b");
  EXPECT_EQ(cleaned("/work", "../a"), "/a");
  EXPECT_EQ(cleaned("/work/run", "x/../../a/"), "/work/a");
  EXPECT_EQ(cleaned("/work", "../../.."), "/");
  EXPECT_EQ(cleaned("/", "a"), "/a");
  EXPECT_EQ(cleaned("/work", "/a/..b/.c/d..."), "/a/..b/.c/d...");
  EXPECT_EQ(cleaned("/work", "//a"), "/a");
  EXPECT_EQ(cleaned("/work", ""), "/work");
}

TEST(CleanPath, FailsIfTheMemoryIsTooSmall) {
  EXPECT_EQ(cleaned("/work", std::string(57, 'a')), "/work/" + std::string(57, 'a'));
  EXPECT_EQ(cleaned("/work", std::string(58, 'a')), "too long");
}

TEST(CleanPath, OnlyWhatIsSurelyCleanCountsAsClean) {
  for (const char* path : {"/a/b", "a", "a/b.c", "a..", "/a../b"})
    EXPECT_TRUE(is_surely_clean(path)) << path;
  for (const char* path : {"", ".", "..", "./a", "../a", "/a/", "/a//b", "/a/./b", "/a/../b",
                           "/a/.", "/a/..", "/", "/a/.b"})
    EXPECT_FALSE(is_surely_clean(path)) << path;
}

/// Changes the working directory for one test.
class InDirectory {
 public:
  explicit InDirectory(const std::filesystem::path& path)
      : before_(std::filesystem::current_path()) {
    std::filesystem::create_directories(path);
    std::filesystem::current_path(path);
  }
  ~InDirectory() { std::filesystem::current_path(before_); }
  InDirectory(const InDirectory&) = delete;
  InDirectory& operator=(const InDirectory&) = delete;

 private:
  std::filesystem::path before_;
};

std::filesystem::path new_directory() {
  std::string name = std::filesystem::temp_directory_path() / "interpose.XXXXXX";
  return std::filesystem::canonical(mkdtemp(name.data()));
}

std::string read_from(WorkingDirectory& directory) {
  PathBuffer<4096> memory;
  PathText out = memory.text();
  return directory.read(out) ? std::string(out.view()) : "unknown";
}

TEST(WorkingDirectory, IsKeptUntilItIsForgotten) {
  const auto root = new_directory();
  WorkingDirectory directory;
  {
    const InDirectory in(root);
    EXPECT_EQ(read_from(directory), root);
    std::filesystem::create_directory(root / "below");
    ASSERT_EQ(chdir("below"), 0);
    EXPECT_EQ(read_from(directory), root);  // kept: it has asked no one
    directory.forget();
    EXPECT_EQ(read_from(directory), root / "below");
  }
  std::filesystem::remove_all(root);
}

TEST(WorkingDirectory, IsUnknownAfterItWasDeleted) {
  const auto root = new_directory();
  WorkingDirectory directory;
  const InDirectory in(root);
  std::filesystem::remove_all(root);
  constexpr int of_the_program = 77;
  errno = of_the_program;
  EXPECT_EQ(read_from(directory), "unknown");
  EXPECT_EQ(errno, of_the_program);
}

TEST(WorkingDirectory, AChildThatSharesTheMemoryDoesNotChangeIt) {
  const auto root = new_directory();
  WorkingDirectory directory;
  {
    const InDirectory in(root);
    EXPECT_EQ(read_from(directory), root);
    const pid_t child = vfork();  // NOLINT: that is what is tested
    if (child == 0) {
      if (chdir("/") != 0) _exit(1);
      directory.forget();
      _exit(read_from(directory) == "/" ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(read_from(directory), root);
  }
  std::filesystem::remove_all(root);
}

TEST(WorkingDirectory, IsReadAndForgottenByManyThreads) {
  const auto root = new_directory();
  WorkingDirectory directory;
  {
    const InDirectory in(root);
    std::atomic<bool> stop = false;
    std::thread forgets([&] {
      while (!stop) directory.forget();
    });
    std::atomic<int> wrong = 0;
    std::vector<std::thread> readers;
    for (int t = 0; t < 4; ++t)
      readers.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) wrong += read_from(directory) == root ? 0 : 1;
      });
    for (std::thread& reader : readers) reader.join();
    stop = true;
    forgets.join();
    EXPECT_EQ(wrong, 0);
  }
  std::filesystem::remove_all(root);
}

class RulesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rules_.patterns.add(R"(ckpt\.(?<step>\d+)$)"), "");
    rules_.add_prefix(root_.string());
    rules_.add_prefix("/other/name/");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string decided(std::string_view path, std::size_t capacity = 4096) {
    std::string memory(capacity, 'x');
    PathText scratch{memory.data(), capacity};
    const Decision decision = rules_.decide(path, working_directory_, scratch);
    const std::string relative(decision.relative);
    switch (decision.kind) {
      case Kind::outside:
        return "outside";
      case Kind::unmatched:
        return "unmatched " + relative;
      case Kind::matched:
        return "matched " + relative + " step " + std::string(decision.match.step);
      case Kind::too_long:
        return "too long";
    }
    return "";
  }

  std::filesystem::path root_ = new_directory();
  Rules rules_;
  WorkingDirectory working_directory_;
};

TEST_F(RulesTest, AbsolutePathsAreMatchedBelowThePrefix) {
  EXPECT_EQ(decided((root_ / "a/ckpt.12").string()), "matched a/ckpt.12 step 12");
  EXPECT_EQ(decided((root_ / "a/ckpt.x").string()), "unmatched a/ckpt.x");
  EXPECT_EQ(decided(root_.string()), "unmatched ");
  EXPECT_EQ(decided(root_.string() + "er/ckpt.12"), "outside");
  EXPECT_EQ(decided("/ckpt.12"), "outside");
  EXPECT_EQ(decided(root_.string() + "/a/../../ckpt.12"), "outside");
  EXPECT_EQ(decided(root_.string() + "/a/..//./ckpt.12"), "matched ckpt.12 step 12");
  EXPECT_EQ(decided("/other/name/ckpt.1"), "matched ckpt.1 step 1");
  EXPECT_EQ(decided(""), "outside");
}

TEST_F(RulesTest, RelativePathsFollowTheWorkingDirectory) {
  {
    const InDirectory in(root_ / "deep/er");
    working_directory_.forget();
    EXPECT_EQ(decided("ckpt.3"), "matched deep/er/ckpt.3 step 3");
    EXPECT_EQ(decided("../ckpt.3"), "matched deep/ckpt.3 step 3");
    EXPECT_EQ(decided("../../../ckpt.3"), "outside");
    EXPECT_EQ(decided(".."), "unmatched deep");
  }
  const InDirectory in("/");
  working_directory_.forget();
  EXPECT_EQ(decided("ckpt.3"), "outside");
  EXPECT_EQ(decided(root_.string().substr(1) + "/ckpt.3"), "matched ckpt.3 step 3");
}

TEST_F(RulesTest, ANameWithASlashAtItsEndMustBeADirectory) {
  const auto must_be = [&](const std::string& path) {
    PathBuffer<4096> memory;
    PathText scratch = memory.text();
    const Decision decision = rules_.decide(path, working_directory_, scratch);
    EXPECT_EQ(decision.kind, Kind::matched) << path;
    return decision.names_directory;
  };
  EXPECT_TRUE(must_be(root_.string() + "/ckpt.12/"));
  EXPECT_TRUE(must_be(root_.string() + "/ckpt.12/."));
  EXPECT_FALSE(must_be(root_.string() + "/ckpt.12"));
}

TEST_F(RulesTest, ALittleMemoryIsEnoughOrTheAnswerSaysSo) {
  const InDirectory in(root_);
  working_directory_.forget();
  EXPECT_EQ(decided("ckpt.3", 64), "matched ckpt.3 step 3");
  EXPECT_EQ(decided(std::string(100, 'a'), 64), "too long");
  EXPECT_EQ(decided("/a/../" + std::string(100, 'a'), 64), "too long");
}

TEST_F(RulesTest, TheWholeFileSystemMayBeThePrefix) {
  Rules rules;
  ASSERT_EQ(rules.patterns.add("^a/b$"), "");
  rules.add_prefix("/");
  PathBuffer<64> memory;
  PathText scratch = memory.text();
  EXPECT_EQ(rules.decide("/a/b", working_directory_, scratch).kind, Kind::matched);
}

TEST(PlaceOf, JoinsTheCacheAndTheName) {
  PathBuffer<16> memory;
  PathText out = memory.text();
  EXPECT_TRUE(place_of("/c/files", "a/b", out));
  EXPECT_EQ(out.view(), "/c/files/a/b");
  EXPECT_TRUE(place_of("/c/files", "", out));
  EXPECT_EQ(out.view(), "/c/files");
  EXPECT_FALSE(place_of("/c/files", "12345678", out));
}

TEST(AddedNames, HideTheirOlderVersions) {
  const AddedNames added({{"d", 4}, {"c", 3}, {"b", 2}});
  ASSERT_EQ(added.size(), 3u);
  EXPECT_EQ(added.at(0).name, "b");
  EXPECT_EQ(added.at(2).inode, 4u);
  for (const char* name : {"b", "c", "d"}) EXPECT_TRUE(added.hides(name)) << name;
  for (const char* name : {"a", "bb", "e", "", "."}) EXPECT_FALSE(added.hides(name)) << name;
}

TEST(AddedNames, HavePositionsThatNoFileSystemUses) {
  for (const long of_others : {0L, 1L, LONG_MAX, -1L})
    EXPECT_FALSE(is_position_of_added(of_others));
  for (const std::size_t index : {0uL, 1uL, 1000uL}) {
    EXPECT_TRUE(is_position_of_added(position_of(index)));
    EXPECT_EQ(index_of(position_of(index)), index);
  }
}

}  // namespace
}  // namespace cairn::interpose
