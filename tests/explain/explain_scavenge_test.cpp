// What `cairn explain` says of what a dead job left while it is being saved, and after that went
// wrong; and that a rebuild then does what it said.
#include "dead_job.hpp"
#include "tools/exit_codes.hpp"
#include "tools/publish_command.hpp"
#include "tools/scavenge_command.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

Status no_fault(const FileOperation& /*operation*/) { return {}; }

/// Lets so many writes pass.
FileHook full_after(int writes) {
  return [writes](const FileOperation& operation) mutable -> Status {
    if (operation.name != "write" || writes-- > 0) return {};
    return fail(Code::no_space, "cannot write {}: no space is left", operation.path);
  };
}

class ExplainScavenge : public DeadJob {
 protected:
  /// Of the newest checkpoint nothing is in the prefix directory, of an older one everything.
  void write_job() { bed_.write(four_nodes(), {1, 2, 3}); }

  int scavenge(const std::string& node, const FileHook& hook = no_fault) {
    const auto files = make_hooked_files(*files_, hook);
    ProcessFacts process = process_;
    process.environment["SCR_NODE_NAME"] = node;
    std::ostringstream out;
    return run_scavenge_command({}, *files, *clock_, process, out, bed_.log());
  }
  void scavenge_well(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) ASSERT_EQ(scavenge(node), exit_ok) << bed_.log_text();
  }
  /// The node dies in the middle of it.
  void die_while_scavenging(const std::string& node) {
    EXPECT_THROW(scavenge(node,
                          [writes = 3](const FileOperation& operation) mutable -> Status {
                            if (operation.name == "write" && writes-- == 0) throw Crash();
                            return {};
                          }),
                 Crash);
    bed_.lose(node);
  }

  /// As cairn index list.
  std::string list() {
    std::ostringstream out;
    EXPECT_EQ(run_index_command({}, *files_, *clock_, process_, out, bed_.log()), exit_ok);
    return out.str();
  }

  int rebuild() {
    PublishCommand command;
    command.run_ended = true;
    std::ostringstream out;
    const int code = run_publish_command(command, *files_, *clock_, process_, out, bed_.log());
    rebuilt_ = out.str();
    return code;
  }

  std::string part(const std::string& node, int rank, int dataset = 3) const {
    for (const std::string& path : bed_.parts(node, dataset))
      if (path.ends_with(fmt::format("/rank.{}", rank))) return path;
    ADD_FAILURE() << "nothing of rank " << rank << " on " << node;
    return {};
  }

  /// That it can be made whole, and how; then that this is so, in a new allocation.
  void expect_rebuilt(int dataset = 3) {
    bed_.lose_all_nodes();
    ASSERT_EQ(explain(), 0) << logged();
    const auto saved = said_of(fmt::format("ckpt.{}", dataset), "scavenged");
    EXPECT_EQ(saved.at("to_do"), nlohmann::json({"cairn rebuild --prefix " + prefix()}))
        << printed();
    EXPECT_TRUE(has(saved, "cairn run does so before its first launch")) << printed();
    const std::string first = line_with("would take dataset 2 (ckpt.2) from the prefix directory");
    EXPECT_NE(first.find("cairn run first rebuilds"), std::string::npos) << first;
    ASSERT_EQ(rebuild(), exit_ok) << rebuilt_;
    expect_forecast(dataset);
  }

  /// That it cannot, with these words; then that this is so.
  void expect_lost(const std::vector<std::string>& words) {
    ASSERT_EQ(explain(), 0) << logged();
    const auto saved = said_of("ckpt.3", "scavenged");
    for (const std::string& word : words)
      EXPECT_TRUE(has(saved, word)) << word << " in\n" << printed();
    EXPECT_TRUE(has(saved, "it was scavenged, and it cannot be made whole: ")) << printed();
    EXPECT_TRUE(has(saved, "cairn scavenge --prefix " + prefix() +
                               ", if a node is back, or was not copied completely"))
        << printed();
    EXPECT_EQ(rebuild(), exit_failure) << rebuilt_;
  }

  /// That the part of this rank is in the prefix directory, if it came so far.
  void forget_flushed(int rank) {
    std::vector<fs::path> marks;
    for (const auto& entry : fs::recursive_directory_iterator(prefix() + "/.cairn"))
      if (entry.path().filename() == fmt::format("0.{}", rank)) marks.push_back(entry.path());
    ASSERT_LE(marks.size(), 1U);
    for (const fs::path& mark : marks) fs::remove(mark);
  }

  std::unique_ptr<FileLock> lock_now(const std::string& folder) {
    auto lock = files_->lock(folder + "/lock");
    EXPECT_TRUE(lock) << lock.error().text;
    return lock ? *std::move(lock) : nullptr;
  }

  std::string rebuilt_;
};

