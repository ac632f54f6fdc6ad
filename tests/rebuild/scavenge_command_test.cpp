// cairn scavenge-node as a command: what it prints where not all can be read, and how far it has
// come.
#include "tools/scavenge_command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/hasty_clock.hpp"
#include "prefix/last_run_file.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Each look at it takes a second.
class SlowClock : public HastyClock {
 public:
  std::int64_t steady_us() override {
    sleep_us(1'000'000);
    return HastyClock::steady_us();
  }
};

class ScavengeNodeCommand : public testing::Test {
 protected:
  ScavengeNodeCommand() {
    bed_.settings.flush_interval = 0;
    bed_.settings.stores[0].count = 2;
    bed_.write({"n0", "n1", "n2", "n3"}, {1, 2});
  }

  /// On n1; what it prints. `broken`: no process can read this file or list this folder.
  std::string run(const ScavengeCommand& command, int code, const std::string& broken = "-") {
    ProcessFacts process = bed_.process_on("n1");
    process.environment["SCR_CONF_FILE"] = conf_;
    process.environment["SCR_JOB_ID"] = job_;
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      const bool reads =
          operation.name == "list" || operation.name == "read" || operation.name == "view";
      if (operation.path != broken || !reads) return {};
      return fail(Code::io, "cannot {} {}: Input/output error", operation.name, operation.path);
    });
    std::ostringstream out;
    EXPECT_EQ(run_scavenge_command(command, *files, clock_, process, out, bed_.log()), code)
        << bed_.log_text();
    return out.str();
  }

  std::vector<int> listed(int code, const std::string& broken = "-") {
    ScavengeCommand command;
    command.list = command.json = true;
    std::vector<int> numbers;
    const Json reported = Json::parse(run(command, code, broken));
    for (const Json& dataset : reported.at("datasets")) numbers.push_back(dataset.at("number"));
    return numbers;
  }

  std::string dataset_folder(int number) {
    return fs::path(bed_.parts("n1", number).front()).parent_path();
  }

  PrefixJobBed bed_;
  SlowClock clock_;
  std::string conf_;
  std::string job_ = "job";
};

TEST_F(ScavengeNodeCommand, ADatasetThatCannotBeListedCostsNoOther) {
  EXPECT_EQ(listed(0), (std::vector<int>{2, 1}));
  const std::string broken = dataset_folder(2);
  EXPECT_EQ(listed(1, broken), std::vector<int>{1});
  EXPECT_TRUE(bed_.logs(broken)) << bed_.log_text();
  ScavengeCommand copy;
  copy.datasets = {"ckpt.1"};
  copy.json = true;
  const Json reported = Json::parse(run(copy, 1, broken));
  EXPECT_GT(reported.at("bytes"), 0) << "it was copied";
  EXPECT_NE(reported.at("unreadable").dump().find(broken), std::string::npos) << reported;
}

/// A record that is only prepared proves nothing by itself; one that cannot be read may be either.
TEST_F(ScavengeNodeCommand, TheListSaysWhetherADatasetWasCommittedAsFarAsTheNodeKnows) {
  const auto committed = [this] {
    ScavengeCommand list;
    list.list = list.json = true;
    std::map<int, bool> found;
    const Json reported = Json::parse(run(list, 0));
    for (const Json& dataset : reported.at("datasets"))
      found[dataset.at("number")] = dataset.at("committed");
    return found;
  };
  EXPECT_EQ(committed(), (std::map<int, bool>{{1, true}, {2, true}}));
  const std::string part = bed_.parts("n1", 2).front();
  fs::rename(part + "/record", part + "/record.new");
  EXPECT_EQ(committed(), (std::map<int, bool>{{1, true}, {2, false}}));
  std::ofstream(part + "/record") << "damaged";
  EXPECT_EQ(committed(), (std::map<int, bool>{{1, true}, {2, true}}));
  fs::remove(part + "/record");
  fs::remove(part + "/record.new");
  EXPECT_EQ(committed(), (std::map<int, bool>{{1, true}})) << "the program was still writing it";
}

/// By which job control knows that another node may read it.
TEST_F(ScavengeNodeCommand, WhatCannotBeReadOfADatasetIsReportedWithItsUuid) {
  ScavengeCommand copy;
  copy.datasets = {"1"};
  copy.json = true;
  const std::string part = bed_.parts("n1", 1).front();
  fs::resize_file(part + "/record", 0);
  const std::string file = part + "/files/ckpt.1/rank 1.0";
  ASSERT_TRUE(fs::exists(file));
  const Json reported = Json::parse(run(copy, 1, file));
  const std::string uuid = reported.at("datasets").at(0).at("uuid");
  ASSERT_EQ(reported.at("unreadable").size(), 1U) << reported;
  EXPECT_NE(reported.at("unreadable").at(0).dump().find(uuid), std::string::npos) << reported;
}

