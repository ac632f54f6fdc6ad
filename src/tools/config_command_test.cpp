#include "tools/config_command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/app_settings_file.hpp"

namespace cairn {
namespace {

class ConfigCommandTest : public ::testing::Test {
 protected:
  ConfigCommandTest() {
    process_ = {{{"USER", "ann"}, {"SCR_SET_SIZE", "4"}}, "node1", folder_.path(), 1};
    command_.source.system_path = folder_ / "scr.conf";
    std::ofstream(folder_ / "scr.conf") << "SCR_DEBUG=1\nSCR_FLUSH_TYPE=5\nSCR_DEBUGG=1\n";
  }

  int run() {
    const Log log([this](Severity, const std::string& text) { told_ += text + "\n"; });
    return run_config_command(command_, *files_, process_, out_, log);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  ProcessFacts process_;
  ConfigCommand command_;
  std::ostringstream out_;
  std::string told_;
};

/// The first line that begins with `key`.
std::string line_of(const std::string& text, const std::string& key) {
  const std::size_t begin = ("\n" + text).find("\n" + key + " ");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST_F(ConfigCommandTest, PrintsAlignedLines) {
  ASSERT_EQ(run(), 0);
  const std::string debug = line_of(out_.str(), "SCR_DEBUG");
  const std::string size = line_of(out_.str(), "SCR_SET_SIZE");
  EXPECT_TRUE(debug.ends_with(" " + command_.source.system_path + ":1")) << debug;
  EXPECT_EQ(size.find(" environment"), debug.find(" " + folder_.path())) << debug << "\n" << size;
  EXPECT_NE(out_.str().find(size + "\n      smallest number of members"), std::string::npos)
      << out_.str();
  EXPECT_GT(out_.str().find("SCR_FLUSH_TYPE "), out_.str().find("without effect"));
  EXPECT_NE(line_of(out_.str(), "CKPT=0 SET_SIZE"), "");
  EXPECT_NE(told_.find("did you mean SCR_DEBUG?"), std::string::npos) << told_;
  EXPECT_NE(told_.find("SCR_FLUSH_TYPE (" + command_.source.system_path + ":2)"), std::string::npos)
      << told_;
}

TEST_F(ConfigCommandTest, KnowsWhatTheProgramHasSet) {
  const PrefixFolder prefix{folder_.path()};
  ASSERT_TRUE(keep_app_settings(*files_, prefix,
                                {{"SCR_SET_SIZE", "16", {}, 0},
                                 {"SCR_DEBUG", "0", {}, 0},
                                 {"SCR_COPY_TYPE", "FILE", {}, 0},
                                 {"CKPT", "0", {{"TYPE", "SINGLE"}}, 0}}));
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(line_of(out_.str(), "SCR_DEBUG").ends_with(" SCR_Config")) << "before the system's";
  EXPECT_TRUE(line_of(out_.str(), "SCR_SET_SIZE").ends_with(" environment"));
  EXPECT_TRUE(line_of(out_.str(), "CKPT=0 TYPE").ends_with(" SCR_Config")) << out_.str();
}

TEST_F(ConfigCommandTest, LeavesOutWhatTheProgramHasSetIfThatMakesNoSense) {
  const PrefixFolder prefix{folder_.path()};
  ASSERT_TRUE(keep_app_settings(*files_, prefix, {{"SCR_DEBUG", "many", {}, 0}}));
  ASSERT_EQ(run(), 0);
  EXPECT_NE(told_.find("SCR_DEBUG=many"), std::string::npos) << told_;
  std::ofstream(prefix.app_settings()) << "damaged";
  out_.str("");
  ASSERT_EQ(run(), 0);
  EXPECT_NE(told_.find(prefix.app_settings() + ": "), std::string::npos) << told_;
  EXPECT_TRUE(line_of(out_.str(), "SCR_DEBUG").ends_with("scr.conf:1")) << out_.str();
}

TEST_F(ConfigCommandTest, FitsATerminalButForLongValues) {
  process_.environment["SCR_CACHE_BASE"] = "/" + std::string(100, 'x');
  ASSERT_EQ(run(), 0);
  std::istringstream lines(out_.str());
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 80 || line.find("xxx") != std::string::npos ||
                line.find(folder_.path()) != std::string::npos)
        << line;
}

TEST_F(ConfigCommandTest, PrintsJson) {
  command_.json = true;
  process_.environment["SCR_CLUSTER_NAME"] = "\xff";
  ASSERT_EQ(run(), 0);
  const auto all = nlohmann::json::parse(out_.str());
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
  EXPECT_NE(line_of(out_.str(), "SCR_SET_FAILURES").find("/run/.scrconf:1"), std::string::npos);
}

TEST_F(ConfigCommandTest, GroupsAreShownToo) {
  std::ofstream(folder_ / "scr.conf") << "GROUPS=a RACK=r1 SWITCH=s1\nGROUPS=b RACK=r2 SWITCH=s1\n";
  ASSERT_EQ(run(), 0) << told_;
  const std::string line = line_of(out_.str(), "GROUPS=b RACK");
  EXPECT_NE(line.find("r2"), std::string::npos) << out_.str();
  EXPECT_TRUE(line.ends_with("/scr.conf:2")) << out_.str();
  EXPECT_NE(line_of(out_.str(), "GROUPS=a SWITCH"), "");
}

TEST_F(ConfigCommandTest, ShowsOnlyWhatWasChanged) {
  command_.only_changed = true;
  ASSERT_EQ(run(), 0);
  EXPECT_NE(line_of(out_.str(), "SCR_DEBUG"), "");
  EXPECT_NE(line_of(out_.str(), "SCR_SET_SIZE"), "");
  EXPECT_NE(line_of(out_.str(), "SCR_FLUSH_TYPE"), "") << "accepted without effect";
  EXPECT_EQ(line_of(out_.str(), "SCR_ENABLE"), "");
  EXPECT_EQ(out_.str().find("  default\n"), std::string::npos) << out_.str();
}

TEST_F(ConfigCommandTest, ShowsOneSettingOrAllOfALine) {
  command_.names = {"SCR_DEBUG"};
  ASSERT_EQ(run(), 0);
  EXPECT_TRUE(out_.str().starts_with("SCR_DEBUG ")) << out_.str();
  EXPECT_EQ(out_.str().find("SCR_SET_SIZE"), std::string::npos);
  EXPECT_EQ(out_.str().find("without effect"), std::string::npos) << "a heading of nothing";
  out_.str("");
  command_ = {};
  command_.json = true;
  command_.names = {"CKPT=0", "SCR_ENABLE"};
  ASSERT_EQ(run(), 0);
  const auto shown = nlohmann::json::parse(out_.str()).at("settings");
  ASSERT_GT(shown.size(), 3U);
  for (const auto& one : shown)
    EXPECT_TRUE(one.at("key") == "SCR_ENABLE" ||
                one.at("key").get<std::string>().starts_with("CKPT=0 "))
        << one;
}

TEST_F(ConfigCommandTest, ANameThatNoSettingHasIsWrongUsage) {
  command_.names = {"SCR_ENABLE", "SCR_DEBUGG"};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(out_.str(), "");
  EXPECT_NE(told_.find("there is no setting SCR_DEBUGG; did you mean SCR_DEBUG?"),
            std::string::npos)
      << told_;
  told_.clear();
  command_.names = {"CKPT"};
  EXPECT_EQ(run(), 2) << "the beginning of a key is no key";
}

TEST_F(ConfigCommandTest, AWrongSettingFails) {
  process_.environment["SCR_SET_SIZE"] = "one";
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(out_.str(), "");
  EXPECT_NE(told_.find("SCR_SET_SIZE=one (environment) is not allowed"), std::string::npos)
      << told_;
}

}  // namespace
}  // namespace cairn