TEST_F(ExplainScavenge, WhereThePrefixDirectoryWasFullItTellsWhereCopyingWasCutOff) {
  write_job();
  scavenge_well({"n0", "n3"});
  for (const std::string node : {"n1", "n2"}) {
    EXPECT_EQ(scavenge(node, full_after(3)), exit_failure);
    EXPECT_TRUE(bed_.logs("no space is left")) << bed_.log_text();
  }
  const std::string copies = "; " + prefix() + "/.cairn/scavenged/n1/";
  expect_lost({"rank 3 (written on n1)", "rank 5 (written on n2)", "can rebuild only 1", copies});
  EXPECT_TRUE(said_of("ckpt.3", "cache").at("taken")) << "the nodes are still there";
  scavenge_well({"n1"});  // and of n2 still only a part
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.3", "scavenged"), "can be made whole")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.3", "scavenged"), "/.cairn/scavenged/n2/")) << printed();
  expect_rebuilt();
}

TEST_F(ExplainScavenge, OneNodeThatDiedMeanwhileIsRebuiltOfSeveralAreReported) {
  write_job();
  bed_.save("all");
  scavenge_well({"n0", "n2", "n3"});
  die_while_scavenging("n1");
  expect_rebuilt();
  bed_.bring_back("all");
  scavenge_well({"n0", "n3"});
  die_while_scavenging("n1");
  die_while_scavenging("n2");
  expect_lost({"rank 3 (written on n1)", "rank 5 (written on n2)", "/.cairn/scavenged/n2/"});
  EXPECT_FALSE(said_of("ckpt.3", "cache").at("usable")) << printed();
  expect_forecast(2);
}

TEST_F(ExplainScavenge, WhileANodeIsScavengedThatIsReportedAndASecondOneIsRefused) {
  write_job();
  scavenge_well({"n0", "n2", "n3"});
  bool asked = false;
  ASSERT_EQ(scavenge("n1",
                     [&](const FileOperation& operation) -> Status {
                       if (asked || operation.name != "write") return {};
                       asked = true;
                       EXPECT_EQ(scavenge("n1"), exit_try_again);
                       EXPECT_TRUE(bed_.logs("a command is using the cache")) << bed_.log_text();
                       EXPECT_EQ(explain(), 0);
                       return {};
                     }),
            exit_ok);
  ASSERT_TRUE(asked);
  EXPECT_TRUE(prints("using the cache " + bed_.job_folder("n1"))) << printed();
  EXPECT_TRUE(prints("note: a command is copying to " + prefix() + "/.cairn/scavenged/n1, "))
      << printed();
  ASSERT_EQ(explain(), 0);
  EXPECT_FALSE(prints("a command")) << "it has ended" << printed();
  expect_rebuilt();
}

/// Lets go of a lock as soon as a process waits.
class PatienceRewarded final : public HastyClock {
 public:
  explicit PatienceRewarded(std::unique_ptr<FileLock> lock) : lock_(std::move(lock)) {}
  void sleep_us(std::int64_t us) override {
    lock_.reset();
    HastyClock::sleep_us(us);
  }

 private:
  std::unique_ptr<FileLock> lock_;
};

/// As cairn explain locks a cache, and a folder of what was scavenged, for a moment.
TEST_F(ExplainScavenge, ACommandThatOnlyLooksStopsNoOther) {
  write_job();
  scavenge_well({"n0"});
  const std::vector<std::string> looked_at = {bed_.job_folder("n0"),
                                              prefix() + "/.cairn/scavenged/n0"};
  for (const std::string& folder : looked_at) {
    const auto look = [&] { clock_ = std::make_unique<PatienceRewarded>(lock_now(folder)); };
    look();
    EXPECT_EQ(scavenge("n0"), exit_ok) << folder << ": " << bed_.log_text();
    look();
    EXPECT_EQ(explain(), 0);
    EXPECT_FALSE(prints("a command")) << folder << " is only looked at: " << printed();
  }
  scavenge_well({"n1", "n2", "n3"});
  clock_ = std::make_unique<PatienceRewarded>(lock_now(looked_at.back()));
  EXPECT_EQ(rebuild(), exit_ok) << rebuilt_;
}

