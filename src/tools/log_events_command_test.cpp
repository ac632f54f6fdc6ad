#include "tools/log_events_command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class LogEventsCommandTest : public ::testing::Test {
 protected:
  int run(const std::string& lines, std::map<std::string, std::string> environment) {
    environment.insert({{"USER", "ann"}, {"SCR_JOB_ID", "7"}, {"SCR_LOG_SYSLOG_ENABLE", "0"}});
    const ProcessFacts process = {environment, "node1", prefix_.path(), 1};
    const Log log([this](Severity, const std::string& text) { told_ += text + "\n"; });
    std::istringstream in(lines);
    return run_log_events_command({prefix_.path(), ""}, *files_, *clock_, process, in, log);
  }

  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream in(prefix_.path() + "/.cairn/" + name);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  const std::string run_of_a_job_ =
      "{\"event\":\"RUN_START\",\"note\":\"run 1\"}\n"
      "{\"event\":\"RUN_END\",\"note\":\"run 1: exit \\\"7\\\"\",\"seconds\":2.5}\n";
  TemporaryFolder prefix_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  std::string told_;
};

TEST_F(LogEventsCommandTest, TheLogsThatAreAskedForGetALineEach) {
  ASSERT_EQ(run(run_of_a_job_, {{"CAIRN_LOG_JSON", "1"}, {"SCR_LOG_ENABLE", "1"}}), 0) << told_;
  ASSERT_EQ(lines("log.json").size(), 2U);
  const auto end = nlohmann::json::parse(lines("log.json")[1]);
  EXPECT_EQ(end["event"], "RUN_END");
  EXPECT_EQ(end["note"], "run 1: exit \"7\"");
  EXPECT_EQ(end["seconds"], 2.5);
  EXPECT_EQ(end["host"], "node1");
  EXPECT_EQ(end["job"], "7");
  EXPECT_FALSE(end.contains("dataset"));
  ASSERT_EQ(lines("log").size(), 2U);
  EXPECT_NE(lines("log")[0].find(": host=node1, jobid=7, event=RUN_START, note=\"run 1\""),
            std::string::npos);
}

TEST_F(LogEventsCommandTest, ARunWhoseJobControlIsKilledHasItsEnd) {
  const std::string second =
      "{\"event\":\"RUN_START\",\"note\":\"run 2 on 2 nodes: a,b (exit 7)\"}\n";
  ASSERT_EQ(run(run_of_a_job_ + second, {{"CAIRN_LOG_JSON", "1"}}), 0) << told_;
  ASSERT_EQ(lines("log.json").size(), 4U);
  const auto end = nlohmann::json::parse(lines("log.json")[3]);
  EXPECT_EQ(end["event"], "RUN_END");
  EXPECT_EQ(end["note"], "run 2: cairn run was killed");
  EXPECT_GE(end["seconds"], 0.0);
}

TEST_F(LogEventsCommandTest, WithoutARequestForALogThereIsNone) {
  EXPECT_EQ(run(run_of_a_job_, {}), 0);
  EXPECT_EQ(run(run_of_a_job_, {{"CAIRN_LOG_JSON", "1"}, {"SCR_ENABLE", "0"}}), 0);
  EXPECT_TRUE(std::filesystem::is_empty(prefix_.path()));
}

TEST_F(LogEventsCommandTest, ALogThatCannotBeWrittenIsAWarning) {
  std::filesystem::create_directories(prefix_.path() + "/.cairn/log.json");
  EXPECT_EQ(run(run_of_a_job_, {{"CAIRN_LOG_JSON", "1"}}), 0);
  EXPECT_NE(told_.find(prefix_.path() + "/.cairn/log.json"), std::string::npos) << told_;
}

TEST_F(LogEventsCommandTest, WhatIsNoEventIsRefused) {
  EXPECT_EQ(run("{\"event\":\"RUN_START\"}\nhalf\n", {{"CAIRN_LOG_JSON", "1"}}), 1);
  EXPECT_NE(told_.find("not half"), std::string::npos) << told_;
  ASSERT_EQ(lines("log.json").size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(lines("log.json")[1])["event"], "RUN_END");
}

}  // namespace
}  // namespace cairn
