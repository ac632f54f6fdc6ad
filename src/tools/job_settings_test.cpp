#include "tools/job_settings.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cache/prefix_id_file.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/last_run_file.hpp"

namespace cairn {
namespace {

class FindJob : public ::testing::Test {
 protected:
  FindJob() {
    run_.job_id = "77";
    run_.user = "ada";
    run_.nodes = {{"n0", "host", 2}};
    run_.cache_base = "/run/%n";
    run_.control_base = "/control";
    run_.stores = {{"/run/%n", false}, {"/further", true}};
    process_.host_name = "here";
    process_.working_folder = folder_.path();
  }
  FoundJob find() {
    warnings_.clear();
    const Log log([this](Severity, const std::string& text) { warnings_ += text + "\n"; });
    const auto job = find_job({folder_.path(), "/no/system/file"}, *files_, process_, log);
    EXPECT_TRUE(job) << job.error().text;
    return job ? *job : FoundJob{};
  }
  void keep() { ASSERT_TRUE(keep_last_run(*files_, *clock_, PrefixFolder{folder_.path()}, run_)); }
  /// The run saw the prefix directory at this path.
  void keep_of(const std::string& prefix) {
    run_.prefix = prefix;
    keep();
  }
  /// A second prefix directory, with that id.
  std::string other(PrefixId id) {
    const std::string path = folder_ / "other";
    EXPECT_TRUE(files_->make_folder(path, 0777));
    EXPECT_TRUE(replace_prefix_id(*files_, *clock_, path, id));
    return path;
  }
  static std::vector<std::string> stores(const FoundJob& job) {
    std::vector<std::string> paths;
    for (const StoreSettings& store : job.settings.stores) paths.push_back(store.path);
    return paths;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  LastRunRecord run_;
  ProcessFacts process_;
  std::string warnings_;
};

TEST_F(FindJob, WithoutARecordIsWhatARunWouldSee) {
  const FoundJob job = find();
  EXPECT_EQ(job.settings.job_id, unnamed_job);
  EXPECT_TRUE(job.is_id_default);
  EXPECT_FALSE(job.last_run);
}

TEST_F(FindJob, IsTheJobOfTheLastRunInItsPlaces) {
  keep();
  const FoundJob job = find();
  EXPECT_EQ(job.settings.job_id, "77");
  EXPECT_EQ(job.settings.user, "ada");
  EXPECT_EQ(job.settings.control_base, "/control");
  EXPECT_EQ(stores(job), (std::vector<std::string>{"/run/%n", "/further"}));
  EXPECT_TRUE(job.settings.stores[1].shared());
  EXPECT_FALSE(job.is_id_default);
  EXPECT_TRUE(job.was_on("n0"));
  EXPECT_FALSE(job.was_on("here"));
}

TEST_F(FindJob, WhatTheEnvironmentSetsCountsMore) {
  keep();
  process_.environment = {{"SCR_CACHE_BASE", "/given"}, {"SCR_USER_NAME", "eve"}};
  const FoundJob job = find();
  EXPECT_EQ(job.settings.job_id, "77");
  EXPECT_EQ(job.settings.user, "eve");
  EXPECT_EQ(stores(job), (std::vector<std::string>{"/given"}));
}

TEST_F(FindJob, TheRecordCountsMoreThanFilesAndTheAllocation) {
  keep();
  std::ofstream(folder_ / ".scrconf") << "SCR_CACHE_BASE=/next\nSCR_JOB_ID=next\n";
  FoundJob job = find();
  EXPECT_EQ(job.settings.job_id, "77");
  EXPECT_EQ(stores(job).front(), "/run/%n");
  EXPECT_EQ(job.other_job, "next");
  std::ofstream(folder_ / ".scrconf") << "";
  process_.environment = {{"SLURM_JOB_ID", "123"}};
  job = find();
  EXPECT_EQ(job.settings.job_id, "77");
  EXPECT_EQ(job.other_job, "123");
}

TEST_F(FindJob, TheRecordOfAnotherJobCountsForNothing) {
  keep();
  process_.environment = {{"SCR_JOB_ID", "78"}, {"USER", "me"}};
  const FoundJob job = find();
  EXPECT_EQ(job.settings.job_id, "78");
  EXPECT_EQ(job.settings.user, "me");
  EXPECT_FALSE(job.last_run);
  EXPECT_NE(stores(job).front(), "/run/%n");
  EXPECT_EQ(job.job_of_last_run, "77");
  EXPECT_NE(job.text().find("77"), std::string::npos) << job.text();
}

TEST_F(FindJob, TheRecordInACopyOfThePrefixDirectoryIsIgnored) {
  const std::string original = other(PrefixId{5});
  ASSERT_TRUE(replace_prefix_id(*files_, *clock_, folder_.path(), PrefixId{5}));
  keep_of(original);
  const FoundJob job = find();
  EXPECT_FALSE(job.last_run);
  EXPECT_NE(job.trouble.find(original), std::string::npos) << job.trouble;
}

TEST_F(FindJob, TheRecordMovesWithThePrefixDirectory) {
  keep_of(folder_ / "gone");
  EXPECT_TRUE(find().last_run);
}

TEST_F(FindJob, ADirectoryThatWasCreatedWhereThisOneWasIsNoOriginal) {
  ASSERT_TRUE(replace_prefix_id(*files_, *clock_, folder_.path(), PrefixId{5}));
  keep_of(other(PrefixId{6}));
  EXPECT_TRUE(find().last_run);
}

TEST_F(FindJob, ALinkToThePrefixDirectoryIsNoOriginal) {
  ASSERT_TRUE(replace_prefix_id(*files_, *clock_, folder_.path(), PrefixId{5}));
  TemporaryFolder elsewhere;
  std::filesystem::create_symlink(folder_.path(), elsewhere / "link");
  keep_of(elsewhere / "link");
  EXPECT_TRUE(find().last_run);
}

TEST_F(FindJob, ADamagedRecordIsNamedAndCountsForNothing) {
  keep();
  const std::string path = PrefixFolder{folder_.path()}.job().last_run();
  std::ofstream(path) << "no record";
  const FoundJob job = find();
  EXPECT_NE(job.trouble.find(path), std::string::npos) << job.trouble;
  EXPECT_NE(warnings_.find(path), std::string::npos) << warnings_;
  EXPECT_EQ(job.settings.job_id, unnamed_job);
  EXPECT_TRUE(job.is_id_default);
}

}  // namespace
}  // namespace cairn
