// What lies where the job's own files and folders should be: other kinds of files, links, nothing.
#include <map>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

/// A folder with something in it takes the place of whatever is there.
void put_folder(const std::string& path) {
  fs::remove_all(path);
  fs::create_directories(path + "/x");
}

/// A run that ends within dataset `number`.
void begin(JobBed& bed, int number) {
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", number), flag_checkpoint));
    ASSERT_TRUE(rank.write_files(number));
  });
}

// --- folders where files should be ---

TEST(SessionRemains, AFolderForARecordOfWhatIsNotCommittedIsRemovedWithTheRest) {
  for (const char* name : {"record", "record.new"}) {
    JobBed bed;
    bed.write(four_nodes(), {1});
    begin(bed, 2);
    const std::string part = bed.parts("n0", 2).at(1);
    put_folder(part + "/" + name);
    EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 1);
    EXPECT_FALSE(fs::exists(folder_of(part))) << name;
  }
}

TEST(SessionRemains, AFolderForARecordGoesWithWhatCannotBeRestored) {
  for (const bool purge : {false, true}) {
    JobBed bed;
    bed.settings.checkpoints[0].scheme = Scheme::single;
    bed.write(four_nodes(), {1});
    const std::string part = bed.parts("n0", 1).at(1);
    put_folder(part + "/record");
    bed.settings.cache_purge = purge;
    EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(2); }), 0);
    EXPECT_FALSE(fs::exists(folder_of(part))) << "purged: " << purge;
    bed.settings.cache_purge = false;
    EXPECT_EQ(bed.restart(four_nodes()), 2);
  }
}

TEST(SessionRemains, AFolderForASpareIsNone) {
  JobBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    const std::string spare = bed.job_folder("n0") + "/spare.1";
    for (const int dataset : {1, 2}) {
      if (rank.number() == 1) put_folder(spare);
      rank.expect_written(dataset);
    }
  });
  const std::string spare = bed.job_folder("n0") + "/spare.1";
  put_folder(spare);
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_FALSE(fs::exists(spare));
}

TEST(SessionRemains, WhatCannotBeRemovedIsReportedAndEndsNoRun) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  begin(bed, 2);
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "remove_file" || operation.path.find("/rank.") == std::string::npos)
        return {};
      return fail(Code::io, "injected: cannot remove {}", operation.path);
    };
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    rank.hook = nullptr;
    EXPECT_EQ(rank.restart(), 1);
  }));
  EXPECT_TRUE(bed.logs("injected: cannot remove")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.parts("n0", 2).empty()) << "the next run has tried again";
}

// --- files and links where folders should be ---

/// The dataset's folder, that of rank 3, and those of its files.
std::vector<std::string> folders_of_rank_3(const JobBed& bed) {
  const std::string part = bed.parts("n1", 1).at(1);
  return {folder_of(part), part, part + "/files", part + "/files/ckpt.1"};
}

using Replacement = std::function<void(const std::string& path, const std::string& elsewhere)>;

/// What was there is elsewhere now, with bytes that are not the checkpoint's.
const std::map<std::string, Replacement> replacements = {
    {"a file", [](const std::string& path, const std::string&) { std::ofstream(path) << "x"; }},
    {"a dangling link",
     [](const std::string& path, const std::string&) { fs::create_symlink("/nowhere", path); }},
    {"a link to a folder", [](const std::string& path, const std::string& elsewhere) {
       fs::create_directory_symlink(elsewhere, path);
     }}};

TEST(SessionRemains, WhatIsInThePlaceOfAFolderIsReplacedAndTheLossRebuilt) {
  for (const auto& [kind, put] : replacements)
    for (std::size_t which = 0; which < 4; ++which) {
      JobBed bed;
      bed.write(four_nodes(), {1});
      const std::string path = folders_of_rank_3(bed).at(which);
      const TemporaryFolder elsewhere;
      std::ofstream(elsewhere / "record") << "not yours";
      fs::remove_all(path);
      put(path, elsewhere.path());
      EXPECT_EQ(bed.restart(four_nodes()), 1) << kind << " for " << path << bed.log_text();
      EXPECT_TRUE(fs::is_directory(fs::symlink_status(path))) << kind << " for " << path;
      EXPECT_EQ(read_all(elsewhere / "record"), "not yours");
      EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere.path()), {}), 1) << "nothing more";
      bed.lose("n2");
      EXPECT_EQ(bed.restart(four_nodes()), 1) << "as well protected as before";
    }
}

TEST(SessionRemains, NothingIsRemovedBehindALinkWhenARebuildFails) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  const std::string part = bed.parts("n1", 1).at(1);
  const TemporaryFolder elsewhere(memory_base());
  fs::rename(part, elsewhere / "part");
  fs::create_directory_symlink(elsewhere / "part", part);
  bed.lose("n3");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(fs::is_regular_file(elsewhere / "part/record"));
  EXPECT_TRUE(fs::is_regular_file(elsewhere / "part/files/ckpt.1/rank 3.0"));
}