TEST_F(ExplainScavenge, WhatAnUnfinishedFlushHasAndWhatWasScavengedAreTakenTogether) {
  bed_.lose_node_that_has_flushed();  // SINGLE: what n3 had is nowhere but in the flush
  scavenge_well({"n1", "n2"});
  EXPECT_EQ(scavenge("n0", full_after(0)), exit_failure);
  bed_.save("all");
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "the copies stay")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "scavenged"), "cannot be made whole")) << printed();
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "the copies stay"))
      << "a run has kept it, as was said: " << printed();
  bed_.bring_back("all");
  forget_flushed(2);  // of n1, which was scavenged, and is lost now
  bed_.lose("n1");
  ASSERT_EQ(explain(), 0);
  const auto split = said_of("ckpt.4", "unfinished flush");
  EXPECT_TRUE(has(split, "the caches together have the rest")) << printed();
  EXPECT_EQ(split.at("to_do"), nlohmann::json({"cairn scavenge --prefix " + prefix(),
                                               "then cairn rebuild --prefix " + prefix()}));
  bed_.bring_back("all");
  scavenge_well({"n0"});
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "the next run finishes it")) << printed();
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"),
                  "parts are there, and the scavenged parts have the rest"))
      << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "scavenged"), "its unfinished flush has the rest"))
      << printed();
  EXPECT_NE(list().find("dataset 4 (ckpt.4) of 8 ranks: saved: "), std::string::npos) << list();
  expect_rebuilt(4);
}

TEST_F(ExplainScavenge, AFlushThatARebuildCouldNotEndIsNotCalledOneThatItCan) {
  bed_.lose_node_that_has_flushed();
  flip_bit(part("n0", 0, 4) + "/files/ckpt.4/rank 0.1");  // what the flush does not have
  scavenge_well({"n0", "n1", "n2"});
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "scavenged"), "its unfinished flush has the rest"))
      << printed();
  EXPECT_EQ(rebuild(), exit_failure) << rebuilt_;
  ASSERT_EQ(explain(), 0);
  for (const char* const where : {"scavenged", "unfinished flush"})
    EXPECT_TRUE(has(said_of("ckpt.4", where), "cannot be made whole: ")) << printed();
  EXPECT_NE(list().find("dataset 4 (ckpt.4) of 8 ranks: incomplete: "), std::string::npos)
      << list();
}

TEST_F(ExplainScavenge, WhileACommandWorksAtItsCachesTheMessageNamesCommandsToo) {
  bed_.lose_node_that_has_flushed();
  const auto lock = lock_now(bed_.job_folder("n0"));
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "running job or command")) << printed();
}

TEST_F(ExplainScavenge, ADamagedListOfWhatWasDeletedIsReported) {
  write_job();
  std::ofstream(prefix() + "/.cairn/deleted") << "no list";
  const std::string list = prefix() + "/.cairn/deleted: ";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("note: " + list)) << printed();
  scavenge_well({"n0"});
  EXPECT_TRUE(bed_.logs(list)) << bed_.log_text();
  expect_forecast(3);
  EXPECT_TRUE(bed_.logs("list of deleted datasets")) << bed_.log_text();
}

TEST_F(ExplainScavenge, ADamagedNameOfTheCurrentOneKeepsNothingFromBeingPublished) {
  write_job();
  flip_bit(prefix() + "/.cairn/current");
  scavenge_well({"n0", "n1", "n2"});
  bed_.lose_all_nodes();
  ASSERT_EQ(rebuild(), exit_ok) << bed_.log_text();
  EXPECT_TRUE(bed_.logs(".cairn/current is damaged: a restart uses the newest"));
  EXPECT_EQ(*read_current(*files_, {prefix()}), "ckpt.3");
  expect_forecast(3);
}

/// A job that dies in the middle of a Complete: all have prepared, none has committed.
TEST_F(ExplainScavenge, OneThatWasNeverCompleteIsReportedSoByExplainAndRebuild) {
  write_job();
  for (const std::string node : {"n0", "n1", "n2", "n3"})
    for (int rank = 0; rank < 8; ++rank)
      if (rank / 2 == node[1] - '0')
        fs::rename(part(node, rank) + "/record", part(node, rank) + "/record.new");
  scavenge_well({"n0", "n2", "n3"});
  ASSERT_EQ(explain(), 0) << logged();
  const auto saved = said_of("ckpt.3", "scavenged");
  EXPECT_TRUE(has(saved, "it was never complete: ")) << printed();
  EXPECT_FALSE(has(saved, "cairn scavenge ")) << printed();
  EXPECT_EQ(rebuild(), exit_ok);
  EXPECT_NE(rebuilt_.find("it was never complete: "), std::string::npos) << rebuilt_;
  ASSERT_EQ(explain(), 0);
  EXPECT_EQ(follow(said_of("ckpt.3", "scavenged").at("to_do").at(0)), exit_ok) << logged();
}

struct FlipCase {
  const char* what;
  const char* file;          ///< of rank 4, on n2
  bool can_be_done_without;  ///< with n3 lost too
};

class ExplainFlip : public ExplainScavenge, public testing::WithParamInterface<FlipCase> {};

