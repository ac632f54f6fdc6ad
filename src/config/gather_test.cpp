#include "config/gather.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "config/resolve.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class GatherTest : public ::testing::Test {
 protected:
  GatherTest() { process_ = {{{"HOME", "/home/ann"}}, "node1", folder_.path(), 1}; }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  Result<SettingSources> gather() {
    return gather_sources(*files_, process_, app_entries_, folder_ / "scr.conf");
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  ProcessFacts process_;
  std::vector<Entry> app_entries_;
};

TEST_F(GatherTest, FilesThatAreNotThereAreNone) {
  const auto sources = gather();
  ASSERT_TRUE(sources) << sources.error().text;
  EXPECT_TRUE(sources->user_file.name.empty());
  EXPECT_TRUE(sources->system_file.name.empty());
  EXPECT_TRUE(sources->process.environment.empty()) << "HOME does not concern settings";
}

TEST_F(GatherTest, ReadsBothFilesAndExpandsVariables) {
  write("scr.conf", "SCR_DEBUG=1\nSCR_SET_SIZE=4\n");
  const std::string user = write(".scrconf", "SCR_DEBUG=2\nSTORE=$HOME/cache\n");
  const auto resolved = gather().and_then(resolve);
  ASSERT_TRUE(resolved) << resolved.error().text;
  EXPECT_EQ(resolved->settings.debug, 2);
  EXPECT_EQ(resolved->settings.checkpoints.at(0).set_size, 4);
  EXPECT_EQ(resolved->value_of("SCR_CONF_FILE"), user);
  EXPECT_EQ(resolved->value_of("STORE=/home/ann/cache COUNT"), "1");
}

TEST_F(GatherTest, ThePrefixSaysWhereTheUsersFileIs) {
  std::filesystem::create_directory(folder_ / "other");
  write("other/.scrconf", "SCR_DEBUG=3");
  app_entries_ = {{"SCR_PREFIX", folder_ / "other", {}, 0}};
  EXPECT_EQ(gather()->user_file.name, folder_ / "other/.scrconf");
  process_.environment["SCR_PREFIX"] = folder_.path();
  EXPECT_TRUE(gather()->user_file.name.empty());
}

TEST_F(GatherTest, ANamedFileMustBeThere) {
  process_.environment["SCR_CONF_FILE"] = write("mine", "SCR_DEBUG=4");
  EXPECT_EQ(gather()->user_file.name, folder_ / "mine");
  process_.environment["SCR_CONF_FILE"] = folder_ / "missing";
  const auto sources = gather();
  ASSERT_FALSE(sources);
  EXPECT_EQ(sources.error().code, Code::bad_setting);
  EXPECT_NE(sources.error().text.find("/missing (environment) does not exist"), std::string::npos);
  process_.environment["SCR_CONF_FILE"] = "relative";
  EXPECT_NE(gather().error().text.find("SCR_CONF_FILE=relative"), std::string::npos);
}

TEST_F(GatherTest, ErrorsInFilesNameThem) {
  const std::string user = write(".scrconf", "SCR_DEBUG=1\nSCR_PREFIX=$NOWHERE/x\n");
  const auto sources = gather();
  ASSERT_FALSE(sources);
  EXPECT_EQ(sources.error().text.rfind(user + ":2: $NOWHERE is not set", 0), 0U)
      << sources.error().text;
  write(".scrconf", std::string(2 << 20, '#'));
  EXPECT_FALSE(gather()) << "a file of 2 MiB";
}

TEST(CurrentProcess, KnowsItself) {
  setenv("SCR_GATHER_TEST", "a=b", 1);
  const ProcessFacts process = current_process();
  EXPECT_EQ(process.environment.at("SCR_GATHER_TEST"), "a=b");
  EXPECT_FALSE(process.host_name.empty());
  EXPECT_EQ(process.working_folder, std::filesystem::current_path().string());
  EXPECT_EQ(system_settings_path().front(), '/');
}

}  // namespace
}  // namespace cairn
