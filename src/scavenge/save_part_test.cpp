// What is left of one rank's part of a dataset is saved byte by byte, however often the saving is
// cut off.
#include "scavenge/save_part.hpp"

#include <map>

#include "files/hooked_files.hpp"
#include "redundancy/set_on_disk.hpp"
#include "support/file_contents.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;

/// Rank 0 of an XOR set of three has died after its commit.
class SavePart : public testing::Test {
 protected:
  SavePart() {
    set_.protect_all();
    write(set_.folder(0).record(), text_of(encode(set_.record(0))));
  }

  static std::string text_of(const Blob& content) {
    return {reinterpret_cast<const char*>(content.data()), content.size()};
  }

  Result<SaveAccount> save(const FileHook& hook = [](const FileOperation&) { return Status{}; }) {
    const auto files = make_hooked_files(*posix_, hook);
    const auto background = make_foreground();
    Throttle unlimited(*clock_, 0);
    const Uuid dataset = set_.record(0).dataset.uuid;
    return save_part(*files, dataset, read_part(*files, set_.folder(0), 0, dataset), to_,
                     {{*background, 1, block_bytes}, unlimited});
  }

  Contents saved() const { return contents_below(to_.path); }
  Contents original() const { return contents_below(set_.folder(0).path); }

  TemporaryFolder base_{"/dev/shm"};
  SetOnDisk set_{base_.path(), {{10'000, 300}, {5'000, 0}, {7'000, 1}}};
  RankFolder to_{base_ / "saved/rank.0"};
  std::unique_ptr<Files> posix_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
};

TEST_F(SavePart, CopiesFilesParityAndRecordByteByByte) {
  const auto account = save();
  ASSERT_TRUE(account) << account.error().text;
  EXPECT_EQ(saved(), original());
  EXPECT_EQ(account->saved_bytes, account->bytes);
  EXPECT_EQ(account->bad_blocks, 0U);
}

TEST_F(SavePart, CopiesNothingTwice) {
  ASSERT_TRUE(save());
  const auto again = save([](const FileOperation& operation) -> Status {
    return operation.name == "write" ? fail(Code::io, "injected") : Status{};
  });
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->saved_bytes, 0U);
  EXPECT_GT(again->bytes, 10'300U);
}

TEST_F(SavePart, AfterAnErrorAtAnyChangeTheNextTryCopiesTheRest) {
  bool failed = true;
  int changes = 0;
  for (; failed && !HasFailure(); ++changes) {
    SCOPED_TRACE(changes);
    fs::remove_all(to_.path);
    int left = changes;
    failed = !save([&](const FileOperation& operation) -> Status {
      if (!changes_files(operation) || left-- > 0) return {};
      return fail(Code::no_space, "injected: cannot {} {}", operation.name, operation.path);
    });
    if (fs::exists(to_.record())) {
      EXPECT_EQ(saved(), original()) << "half a copy counts";
    }
    const auto rest = save();
    ASSERT_TRUE(rest) << rest.error().text;
    EXPECT_EQ(saved(), original());
  }
  EXPECT_GT(changes, 10);
}

/// Few files are synced one by one, so each sync can be seen here.
TEST_F(SavePart, SyncsAllFilesBeforeItWritesTheRecordByWhichTheyCount) {
  std::map<std::string, bool> is_synced;
  ASSERT_TRUE(save([&](const FileOperation& operation) -> Status {
    const std::string path(operation.path);
    if (operation.name == "write") is_synced[path] = false;
    if (operation.name == "sync") is_synced[path] = true;
    if (operation.name == "rename" && operation.to == to_.record()) {
      EXPECT_EQ(is_synced.size(), 4U) << "two files, the parity and the record";
      for (const auto& [file, synced] : is_synced) EXPECT_TRUE(synced) << file;
    }
    return {};
  }));
}

TEST_F(SavePart, CopiesADamagedBlockAsItIsAndReportsIt) {
  flip_bit(set_.path(0, 0));
  const auto account = save();
  ASSERT_TRUE(account) << account.error().text;
  EXPECT_EQ(saved(), original());
  EXPECT_EQ(account->bad_blocks, 1U);
  EXPECT_NE(account->first_trouble.find("does not match its checksum"), std::string::npos)
      << account->first_trouble;
}

TEST_F(SavePart, KeepsACopyThatIsBetterThanWhatIsLeft) {
  ASSERT_TRUE(save());
  const Contents good = saved();
  for (const std::string& path : {set_.path(0, 0), set_.folder(0).record()}) {
    flip_bit(path);
    ASSERT_TRUE(save());
    EXPECT_EQ(saved(), good) << path;
  }
}

TEST_F(SavePart, CopiesFilesWithoutARecordToo) {
  fs::remove(set_.folder(0).record());
  const auto account = save();
  ASSERT_TRUE(account) << account.error().text;
  EXPECT_EQ(saved(), original());
  EXPECT_NE(account->first_trouble.find("no record in"), std::string::npos);
}

}  // namespace
}  // namespace cairn