/// Before it was scavenged. Repaired where nothing else is missing; with n3 lost too, reported once
/// it was read.
TEST_P(ExplainFlip, AFlippedByteIsRepairedOrFoundByARebuild) {
  write_job();
  flip_bit(part("n2", 4) + GetParam().file);
  bed_.save("all");
  scavenge_well({"n0", "n1", "n2", "n3"});
  expect_rebuilt();
  bed_.bring_back("all");
  bed_.lose("n3");
  scavenge_well({"n0", "n1", "n2"});
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.3", "scavenged"), "according to its records")) << printed();
  if (GetParam().can_be_done_without) return expect_rebuilt();
  EXPECT_EQ(rebuild(), exit_failure);
  EXPECT_NE(rebuilt_.find("rank 4 (written on n2)"), std::string::npos) << rebuilt_;
  EXPECT_NE(rebuilt_.find("rank 6 (written on n3)"), std::string::npos) << rebuilt_;
  expect_lost({"rank 4 (written on n2)", "rank 6 (written on n3)"});
  EXPECT_NE(list().find("incomplete: data of rank "), std::string::npos) << list();
  expect_forecast(2);
  bed_.bring_back("all/n3", "n3");
  scavenge_well({"n3"});
  EXPECT_NE(list().find("saved: "), std::string::npos) << list();
  expect_rebuilt();
}

/// The parity is that of a stripe in which rank 6, of n3, has no data; a record is kept twice.
INSTANTIATE_TEST_SUITE_P(Each, ExplainFlip,
                         testing::Values(FlipCase{"data", "/files/ckpt.3/rank 4.1", false},
                                         FlipCase{"parity", "/parity.1", true},
                                         FlipCase{"record", "/record", true}),
                         [](const auto& test) { return std::string(test.param.what); });

// --- caches with a protected dataset, and a newer one that is only written ---

class ScavengeOnlyWritten : public ExplainScavenge {
 protected:
  ScavengeOnlyWritten() { bed_.settings.checkpoints[0].behind = true; }

  /// Dataset 2 is in the prefix directory; dataset 3 is only written.
  void write_flushed_and_die() {
    bed_.write(four_nodes(), {1, 2});
    bed_.die_exposed(four_nodes(), 3);
  }
  /// Nothing is in the prefix directory; dataset 1 is protected, and dataset 2 is only written.
  void write_unflushed_and_die() {
    bed_.settings.flush_interval = 0;
    bed_.write(four_nodes(), {1});
    bed_.die_exposed(four_nodes(), 2);
  }
  void expect_older_one_rebuilt() {
    bed_.lose_all_nodes();
    (void)rebuild();
    EXPECT_EQ(bed_.listed(), Names({"ckpt.1"})) << rebuilt_;
    EXPECT_EQ(bed_.restart(four_nodes()), 1) << bed_.log_text();
    bed_.expect_own_files(1);
  }
};

TEST_F(ScavengeOnlyWritten, WithAllNodesItIsSavedWithChecksums) {
  write_flushed_and_die();
  scavenge_well({"n0", "n1", "n2", "n3"});
  ASSERT_EQ(explain(), 0);
  EXPECT_FALSE(said_of("ckpt.3", "scavenged").at("only_written")) << printed();
  expect_rebuilt();
}

TEST_F(ScavengeOnlyWritten, WithoutANodeTheProtectedOneIsRebuilt) {
  write_unflushed_and_die();
  bed_.lose("n1");
  scavenge_well({"n0", "n2", "n3"});
  expect_older_one_rebuilt();
}

TEST_F(ScavengeOnlyWritten, WithAMissingPartTheProtectedOneIsRebuilt) {
  write_unflushed_and_die();
  fs::remove_all(part("n2", 4, 2));
  fs::remove_all(part("n2", 4, 1));
  scavenge_well({"n0", "n1", "n2", "n3"});
  expect_older_one_rebuilt();
}

TEST_F(ScavengeOnlyWritten, APartThatChangedIsNotSaved) {
  write_unflushed_and_die();
  std::ofstream(part("n1", 3, 2) + "/files/ckpt.2/rank 3.0", std::ios::app) << "more";
  scavenge_well({"n0"});
  ASSERT_EQ(scavenge("n1"), exit_ok) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("has changed since rank 3 wrote it")) << bed_.log_text();
  scavenge_well({"n2", "n3"});
  expect_older_one_rebuilt();
}

TEST_F(ScavengeOnlyWritten, ANodeThatIsScavengedLaterAddsWhatItHas) {
  write_unflushed_and_die();
  scavenge_well({"n0", "n2", "n3"});
  EXPECT_EQ(rebuild(), exit_failure) << "dataset 2 lacks the parts of n1: " << rebuilt_;
  EXPECT_EQ(bed_.listed(), Names({"ckpt.1"})) << rebuilt_;
  scavenge_well({"n1"});
  EXPECT_EQ(rebuild(), exit_ok) << rebuilt_;
  EXPECT_EQ(bed_.listed().at(0), "ckpt.2") << rebuilt_;
  bed_.lose_all_nodes();
  EXPECT_EQ(bed_.restart(four_nodes()), 2) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
