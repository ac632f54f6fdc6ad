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

TEST_F(GatherTest, MissingFilesHaveNoEntries) {
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

TEST_F(GatherTest, TheUsersFileIsInThePrefixDirectory) {
  std::filesystem::create_directory(folder_ / "other");
  write("other/.scrconf", "SCR_DEBUG=3");
  app_entries_ = {{"SCR_PREFIX", folder_ / "other", {}, 0}};
  EXPECT_EQ(gather()->user_file.name, folder_ / "other/.scrconf");
  process_.environment["SCR_PREFIX"] = folder_.path();
  EXPECT_TRUE(gather()->user_file.name.empty());
}

TEST_F(GatherTest, AMissingNamedFileIsAWarning) {
  process_.environment["SCR_CONF_FILE"] = write("mine", "SCR_DEBUG=4");
  EXPECT_EQ(gather()->user_file.name, folder_ / "mine");
  process_.environment["SCR_CONF_FILE"] = folder_ / "missing";
  write(".scrconf", "SCR_DEBUG=5");
  const auto resolved = gather().and_then(resolve);
  ASSERT_TRUE(resolved) << resolved.error().text;
  EXPECT_EQ(resolved->settings.debug, 0) << "no other file stands in";
  ASSERT_EQ(resolved->warnings.size(), 1U);
  EXPECT_NE(resolved->warnings[0].find("/missing (environment) does not exist"), std::string::npos);
}

TEST_F(GatherTest, RelativePathsBeginAtTheWorkingDirectory) {
  std::filesystem::create_directory(folder_ / "run");
  write("run/.scrconf", "SCR_DEBUG=3");
  write("mine", "SCR_DEBUG=4");
  process_.environment["SCR_PREFIX"] = "./run/";
  const auto resolved = gather().and_then(resolve);
  ASSERT_TRUE(resolved) << resolved.error().text;
  EXPECT_EQ(resolved->settings.prefix, folder_ / "run");
  EXPECT_EQ(resolved->settings.debug, 3);
  process_.environment["SCR_CONF_FILE"] = "mine";
  EXPECT_EQ(gather()->user_file.name, folder_ / "mine");
  process_.environment.clear();
  app_entries_ = {{"SCR_PREFIX", "run", {}, 0}};
  EXPECT_EQ(gather().and_then(resolve)->settings.prefix, folder_ / "run");
}

TEST_F(GatherTest, VariablesInTheEnvironmentAreReplaced) {
  process_.environment["SCR_PREFIX"] = "$HOME/run";
  process_.environment["CAIRN_BROADCAST"] = "a$NOWHERE,*.mesh$";
  const auto resolved = gather().and_then(resolve);
  ASSERT_TRUE(resolved) << resolved.error().text;
  EXPECT_EQ(resolved->settings.prefix, "/home/ann/run");
  EXPECT_EQ(resolved->settings.broadcast, (std::vector<std::string>{"a$NOWHERE", "*.mesh$"}));
  process_.environment["SCR_CACHE_BASE"] = "$NOWHERE/cache";
  const auto refused = gather();
  ASSERT_FALSE(refused) << "/cache would be another directory";
  EXPECT_EQ(refused.error().code, Code::bad_setting);
  EXPECT_NE(refused.error().text.find("$NOWHERE"), std::string::npos);
}

TEST_F(GatherTest, ErrorsInFilesNameThem) {
  const std::string user = write(".scrconf", "SCR_DEBUG=1\nSCR_PREFIX=$NOWHERE/x\n");
  const auto resolved = gather().and_then(resolve);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().text.rfind(user + ":2: $NOWHERE", 0), 0U) << resolved.error().text;
  write(".scrconf", std::string(2 << 20, '#'));
  EXPECT_FALSE(gather()) << "a file of 2 MiB";
}

TEST_F(GatherTest, AllErrorsOfBothFilesAreReportedAtOnce) {
  const std::string system = write("scr.conf", "SCR_FLUSH=often\n");
  const std::string user = write(".scrconf",
                                 "SCR_DEBUG=1\nSCR_COPY_TYPE='XOR\nSCR_SET_SIZE=1\n"
                                 "SCR_CACHE_SIZE=2 X=3\nSTORE=/s COUNT=none\n");
  const auto resolved = gather().and_then(resolve);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code, Code::bad_setting);
  for (const std::string& where :
       {system + ":1", user + ":2", user + ":3", user + ":4", user + ":5"})
    EXPECT_NE(resolved.error().text.find(where), std::string::npos)
        << where << " in " << resolved.error().text;
  EXPECT_EQ(resolved.error().text.find(user + ":1)"), std::string::npos);
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
