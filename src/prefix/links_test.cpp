// Links below the prefix directory (docs/adr/0022-nothing-is-read-or-written-through-a-link.md).
// What a deletion does about them is in delete_test.cpp.
#include "prefix/repair_files.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

using Links = PrefixFixture;

TEST_F(Links, ALinkOnTheWayIsRefused) {
  fs::create_directories(base_.path() + "/elsewhere");
  fs::create_symlink(base_.path() + "/elsewhere", prefix() + "/ckpt");
  run_well([&](PrefixRank& rank) {
    const Status flushed = flush_dataset(rank, 1);
    ASSERT_FALSE(flushed);
    EXPECT_NE(flushed.error().text.find(prefix() + "/ckpt"), std::string::npos)
        << flushed.error().text;
  });
  EXPECT_TRUE(fs::is_empty(base_.path() + "/elsewhere"));
  fs::remove(prefix() + "/ckpt");
  flush_well(1);
  EXPECT_EQ(fetch_again(1), "") << "no run after it is in the way of another";
}

TEST_F(Links, NothingIsReadThroughALinkInThePlaceOfAFolder) {
  for (const std::string moved : {"ckpt", "ckpt/r1"}) {
    flush_well(1);
    const std::string archive = base_.path() + "/archive";
    const std::string link = prefix() + "/" + moved;
    fs::rename(link, archive);
    fs::create_directory_symlink(archive, link);
    const std::string refused = fetch_again(1);
    EXPECT_TRUE(refused.starts_with(link + " is a link")) << refused;
    EXPECT_NE(refused.find("put the directory of ckpt.1 back"), std::string::npos) << refused;
    fs::remove(link);
    fs::rename(archive, link);
    EXPECT_EQ(fetch_again(1), "");
    fs::remove_all(prefix());
    fs::create_directories(prefix());
  }
}

TEST_F(Links, NothingIsRepairedThroughOne) {
  flush_well(1);
  fs::rename(prefix() + "/ckpt", base_.path() + "/archive");
  fs::create_directory_symlink(base_.path() + "/archive", prefix() + "/ckpt");
  run_well([&](PrefixRank& rank) {
    const RankRecord record = write_part(rank, 1);
    RankCheck all_wrong;
    all_wrong.wrong_files = {0, 1};
    const std::vector<RankFolder> sources = {cached(1, record.rank)};
    const Status can = can_repair_files(*rank.files, folder(), record, all_wrong, sources, {});
    ASSERT_FALSE(can);
    EXPECT_EQ(can.error().code, Code::lost);
    EXPECT_NE(can.error().text.find("/ckpt is a link"), std::string::npos) << can.error().text;
    const Status repaired = repair_files(*rank.files, folder(), record, all_wrong, sources, {});
    EXPECT_TRUE(!repaired && repaired.error().code == Code::lost);
  });
}

/// To a prefix directory itself links may lead.
TEST_F(Links, ThePrefixDirectoryMayBeALink) {
  const std::string real = base_.path() + "/real";
  fs::rename(prefix(), real);
  fs::create_directory_symlink(real, prefix());
  flush_well(1);
  EXPECT_EQ(fetch_again(1), "");
}

}  // namespace
}  // namespace cairn
