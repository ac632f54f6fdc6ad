#include "prefix/file_finder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/manifest.hpp"

namespace cairn {
namespace {

/// A dataset of 16 ranks with four in each manifest; rank i has written "r<i>/data".
class FileFinderTest : public ::testing::Test {
 protected:
  FileFinderTest() {
    dataset_.info.ranks = 16;
    dataset_.info.number = 1;
    dataset_.ranks_per_manifest = 4;
    const std::string folder = folder_.dataset(dataset_.info);
    std::filesystem::create_directories(folder);
    for (std::uint64_t number = 0; number < 4; ++number) {
      Blob content;
      for (int i = 0; i < 4; ++i) {
        const Blob sealed = encode(record_of(static_cast<int>(number) * 4 + i));
        content.insert(content.end(), sealed.begin(), sealed.end());
      }
      EXPECT_TRUE(
          write_file_atomically(*posix_, PrefixFolder::manifest(folder, number), content, false));
    }
  }

  RankRecord record_of(int rank) const {
    RankRecord record;
    record.dataset = dataset_.info;
    record.rank = rank;
    record.encoding.members = {rank};
    record.encoding.member_bytes = {0};
    record.encoding.member_nodes = {"n0"};
    FileEntry& entry = record.files.emplace_back();
    entry.name = name_of(rank);
    return record;
  }
  static bool has(FileFinder& finder, const std::string& name) {
    const auto found = finder.has(name);
    EXPECT_TRUE(found) << found.error().text;
    return found.value_or(false);
  }
  static std::string name_of(int rank) { return "r" + std::to_string(rank) + "/data"; }

  TemporaryFolder prefix_;
  PrefixFolder folder_{prefix_.path()};
  DatasetRecord dataset_;
  std::unique_ptr<Files> posix_ = make_posix_files();
  std::set<std::string> read_;
  std::unique_ptr<Files> files_ = make_hooked_files(*posix_, [this](const FileOperation& next) {
    if (next.name == "open") read_.insert(name_of_path(std::string(next.path)));
    return Status{};
  });
};

TEST_F(FileFinderTest, WhoeverAsksForItsNeighboursReadsLittle) {
  FileFinder finder(*files_, folder_, dataset_, 5, 8);  // where ranks 10 and 11 were
  EXPECT_TRUE(read_.empty());
  EXPECT_TRUE(has(finder, name_of(10)));
  EXPECT_TRUE(has(finder, name_of(9)));
  EXPECT_EQ(read_, std::set<std::string>{"manifest.2"});
  EXPECT_TRUE(has(finder, name_of(0)));
  EXPECT_EQ(read_.size(), 4U);
}

TEST_F(FileFinderTest, KnowsAllOfThemAndNoOther) {
  FileFinder finder(*files_, folder_, dataset_, 0, 1);
  for (int rank = 0; rank < 16; ++rank) EXPECT_TRUE(has(finder, name_of(rank))) << rank;
  EXPECT_FALSE(has(finder, "r16/data"));
  EXPECT_FALSE(has(finder, "data"));
}

TEST_F(FileFinderTest, AManifestThatIsGoneIsNamed) {
  std::filesystem::remove(PrefixFolder::manifest(folder_.dataset(dataset_.info), 3));
  FileFinder finder(*files_, folder_, dataset_, 0, 4);
  EXPECT_TRUE(has(finder, name_of(1)));
  const auto missing = finder.has(name_of(13));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find("manifest.3"), std::string::npos);
}

}  // namespace
}  // namespace cairn