// --- the folder of the job itself ---

TEST(SessionRemains, AJobFolderThatIsRemovedDuringTheRunIsMadeAndLockedAgain) {
  JobBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 2) bed.lose("n1");
    rank.comm.barrier();
    rank.expect_written(2);
    for (const std::string node : {"n0", "n1"}) {
      const auto lock = rank.posix->lock(bed.job_folder(node) + "/lock");
      ASSERT_FALSE(lock) << "another run could begin beside this one on " << node;
      EXPECT_EQ(lock.error().code, Code::busy);
    }
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->finalize());
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rank.posix->lock(bed.job_folder("n1") + "/lock")) << "free at the end";
    }
  });
  EXPECT_TRUE(bed.logs("on n1): the directory of the job was removed")) << bed.log_text();
  EXPECT_EQ(make_posix_files()->info(bed.job_folder("n1"))->mode, 0700U);
  bed.lose("n0");
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "as well protected as ever";
}

TEST(SessionRemains, NothingIsWrittenWhereAJobFolderWasReplaced) {
  JobBed bed;
  const TemporaryFolder elsewhere;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 2) {
      bed.lose("n1");
      fs::create_directories(folder_of(bed.job_folder("n1")));
      fs::create_symlink(elsewhere / "gone", bed.job_folder("n1"));
    }
    rank.comm.barrier();
    const Status started = rank.session->start_checkpoint();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::untrusted) << started.error().text;
    EXPECT_NE(started.error().text.find(bed.job_folder("n1")), std::string::npos);
    EXPECT_NE(started.error().text.find("on n1)"), std::string::npos) << started.error().text;
    rank.comm.barrier();
    if (rank.number() == 2) fs::remove(bed.job_folder("n1"));
    rank.comm.barrier();
    rank.expect_written(2);
  });
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionRemains, OneFolderUnderTwoNamesIsLockedOnce) {
  JobBed bed;
  const TemporaryFolder links;
  fs::create_directory_symlink(bed.node(""), links / "nodes");
  bed.settings.stores[0].path = links / "nodes/%n";
  bed.settings.checkpoints[0].store = bed.settings.stores[0].path;
  bed.write(four_nodes(), {1});
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

// --- what cannot be restored ---

TEST(SessionRemains, WhatCannotBeRestoredIsReportedWithWhatToDo) {
  const std::string what_to_do =
      "; start again on the nodes that have its parts; it is deleted when the "
      "next checkpoint is complete";
  const std::map<Scheme, std::string> reasons = {
      {Scheme::single,
       "no intact record of rank 2 is left on any node: it was not protected against the loss of "
       "its node"},
      {Scheme::xor_,
       "data of rank 2 (written on n1), rank 4 (written on n2) in the set of ranks 0,2,4,6 are "
       "missing or damaged, and XOR can rebuild only 1 of them"}};
  for (const auto& [scheme, reason] : reasons) {
    JobBed bed;
    bed.settings.checkpoints[0].scheme = scheme;
    bed.write(four_nodes(), {1});
    bed.save("before");
    for (const std::string node : {"n1", "n2"}) bed.lose(node);
    EXPECT_EQ(bed.restart(four_nodes()), 0);
    EXPECT_TRUE(bed.logs(reason + what_to_do)) << bed.log_text();
    bed.bring_back("before");
    EXPECT_EQ(bed.restart(four_nodes()), 1) << "with the nodes it was written on";
  }
}

TEST(SessionRemains, OfARankWithoutARecordTheNodeOfItsFilesIsNamed) {
  JobBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.write(four_nodes(), {1});
  fs::remove(bed.parts("n1", 1).at(0) + "/record");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(bed.logs("no intact record of rank 2 is left on any node (its files are in "))
      << bed.log_text();
  EXPECT_TRUE(bed.logs("/rank.2 on n1): it was not protected")) << bed.log_text();
  EXPECT_EQ(bed.restart({"n0", "n0", "n3", "n3", "n2", "n2", "n1", "n1"}), 0);
  EXPECT_TRUE(bed.logs("(its files are on the node of rank 6)")) << bed.log_text();
}

TEST(SessionRemains, AnErrorOfTheFilesThatEndsARestoreHasItsRemedy) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.lose("n1");
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "resize") return {};
      return tl::unexpected(errno_error(ENOSPC, "resize", operation.path));
    };
    EXPECT_TRUE(rank.init());
  }));
  EXPECT_TRUE(bed.logs("(rank 2 on n1); free space there")) << bed.log_text();
  EXPECT_TRUE(bed.logs("deleted when the next checkpoint is complete")) << bed.log_text();
}

}  // namespace
}  // namespace cairn
