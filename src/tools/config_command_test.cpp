#include "tools/config_command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/app_settings_file.hpp"
#include "support/command_output.hpp"

namespace cairn {
namespace {

class ConfigCommandTest : public ::testing::Test, protected CommandOutput {
 protected:
  ConfigCommandTest() {
    process_ = {{{"USER", "ann"}, {"SCR_SET_SIZE", "4"}}, "node1", folder_.path(), 1};
    command_.source.system_path = folder_ / "scr.conf";
    std::ofstream(folder_ / "scr.conf") << "SCR_DEBUG=1\nSCR_FLUSH_TYPE=5\nSCR_DEBUGG=1\n";
  }

  int run() {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_config_command(command_, *files_, process_, out, log);
    });
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  ProcessFacts process_;
  ConfigCommand command_;
};

/// The first line that begins with `key`.
std::string line_of(const std::string& text, const std::string& key) {
  const std::size_t begin = ("\n" + text).find("\n" + key + " ");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST_F(ConfigCommandTest, PrintsAlignedLines) {
  ASSERT_EQ(run(), 0);
  const std::string debug = line_of(printed(), "SCR_DEBUG");
  const std::string size = line_of(printed(), "SCR_SET_SIZE");
  EXPECT_TRUE(debug.ends_with(" " + command_.source.system_path + ":1")) << debug;
  EXPECT_EQ(size.find(" environment"), debug.find(" " + folder_.path())) << debug << "\n" << size;
  EXPECT_TRUE(prints(size + "\n      smallest number of members")) << printed();
  EXPECT_GT(printed().find("SCR_FLUSH_TYPE "), printed().find("without effect"));
  EXPECT_NE(line_of(printed(), "CKPT=0 SET_SIZE"), "");
  EXPECT_TRUE(logs("did you mean SCR_DEBUG?")) << logged();
  EXPECT_TRUE(logs("SCR_FLUSH_TYPE (" + command_.source.system_path + ":2)")) << logged();
}

TEST_F(ConfigCommandTest, KnowsWhatTheProgramHasSet) {
  const PrefixFolder prefix{folder_.path()};
  ASSERT_TRUE(keep_app_settings(*files_, prefix,
                                {{"SCR_SET_SIZE", "16", {}, 0},
                                 {"SCR_DEBUG", "0", {}, 0},
                                 {"SCR_COPY_TYPE", "FILE", {}, 0},
                                 {"CKPT", "0", {{"TYPE", "SINGLE"}}, 0}}));
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(line_of(printed(), "SCR_DEBUG").ends_with(" SCR_Config")) << "before the system's";
  EXPECT_TRUE(line_of(printed(), "SCR_SET_SIZE").ends_with(" environment"));
  EXPECT_TRUE(line_of(printed(), "CKPT=0 TYPE").ends_with(" SCR_Config")) << printed();
}

TEST_F(ConfigCommandTest, LeavesOutWhatTheProgramHasSetIfThatMakesNoSense) {
  const PrefixFolder prefix{folder_.path()};
  ASSERT_TRUE(keep_app_settings(*files_, prefix, {{"SCR_DEBUG", "many", {}, 0}}));
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(logs("SCR_DEBUG=many")) << logged();
  std::ofstream(prefix.job().app_settings()) << "damaged";
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(logs(prefix.job().app_settings() + ": ")) << logged();
  EXPECT_TRUE(line_of(printed(), "SCR_DEBUG").ends_with("scr.conf:1")) << printed();
}

TEST_F(ConfigCommandTest, FitsATerminalButForLongValues) {
  process_.environment["SCR_CACHE_BASE"] = "/" + std::string(100, 'x');
  ASSERT_EQ(run(), 0);
  std::istringstream lines(printed());
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 80 || line.find("xxx") != std::string::npos ||
                line.find(folder_.path()) != std::string::npos)
        << line;
}

TEST_F(ConfigCommandTest, PrintsJson) {
  command_.json = true;
  process_.environment["SCR_CLUSTER_NAME"] = "\xff";
  ASSERT_EQ(run(), 0);
  const auto all = printed_json();
  EXPECT_EQ(all.at("warnings").size(), 1U);
  EXPECT_EQ(all.at("notes").size(), 2U);
  const auto& first = all.at("settings").at(0);
  EXPECT_EQ(first.at("key"), "SCR_ENABLE");
  EXPECT_EQ(first.at("value"), "1");
  EXPECT_EQ(first.at("source"), "default");
  EXPECT_EQ(first.at("used"), true);
}

TEST_F(ConfigCommandTest, ThePrefixMayBeGivenRelative) {
  std::filesystem::create_directory(folder_ / "run");
  std::ofstream(folder_ / "run/.scrconf") << "SCR_SET_FAILURES=3\n";
  command_.source.prefix = "run";
  ASSERT_EQ(run(), 0);
  EXPECT_NE(line_of(printed(), "SCR_SET_FAILURES").find("/run/.scrconf:1"), std::string::npos);
}

TEST_F(ConfigCommandTest, GroupsAreShownToo) {
  std::ofstream(folder_ / "scr.conf") << "GROUPS=a RACK=r1 SWITCH=s1\nGROUPS=b RACK=r2 SWITCH=s1\n";
  ASSERT_EQ(run(), 0) << logged();
  const std::string line = line_of(printed(), "GROUPS=b RACK");
  EXPECT_NE(line.find("r2"), std::string::npos) << printed();
  EXPECT_TRUE(line.ends_with("/scr.conf:2")) << printed();
  EXPECT_NE(line_of(printed(), "GROUPS=a SWITCH"), "");
}

TEST_F(ConfigCommandTest, ShowsOnlyWhatWasChanged) {
  command_.only_changed = true;
  ASSERT_EQ(run(), 0);
  EXPECT_NE(line_of(printed(), "SCR_DEBUG"), "");
  EXPECT_NE(line_of(printed(), "SCR_SET_SIZE"), "");
  EXPECT_NE(line_of(printed(), "SCR_FLUSH_TYPE"), "") << "accepted without effect";
  EXPECT_EQ(line_of(printed(), "SCR_ENABLE"), "");
  EXPECT_FALSE(prints("  default\n")) << printed();
}

TEST_F(ConfigCommandTest, ShowsOneSettingOrAllOfALine) {
  command_.names = {"SCR_DEBUG"};
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(printed().starts_with("SCR_DEBUG ")) << printed();
  EXPECT_FALSE(prints("SCR_SET_SIZE"));
  EXPECT_FALSE(prints("without effect")) << "a heading of nothing";
  command_ = {};
  command_.json = true;
  command_.names = {"CKPT=0", "SCR_ENABLE"};
  ASSERT_EQ(run(), 0);
  const auto shown = printed_json().at("settings");
  ASSERT_GT(shown.size(), 3U);
  for (const auto& one : shown)
    EXPECT_TRUE(one.at("key") == "SCR_ENABLE" ||
                one.at("key").get<std::string>().starts_with("CKPT=0 "))
        << one;
}

TEST_F(ConfigCommandTest, ANameThatNoSettingHasIsWrongUsage) {
  command_.names = {"SCR_ENABLE", "SCR_DEBUGG"};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(printed(), "");
  EXPECT_TRUE(logs("there is no setting SCR_DEBUGG; did you mean SCR_DEBUG?")) << logged();
  command_.names = {"CKPT"};
  EXPECT_EQ(run(), 2) << "the beginning of a key is no key";
}

TEST_F(ConfigCommandTest, AWrongSettingFails) {
  process_.environment["SCR_SET_SIZE"] = "one";
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(printed(), "");
  EXPECT_TRUE(logs("SCR_SET_SIZE=one (environment) is not allowed")) << logged();
}

}  // namespace
}  // namespace cairn
