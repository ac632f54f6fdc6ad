#include "prefix/event_log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "support/test_clocks.hpp"

namespace cairn {
namespace {

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest() {
    settings_.prefix = prefix_.path();
    settings_.node_name = "n0";
    settings_.job_id = "7";
  }

  EventLog open(Files& files, EventLog::Part part = EventLog::Part::writer) {
    return {files,     *clock_,
            settings_, Log([this](Severity, const std::string& text) {
              told_.push_back(text); }),
            part,      [this](const std::string& line) { syslog_.push_back(line); }};
  }
  /// What comes after the time in each line.
  std::vector<std::string> lines(const char* name) const {
    std::ifstream in(prefix_.path() + "/.cairn/" + name);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);)
      all.push_back(line.substr(std::min(line.size(), line.find("host"))));
    return all;
  }

  using Lines = std::vector<std::string>;

  TemporaryFolder prefix_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  Settings settings_;
  Lines told_;
  Lines syslog_;
};

TEST_F(EventLogTest, IsOffUnlessAskedFor) {
  EventLog log = open(*files_);
  EXPECT_FALSE(log.is_on());
  log.happened("START");
  EXPECT_EQ(files_->info(prefix_.path() + "/.cairn").error().code, Code::not_found);
}

TEST_F(EventLogTest, ThatTheProgramCallsIsLoggedWhereNothingElseWas) {
  settings_.log = settings_.log_json = true;
  auto stepped = std::make_unique<SleepersClock>();
  SleepersClock& clock = *stepped;
  clock_ = std::move(stepped);
  EventLog log = open(*files_);
  const auto call_after = [&](std::int64_t seconds) {
    clock.now += seconds * 1'000'000;
    log.called();
    return lines("log.json").size();
  };
  log.happened("START");
  EXPECT_EQ(call_after(4), 1U);
  EXPECT_EQ(call_after(1), 2U);
  EXPECT_EQ(call_after(4), 2U);
  log.happened("HALT");
  EXPECT_EQ(call_after(4), 3U) << "the other line is a sign of life too";
  EXPECT_EQ(call_after(1), 4U);
  EXPECT_NE(lines("log.json").back().find("\"event\":\"CALL\""), std::string::npos);
  EXPECT_EQ(lines("log").size(), 2U) << "people have no use for it";
  EventLog silent = open(*files_, EventLog::Part::silent);
  clock.now += 60'000'000;
  silent.called();
  EXPECT_EQ(lines("log.json").size(), 4U);
}

TEST_F(EventLogTest, LinesOfAllRunsFollowEachOther) {
  settings_.log = true;
  for (const char* name : {"START", "CHECKPOINT_END"}) open(*files_).happened(name);
  EXPECT_EQ(lines("log"),
            Lines({"host=n0, jobid=7, event=START", "host=n0, jobid=7, event=CHECKPOINT_END"}));
  EXPECT_EQ(syslog_.size(), 2U);
  EXPECT_NE(syslog_[1].find("event=CHECKPOINT_END"), std::string::npos);
  EXPECT_TRUE(lines("log.json").empty());
}

TEST_F(EventLogTest, OneProcessWrites) {
  settings_.log = true;
  EventLog log = open(*files_, EventLog::Part::silent);
  EXPECT_TRUE(log.is_on());
  log.happened("START");
  EXPECT_TRUE(lines("log").empty());
  EXPECT_TRUE(syslog_.empty());
}

TEST_F(EventLogTest, JsonAlone) {
  settings_.log_json = true;
  open(*files_).happened("START");
  EXPECT_TRUE(lines("log").empty());
  EXPECT_EQ(lines("log.json"), Lines({"host\":\"n0\",\"job\":\"7\",\"event\":\"START\"}"}));
  EXPECT_TRUE(syslog_.empty());
}

TEST_F(EventLogTest, ALossSaysWhetherItIsOfAnOutput) {
  settings_.log_json = true;
  DatasetInfo dataset;
  dataset.number = 3;
  dataset.name = "out.3";
  for (const std::uint32_t flags : {1U, 3U}) {
    dataset.flags = flags;
    open(*files_).lost(dataset, "a node is gone");
  }
  ASSERT_EQ(lines("log.json").size(), 2U);
  EXPECT_EQ(lines("log.json")[0].find("\"output\""), std::string::npos);
  for (const char* field : {"\"event\":\"LOST\"", "\"note\":\"a node is gone\"", "\"dataset\":3",
                            "\"name\":\"out.3\"", "\"output\":true"})
    EXPECT_NE(lines("log.json")[1].find(field), std::string::npos) << lines("log.json")[1];
}

TEST_F(EventLogTest, TroubleIsReportedOnceWithThePathAndTheRest) {
  settings_.log = true;
  settings_.log_syslog = false;
  bool full = true;
  const auto files = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (full && operation.name == "append") return fail(Code::no_space, "the disk is full");
    return {};
  });
  EventLog log = open(*files);
  log.happened("START");
  log.happened("HALT");
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_[0].find(prefix_.path() + "/.cairn/log"), std::string::npos);
  EXPECT_NE(told_[0].find("the disk is full"), std::string::npos);
  full = false;
  log.happened("RESTART_SUCCESS");
  EXPECT_EQ(lines("log"), Lines({"host=n0, jobid=7, event=RESTART_SUCCESS"}));
}

TEST_F(EventLogTest, ALinkInItsPlaceIsNotFollowed) {
  settings_.log = true;
  TemporaryFolder elsewhere;
  ASSERT_TRUE(files_->make_folder(prefix_.path() + "/.cairn", 0755));
  std::filesystem::create_symlink(elsewhere.path() + "/log", prefix_.path() + "/.cairn/log");
  open(*files_).happened("START");
  EXPECT_EQ(told_.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path() + "/log"));
}

TEST_F(EventLogTest, TheGroupMayWriteAsTheUmaskSays) {
  namespace fs = std::filesystem;
  settings_.log = settings_.log_json = true;
  settings_.log_syslog = false;
  const ::mode_t before = ::umask(002);
  open(*files_).happened("START");
  ::umask(before);
  const auto mode_of = [&](const std::string& name) {
    return static_cast<unsigned>(fs::status(prefix_ / name).permissions());
  };
  EXPECT_EQ(mode_of(".cairn"), 0775U);
  for (const char* name : {".cairn/log", ".cairn/log.json"}) EXPECT_EQ(mode_of(name), 0664U);
}

}  // namespace
}  // namespace cairn
