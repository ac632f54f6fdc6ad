#include "prefix/app_settings_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class AppSettingsFile : public ::testing::Test {
 protected:
  Status keep(const std::vector<Entry>& entries) {
    return keep_app_settings(*files_, prefix_, entries);
  }
  /// As text, or what is wrong.
  std::string kept() {
    const auto entries = read_app_settings(*files_, prefix_);
    if (!entries) return entries.error().text;
    std::string text;
    for (const Entry& entry : *entries) {
      text += entry.key + "=" + entry.value;
      for (const Pair& leaf : entry.children) text += " " + leaf.key + "=" + leaf.value;
      text += ";";
    }
    return text;
  }

  TemporaryFolder folder_;
  const PrefixFolder prefix_{folder_.path()};
  std::unique_ptr<Files> posix_ = make_posix_files();
  FileHook hook_ = [](const FileOperation&) { return Status{}; };
  std::unique_ptr<Files> files_ = make_hooked_files(
      *posix_, [this](const FileOperation& operation) { return hook_(operation); });
};

TEST_F(AppSettingsFile, HasWhatTheLastRunHasSet) {
  EXPECT_EQ(kept(), "");
  ASSERT_TRUE(keep({{"SCR_FLUSH", "2", {}, 0}, {"CKPT", "0", {{"TYPE", "XOR"}}, 0}}));
  EXPECT_EQ(kept(), "SCR_FLUSH=2;CKPT=0 TYPE=XOR;");
  ASSERT_TRUE(keep({{"SCR_CACHE_BASE", "/a b'\"\n$", {}, 7}}));
  EXPECT_EQ(kept(), "SCR_CACHE_BASE=/a b'\"\n$;");
}

TEST_F(AppSettingsFile, IsNotThereForProgramsThatSetNothing) {
  ASSERT_TRUE(keep({}));
  EXPECT_FALSE(std::filesystem::exists(prefix_.root())) << "nothing is made for them";
  ASSERT_TRUE(keep({{"SCR_FLUSH", "2", {}, 0}}));
  ASSERT_TRUE(keep({}));
  EXPECT_EQ(kept(), "");
  EXPECT_TRUE(std::filesystem::is_empty(prefix_.root()));
}

TEST_F(AppSettingsFile, HasNothingOfOneRunOnly) {
  ASSERT_TRUE(keep({{"SCR_PREFIX", "/elsewhere", {}, 0},
                    {"SCR_END_TIME", "1700000000", {}, 0},
                    {"SCR_FLUSH", "2", {}, 0},
                    {"SCR_NODELIST", "n[1-4]", {}, 0}}));
  EXPECT_EQ(kept(), "SCR_FLUSH=2;");
}

TEST_F(AppSettingsFile, IsLeftAloneWhereNothingHasChanged) {
  ASSERT_TRUE(keep({{"SCR_FLUSH", "2", {}, 0}}));
  hook_ = [](const FileOperation& operation) -> Status {
    const bool changes = operation.name == "create" || operation.name.starts_with("remove");
    return changes ? fail(Code::io, "{} {}", operation.name, operation.path) : Status{};
  };
  EXPECT_TRUE(keep({{"SCR_FLUSH", "2", {}, 0}}));
  EXPECT_FALSE(keep({{"SCR_FLUSH", "3", {}, 0}}));
  EXPECT_EQ(kept(), "SCR_FLUSH=2;") << "or the old one stays";
}

TEST_F(AppSettingsFile, DamageIsReportedAndRepairedByTheNextRun) {
  const std::vector<Entry> entries = {{"SCR_FLUSH", "2", {}, 0}};
  ASSERT_TRUE(keep(entries));
  const Blob sound = *read_file(*posix_, prefix_.job().app_settings(), 1 << 20);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    Blob flipped = sound;
    flipped[at] ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(*posix_, prefix_.job().app_settings(), flipped, false));
    EXPECT_NE(kept().find(prefix_.job().app_settings() + ": "), std::string::npos) << at << kept();
    ASSERT_TRUE(keep(entries));
    EXPECT_EQ(kept(), "SCR_FLUSH=2;") << at;
  }
}

}  // namespace
}  // namespace cairn