TEST_F(ScavengeNodeCommand, AStoreThatCannotBeReadCostsNoOther) {
  conf_ = bed_.settings.prefix + "/scr.conf";
  std::ofstream(conf_) << "STORE=" << bed_.node("%n") << "\nSTORE=" << bed_.node("other") << "\n";
  EXPECT_EQ(listed(0), (std::vector<int>{2, 1}));
  const fs::path other = bed_.node("other") + "/tester";
  fs::create_directories(other);
  const std::string broken = other / fs::path(bed_.job_folder("n0")).filename();
  fs::create_directory(broken);
  EXPECT_EQ(listed(1, broken), (std::vector<int>{2, 1}));
  EXPECT_TRUE(bed_.logs(broken)) << bed_.log_text();
}

TEST_F(ScavengeNodeCommand, AnEntryThatIsNotADirectoryOfThisUserCostsNothing) {
  const std::string entry = bed_.node("n1") + "/tester/cairn.job.fedcba9876543210";
  fs::create_directory_symlink(bed_.node("n0"), entry);
  EXPECT_EQ(listed(0), (std::vector<int>{2, 1}));
  EXPECT_TRUE(bed_.logs(entry)) << bed_.log_text();
}

/// There would be nothing to be saved, if they were no user's.
TEST_F(ScavengeNodeCommand, FailsWhereCachesOfAnotherIdAreLeft) {
  for (const bool has_new_id : {false, true}) {
    fs::remove_all(bed_.settings.prefix + "/.cairn");
    const auto files = make_posix_files();
    if (has_new_id) {
      ASSERT_TRUE(replace_prefix_id(*files, clock_, bed_.settings.prefix, PrefixId{7}));
    }
    EXPECT_EQ(listed(1), std::vector<int>{});
    EXPECT_TRUE(bed_.logs("cairn index id ")) << bed_.log_text();
    EXPECT_TRUE(bed_.logs(bed_.job_folder("n1"))) << bed_.log_text();
    run({}, 1);
  }
}

/// It may have been given another prefix directory than that of the job.
TEST_F(ScavengeNodeCommand, FailsWhereItHoldsNothingAndNothingSaysWhichJobRan) {
  const std::string another = bed_.settings.prefix + "/another";
  fs::create_directory(another);
  job_ = "";
  for (const bool lists : {false, true}) {
    ScavengeCommand command;
    command.source.prefix = another;
    command.list = lists;
    run(command, 1);
  }
  EXPECT_TRUE(bed_.logs(another)) << bed_.log_text();
  job_ = "known";
  ScavengeCommand command;
  command.source.prefix = another;
  run(command, 0);
}

/// A list answers the question; who saves means the job that ran.
TEST_F(ScavengeNodeCommand, FailsWhereItHoldsNothingOfTheJobThatIsNamedAndAnotherRan) {
  LastRunRecord last;
  last.job_id = "job";
  last.user = "tester";
  last.prefix = bed_.settings.prefix;
  last.started_us = 1;
  const auto files = make_posix_files();
  ASSERT_TRUE(keep_last_run(*files, clock_, PrefixFolder{bed_.settings.prefix}, last));
  job_ = "other";
  run({}, 1);
  EXPECT_TRUE(bed_.logs("was of job job") && bed_.logs("SCR_JOB_ID=job"));
  EXPECT_EQ(listed(0), std::vector<int>{});
}

TEST_F(ScavengeNodeCommand, ItTellsHowManyBytesAreDone) {
  ScavengeCommand list;
  list.list = list.json = true;
  const std::uint64_t all = Json::parse(run(list, 0)).at("datasets").at(0).at("bytes");
  ScavengeCommand copy;
  copy.datasets = {"ckpt.2"};
  copy.progress = true;
  std::istringstream out(run(copy, 0));
  std::vector<std::uint64_t> done;
  for (std::string line; std::getline(out, line);)
    if (line.starts_with(". ")) done.push_back(std::stoull(line.substr(2)));
  ASSERT_GT(done.size(), 2U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_LT(done.front(), all / 2) << "not what the files have room for";
  EXPECT_EQ(done.back(), all) << "with the redundancy";
}

}  // namespace
}  // namespace cairn
