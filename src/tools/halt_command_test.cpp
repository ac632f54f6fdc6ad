#include "tools/halt_command.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/halt_file.hpp"
#include "support/command_output.hpp"
#include "support/report_checks.hpp"

namespace cairn {
namespace {

class HaltCommandTest : public ::testing::Test, protected CommandOutput {
 protected:
  HaltCommandTest() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    process_ = {{{"USER", "ann"}}, "node1", folder_.path(), 1};
  }

  int run(const HaltCommand& command) {
    const int code = keep_output_of([&](std::ostream& out, const Log& log) {
      return run_halt_command(command, *files_, *clock_, process_, out, log);
    });
    if (code == 0 && !command.json) expect_json_to_say_the_same(command);
    return code;
  }
  void expect_json_to_say_the_same(const HaltCommand& command) {
    HaltCommand list;
    list.prefixes = command.prefixes;
    list.list = list.json = true;
    std::ostringstream json;
    EXPECT_EQ(run_halt_command(list, *files_, *clock_, process_, json, Log()), 0);
    expect_same(printed(), nlohmann::json::parse(json.str()));
  }
  HaltFile file(const std::string& prefix) { return {*files_, *clock_, PrefixFolder{prefix}}; }
  HaltRecord record() { return *file(folder_.path()).read(); }
  void leave(const std::function<void(HaltRecord&)>& change) {
    ASSERT_TRUE(file(folder_.path()).update(change));
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  ProcessFacts process_;
};

TEST_F(HaltCommandTest, WithoutOptionsTheJobStopsAfterItsNextCheckpoint) {
  ASSERT_EQ(run({}), 0) << logged();
  EXPECT_EQ(record().reason, "JOB_HALTED");
  EXPECT_FALSE(record().immediate);
  EXPECT_TRUE(prints("no run is recorded")) << printed();
  EXPECT_TRUE(prints("\n  after its next checkpoint (JOB_HALTED)\n")) << printed();
  EXPECT_TRUE(prints("SCR_HALT_EXIT=1")) << "else a program that does not ask continues";
}

TEST_F(HaltCommandTest, ImmediateSaysWhatItMeansAndStaysUntilItIsTakenBack) {
  HaltCommand command;
  command.immediate = true;
  ASSERT_EQ(run(command), 0) << logged();
  EXPECT_TRUE(record().immediate);
  EXPECT_EQ(record().reason, "JOB_HALTED");
  EXPECT_TRUE(prints("without another checkpoint")) << printed();
  ASSERT_EQ(run({}), 0);
  EXPECT_TRUE(record().immediate) << "a lesser wish does not take the greater back";
  HaltCommand unset;
  unset.unset_reason = true;
  ASSERT_EQ(run(unset), 0);
  EXPECT_EQ(record(), HaltRecord{});
  EXPECT_TRUE(prints("nothing stops")) << printed();
  EXPECT_FALSE(prints("SCR_HALT_EXIT")) << printed();
}

TEST_F(HaltCommandTest, AProgramsWishTakesNoUsersPlaceAndIsTakenBackAlone) {
  HaltCommand ask;
  ask.reason = "SIGNAL_RECEIVED";
  HaltCommand take_back = ask;
  take_back.unset_reason = true;
  leave([](HaltRecord& r) { r.reason = halt_reason::finalize_called; });
  ASSERT_EQ(run(ask), 0) << logged();
  EXPECT_EQ(record().reason, "SIGNAL_RECEIVED") << "what a run has left is no wish";
  ASSERT_EQ(run(take_back), 0);
  EXPECT_EQ(record(), HaltRecord{});
  HaltCommand word_of_a_run = take_back;
  word_of_a_run.reason = halt_reason::finalize_called;
  leave([](HaltRecord& r) { r.reason = halt_reason::finalize_called; });
  ASSERT_EQ(run(word_of_a_run), 0);
  EXPECT_EQ(record(), HaltRecord{});
  ASSERT_EQ(run({}), 0);
  for (const HaltCommand& command : {ask, take_back, word_of_a_run}) {
    ASSERT_EQ(run(command), 0);
    EXPECT_EQ(record().reason, "JOB_HALTED") << "the user's stays";
  }
  leave([](HaltRecord& r) { r.reason = "SIGNAL_RECEIVED"; });
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(record().reason, "JOB_HALTED") << "and takes the program's place";
  for (const char* reason : {"", "TIME_LIMIT", "SCR_FINALIZE_CALLED", "a\nb"}) {
    HaltCommand wrong;
    wrong.reason = reason;
    EXPECT_EQ(run(wrong), 2) << reason;
    EXPECT_TRUE(logs("--reason"));
  }
}

TEST_F(HaltCommandTest, ConditionsAreSetShownAndUnset) {
  HaltCommand command;
  command.checkpoints = "3";
  command.before = "2030-01-01T00:00:00";
  command.after = "2029-12-31T12:00:00";
  command.seconds = "600";
  ASSERT_EQ(run(command), 0) << logged();
  EXPECT_EQ(record().checkpoints_left, 3);
  EXPECT_EQ(record().exit_before_s, 1'893'456'000);
  EXPECT_EQ(record().exit_after_s, 1'893'412'800);
  EXPECT_EQ(record().halt_seconds, 600);
  EXPECT_EQ(record().reason, "") << "conditions alone ask for no stop now";
  for (const char* words : {"after 3 more checkpoints", "before 2030-01-01T00:00:00",
                            "2029-12-31T12:00:00", "600 seconds before"})
    EXPECT_TRUE(prints(words)) << words << " in\n" << printed();
  HaltCommand unset;
  unset.unset_checkpoints = unset.unset_before = unset.unset_after = unset.unset_seconds = true;
  ASSERT_EQ(run(unset), 0);
  EXPECT_EQ(record(), HaltRecord{});
}

TEST_F(HaltCommandTest, ListChangesNothingAndRemoveTakesAllBack) {
  HaltCommand list;
  list.list = true;
  ASSERT_EQ(run(list), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  leave([](HaltRecord& r) { r.checkpoints_left = 1; });
  ASSERT_EQ(run(list), 0);
  EXPECT_TRUE(prints("after 1 more checkpoint\n")) << printed();
  HaltCommand remove;
  remove.remove = true;
  ASSERT_EQ(run(remove), 0);
  EXPECT_EQ(record(), HaltRecord{});
}

TEST_F(HaltCommandTest, WhatTheLibraryRecordedOfAnOldConditionGoesWithIt) {
  leave([](HaltRecord& r) {
    r.checkpoints_left = 0;
    r.reason = halt_reason::no_checkpoints_left;
  });
  HaltCommand list;
  list.list = true;
  ASSERT_EQ(run(list), 0);
  EXPECT_TRUE(prints("recorded by its run: NO_CHECKPOINTS_LEFT")) << printed();
  EXPECT_FALSE(prints("next checkpoint")) << printed();
  HaltCommand command;
  command.checkpoints = "4";
  ASSERT_EQ(run(command), 0);
  EXPECT_EQ(record().checkpoints_left, 4);
  EXPECT_EQ(record().reason, "");
  leave([](HaltRecord& r) { r.reason = halt_reason::finalize_called; });
  ASSERT_EQ(run(command), 0);
  EXPECT_EQ(record().reason, "SCR_FINALIZE_CALLED") << "that is no condition";
}

TEST_F(HaltCommandTest, WrongValuesAreNamedAndChangeNothing) {
  using Member = std::optional<std::string> HaltCommand::*;
  const std::vector<std::pair<Member, std::vector<std::string>>> wrong = {
      {&HaltCommand::checkpoints, {"", "-1", "x", "1.5", "3 ", "99999999999999999999"}},
      {&HaltCommand::seconds, {"", "-1", "10m", "2147483648"}},
      {&HaltCommand::before, {"", "tomorrow", "2030-02-30T00:00:00", "2030-01-01"}},
      {&HaltCommand::after, {"18:00", "2030-01-01 00:00:00"}}};
  for (const auto& [member, values] : wrong)
    for (const std::string& value : values) {
      HaltCommand command;
      command.*member = value;
      EXPECT_EQ(run(command), 2) << value;
      EXPECT_TRUE(logs("\"" + value + "\"") && logs("--")) << logged();
      EXPECT_EQ(printed(), "");
    }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(HaltCommandTest, OptionsThatExcludeEachOtherChangeNothing) {
  std::vector<HaltCommand> commands(9);
  commands[0].list = commands[0].remove = true;
  commands[1].list = commands[1].immediate = true;
  commands[2].remove = commands[2].unset_after = true;
  commands[3].checkpoints = "1";
  commands[3].unset_checkpoints = true;
  commands[4].before = "2030-01-01T00:00:00";
  commands[4].unset_before = true;
  commands[5].after = "2030-01-01T00:00:00";
  commands[5].unset_after = true;
  commands[6].seconds = "1";
  commands[6].unset_seconds = true;
  commands[7].immediate = commands[7].unset_reason = true;
  commands[8].list = true;
  commands[8].seconds = "5";
  for (const HaltCommand& command : commands) {
    EXPECT_EQ(run(command), 2);
    EXPECT_TRUE(logs("exclude each other")) << logged();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(HaltCommandTest, SeveralPrefixDirectoriesOneOfThemWrong) {
  std::filesystem::create_directories(folder_ / "a");
  std::filesystem::create_directories(folder_ / "b");
  std::filesystem::create_directory_symlink(folder_ / "a", folder_ / "link");
  HaltCommand command;
  command.prefixes = {"link", "gone", folder_ / "b"};
  EXPECT_EQ(run(command), 1);
  EXPECT_TRUE(logs(folder_ / "gone")) << logged();
  EXPECT_EQ(file(folder_ / "a").read()->reason, "JOB_HALTED");
  EXPECT_EQ(file(folder_ / "b").read()->reason, "JOB_HALTED");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "gone"));
}

TEST_F(HaltCommandTest, WithoutANameThePrefixDirectoryIsThatOfTheSettings) {
  std::filesystem::create_directories(folder_ / "run");
  process_.environment["SCR_PREFIX"] = folder_ / "run";
  ASSERT_EQ(run({}), 0) << logged();
  EXPECT_EQ(file(folder_ / "run").read()->reason, "JOB_HALTED");
  EXPECT_EQ(record().reason, "");
}

TEST_F(HaltCommandTest, AnUnknownSettingIsReported) {
  process_.environment["SCR_PREFX"] = folder_ / "run";
  ASSERT_EQ(run({}), 0);
  EXPECT_TRUE(logs("SCR_PREFX") && logs("SCR_PREFIX")) << logged();
}

TEST_F(HaltCommandTest, ItTellsWhereNoJobHasBeen) {
  ASSERT_EQ(run({}), 0);
  EXPECT_TRUE(logs("no run has left anything in " + folder_.path())) << logged();
  EXPECT_EQ(record().reason, "JOB_HALTED") << "it may be halted before its start";
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(logged(), "");
}

TEST_F(HaltCommandTest, ADamagedFileIsReportedWithItsRemedyWhichWorks) {
  std::filesystem::create_directory(folder_ / ".cairn");
  std::ofstream(folder_ / ".cairn/halt") << "nonsense";
  EXPECT_EQ(run({}), 1);
  EXPECT_TRUE(logs("cairn halt --remove")) << logged();
  HaltCommand remove;
  remove.remove = true;
  EXPECT_EQ(run(remove), 0);
  EXPECT_EQ(run({}), 0);
}

TEST_F(HaltCommandTest, PrintsJson) {
  HaltCommand command;
  command.checkpoints = "2";
  command.after = "2029-12-31T12:00:00";
  command.immediate = true;
  command.json = true;
  ASSERT_EQ(run(command), 0);
  const auto shown = printed_json()["prefixes"][0];
  EXPECT_EQ(shown["prefix"], folder_.path());
  EXPECT_EQ(shown["checkpoints_left"], 2);
  EXPECT_TRUE(shown["exit_before"].is_null() && shown["exit_before_s"].is_null());
  EXPECT_EQ(shown["exit_after"], "2029-12-31T12:00:00");
  EXPECT_EQ(shown["exit_after_s"], 1'893'412'800);
  EXPECT_TRUE(shown["halt_seconds"].is_null());
  EXPECT_EQ(shown["reason"], "JOB_HALTED");
  EXPECT_EQ(shown["immediate"], true);
}

TEST_F(HaltCommandTest, VerboseNamesTheFile) {
  HaltCommand command;
  command.verbose = true;
  ASSERT_EQ(run(command), 0);
  EXPECT_TRUE(prints(folder_ / ".cairn/halt")) << printed();
}

}  // namespace
}  // namespace cairn
