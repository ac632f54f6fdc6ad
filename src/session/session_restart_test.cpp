// What a restart finds after nodes, files or incarnations have changed. What is lost and damaged
// under each scheme: session_faults_test.cpp.
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "records/wire.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

void flip_byte(const std::string& path, std::int64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  char byte = 0;
  file.seekg(offset).get(byte);
  file.seekp(offset).put(static_cast<char>(byte ^ 1));
  ASSERT_TRUE(file.good()) << path;
}

std::string data_file(const JobBed& bed, const std::string& node, int dataset, int rank) {
  for (const std::string& part : bed.parts(node, dataset))
    if (part.ends_with(fmt::format("rank.{}", rank)))
      return fmt::format("{}/files/ckpt.{}/rank {}.0", part, dataset, rank);
  return "there is none";
}

TEST(SessionRestart, TwoNodesOfASetLostIsTooMuchAndSaysSo) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  bed.lose("n1");
  bed.lose("n2");
  EXPECT_EQ(bed.restart(replaced(replaced(four_nodes(), "n1", "n4"), "n2", "n5")), 0);
  EXPECT_TRUE(bed.logs("dataset 2 cannot be restored")) << bed.log_text();
  EXPECT_TRUE(bed.logs("dataset 1 cannot be restored")) << bed.log_text();
  const std::string said = bed.log_text();
  const std::string remedy = "start again on the nodes that have its parts";
  EXPECT_NE(said.find(remedy), std::string::npos) << said;
  EXPECT_EQ(said.find(remedy), said.rfind(remedy)) << "once is enough: " << said;
  EXPECT_LT(said.find(remedy), said.find("dataset 1 cannot be restored")) << "the first: " << said;
  EXPECT_TRUE(bed.logs("(written on n1)")) << bed.log_text();
  EXPECT_TRUE(bed.logs("(written on n2)")) << bed.log_text();
}

TEST(SessionRestart, OlderOneWhereTheNewestIsBeyondRepair) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  for (const std::string node : {"n1", "n3"})
    for (const std::string& part : bed.parts(node, 2)) fs::remove_all(part);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs("(written on n1)")) << bed.log_text();
  EXPECT_TRUE(bed.logs("(written on n3)")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 1);
  EXPECT_EQ(bed.parts("n0").size(), 4U) << "what was given up has made room";
  EXPECT_EQ(bed.parts("n0", 1).size(), 2U) << "and is not counted";
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

/// In whichever stripes they are: two members of a set that are damaged so share some.
void flip_every_block(const std::string& path) {
  constexpr std::uint64_t less_than_a_block = 50;
  for (std::uint64_t at = 0; at < fs::file_size(path); at += less_than_a_block) flip_byte(path, at);
}

TEST(SessionRestart, FlippedByteFoundAtStartRestartGoesToTheOlderOneWhenBeyondRepair) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    rank.comm.barrier();
    if (rank.number() == 2) flip_every_block(data_file(bed, "n1", 2, 2));
    if (rank.number() == 4) flip_every_block(data_file(bed, "n2", 2, 4));
    rank.comm.barrier();
    const auto started = rank.session->start_restart();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::lost);
    EXPECT_NE(started.error().text.find("n2"), std::string::npos) << started.error().text;
    EXPECT_EQ(rank.restart(), 1);
  });
}

TEST(SessionRestart, WhereStartRestartFindsDamageThePrefixDirectoryIsAskedForTheOlderOne) {
  for (const OnFetchFail on_fetch_fail : {OnFetchFail::older, OnFetchFail::stop}) {
    PrefixJobBed bed;
    bed.settings.on_fetch_fail = on_fetch_fail;
    bed.settings.stores[0].count = 1;
    bed.write(four_nodes(), {1, 2, 3});
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
      rank.comm.barrier();
      if (rank.number() == 2) flip_every_block(data_file(bed, "n1", 3, 2));
      if (rank.number() == 4) flip_every_block(data_file(bed, "n2", 3, 4));
      rank.comm.barrier();
      EXPECT_FALSE(rank.session->start_restart());
      EXPECT_EQ(rank.restart(), 2);
    });
  }
}

TEST(SessionRestart, FlippedByteIsRepairedAlsoWithItsFileMoved) {
  for (const bool moved : {false, true}) {
    JobBed bed;
    bed.settings.stores[0].count = 2;
    bed.write(four_nodes(), {1, 2});
    // Of the older one: at Init it is compared with its checksums because it is moved.
    flip_byte(data_file(bed, "n1", moved ? 1 : 2, 2), 40);
    const Nodes nodes =
        moved ? Nodes{"n1", "n1", "n0", "n0", "n2", "n2", "n3", "n3"} : four_nodes();
    EXPECT_EQ(bed.restart(nodes), 2);
    const std::string path = data_file(bed, moved ? "n0" : "n1", moved ? 1 : 2, 2);
    EXPECT_TRUE(read_all(path) == content_of(2, 0, moved ? 1 : 2)) << path;
  }
}

TEST(SessionRestart, OneSetMovedTogetherAndTheOtherNot) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  const Nodes crowded_in_one = {"n0", "n0", "n0", "n1", "n2", "n2", "n3", "n3"};
  EXPECT_EQ(bed.restart(crowded_in_one), 2);
  EXPECT_TRUE(bed.logs("dataset 1 (ckpt.1) is protected again")) << bed.log_text();
  bed.lose("n0");
  EXPECT_EQ(bed.restart(replaced(crowded_in_one, "n0", "n4")), 2);
}

// --- incarnations ---

TEST(SessionRestart, ReturnOfANodeWithAnOldDatasetIsNotMixedIn) {
  JobBed bed;
  bed.write(four_nodes(), {4, 5});
  bed.save("n1 of old", "n1");
  bed.lose("n1");
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  EXPECT_EQ(bed.restart(spare, [](JobRank& rank) { rank.expect_written(6); }), 5);
  bed.bring_back("n1 of old", "n1");
  bed.lose("n4");
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(7); }), 6);
  EXPECT_EQ(bed.restart(four_nodes()), 7);
  EXPECT_EQ(bed.parts("n1").size(), 2U) << "nothing of the old one is left";
}

/// Both run ranks; only the replacement has parts of the newest checkpoint.
TEST(SessionRestart, ANodeThatComesBackBesideItsReplacementIsNotMixedIn) {
  JobBed bed;
  bed.write(four_nodes(), {4, 5});
  bed.save("n1 of old", "n1");
  bed.lose("n1");
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  EXPECT_EQ(bed.restart(spare, [](JobRank& rank) { rank.expect_written(6); }), 5);
  bed.bring_back("n1 of old", "n1");
  const Nodes both = {"n0", "n0", "n1", "n4", "n2", "n2", "n3", "n3"};
  EXPECT_EQ(bed.restart(both, [](JobRank& rank) { rank.expect_written(7); }), 6);
  EXPECT_EQ(bed.parts("n1").size(), 1U) << "nothing of the old one is left";
}

TEST(SessionRestart, DatasetOfTheSameNumberAndAnotherIdentityIsNotMixedIn) {
  for (const bool other_looks_newer : {false, true}) {
    JobBed bed;
    const TemporaryFolder prefix;  // has one id in both lives of the job
    bed.settings.prefix = prefix.path();
    bed.write(four_nodes(), {1});
    bed.save(other_looks_newer ? "mine" : "other");
    for (const std::string node : {"n0", "n1", "n2", "n3"}) bed.lose(node);
    bed.write(four_nodes(), {2});  // number 1 again
    bed.save(other_looks_newer ? "other" : "mine");
    bed.bring_back("mine");
    for (const std::string& part : bed.parts("n1")) fs::remove_all(part);
    for (const std::string node : {"n1", "n2"})
      fs::copy(bed.saved("other", node), bed.node(node),
               fs::copy_options::recursive | fs::copy_options::skip_existing);
    EXPECT_EQ(bed.restart(four_nodes()), other_looks_newer ? 1 : 2) << bed.log_text();
  }
}

// --- one rank alone has come to commit ---

/// Of all ranks only `alone` renames its prepared record into place, and the job is dead.
FileHook commit_of_one(int rank, int alone, std::atomic<bool>& committed) {
  return [=, &committed](const FileOperation& operation) -> Status {
    if (operation.name != "rename" || !operation.path.ends_with("/record.new")) return {};
    if (rank == alone) {
      fs::rename(operation.path, operation.to);
      committed = true;
    }
    while (!committed) std::this_thread::yield();
    throw Crash();
  };
}

TEST(SessionRestart, CommittedByOneRankIsCommitted) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  std::atomic<bool> committed = false;
  EXPECT_FALSE(bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = commit_of_one(rank.number(), 5, committed);
    EXPECT_TRUE(rank.write(2));
  }));
  bed.save("crashed");
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  bed.bring_back("crashed");
  bed.lose("n0");
  EXPECT_EQ(bed.restart(replaced(four_nodes(), "n0", "n4")), 2);
}

/// Nor does a run of other ranks that cannot see that one remove the others' parts.
TEST(SessionRestart, CommittedByOneRankOutlivesARunOfFewerRanksWithoutItsNode) {
  JobBed bed;
  std::atomic<bool> committed = false;
  EXPECT_FALSE(bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = commit_of_one(rank.number(), 5, committed);
    EXPECT_TRUE(rank.write(1));
  }));
  EXPECT_EQ(bed.restart({"n0", "n0", "n1", "n1", "n3", "n3"}), 0);
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
}

TEST(SessionRestart, NewSetsCommittedOnOneNodeThatGoesAndReturns) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  const Nodes crowded_otherwise = {"n0", "n0", "n1", "n2", "n1", "n2", "n3", "n3"};
  for (const Nodes& later : {four_nodes(), crowded_otherwise}) {
    JobBed bed;
    bed.write(four_nodes(), {1});
    std::atomic<bool> committed = false;
    EXPECT_FALSE(bed.run(crowded, [&](JobRank& rank) {
      rank.hook = commit_of_one(rank.number(), 0, committed);
      EXPECT_TRUE(rank.init());
    }));
    bed.save("n0 of old", "n0");
    bed.lose("n0");
    EXPECT_EQ(bed.restart(replaced(later, "n0", "n4")), 1) << bed.log_text();
    bed.bring_back("n0 of old", "n0");
    bed.lose("n4");
    EXPECT_EQ(bed.restart(later), 1) << bed.log_text();
  }
}

/// The crowded node dies next, with two members of an old set: one of them is still where it was.
TEST(SessionRestart, WithoutRoomForNewSetsTheOldPlacesStay) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run(crowded, [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "rename" || !operation.path.ends_with("/record.new")) return {};
      return fail(Code::no_space, "injected: no room for {}", operation.to);
    };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_TRUE(bed.logs("keeps its old redundancy sets")) << bed.log_text();
  bed.lose("n0");
  EXPECT_EQ(bed.restart(replaced(four_nodes(), "n0", "n4")), 1) << bed.log_text();
}

/// The medium is bad: no time changes. What was encoded of such bytes is given up.
TEST(SessionRestart, AByteThatChangesBetweenTheCheckAndNewSetsReachesNoProgram) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run(crowded, [&](JobRank& rank) {
    bool is_good = rank.number() != 0;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool encodes = operation.name == "create" &&
                           operation.path.find("/rank.0/parity.") != std::string_view::npos;
      if (!encodes || std::exchange(is_good, true)) return {};
      std::string file = data_file(bed, "n0", 1, 0);
      file.back() = '1';
      const auto time = fs::last_write_time(file);
      flip_byte(file, 100);
      fs::last_write_time(file, time);
      return {};
    };
    ASSERT_TRUE(rank.init());
    EXPECT_TRUE(is_good);
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_TRUE(bed.logs("keeps its old redundancy sets")) << bed.log_text();
}

// --- what the application says of it ---

TEST(SessionRestart, InvalidOnOneRankIsInvalidOnAllAndLeavesTheOlderOne) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_TRUE(rank.write_files(2));
    const Status done = rank.session->complete_checkpoint(rank.number() != 5);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
    EXPECT_NE(done.error().text.find("rank 5"), std::string::npos) << done.error().text;
  });
  EXPECT_EQ(bed.parts("n2"), bed.parts("n2", 1));
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionRestart, ARoutedFileThatWasNotWrittenIsInvalid) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    ASSERT_TRUE(rank.session->route_file(rank.settings.prefix + "/only asked for"));
    const Status done = rank.session->complete_checkpoint(true);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
  });
}

TEST(SessionRestart, ARestartThatOneRankCouldNotUseGoesToTheOlderOne) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(*rank.session->start_restart(), "ckpt.2");
    const Status done = rank.session->complete_restart(rank.number() != 6);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(bed.parts("n3"), bed.parts("n3", 1));
}

// --- what is kept of a file ---

struct stat stat_of_file(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0) << path;
  return facts;
}

TEST(SessionRestart, ModeAndTimesAreKeptOverRebuildAndMove) {
  const std::int64_t then_s = 1'600'000'000;
  const Nodes turned = {"n3", "n3", "n0", "n0", "n4", "n4", "n2", "n2"};  // n1 is lost
  for (const Nodes& nodes : {replaced(four_nodes(), "n1", "n4"), turned}) {
    JobBed bed;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
      ASSERT_TRUE(rank.write_files(1));
      const auto path = rank.session->route_file(rank.file_name(0, 1));
      const std::int64_t then_ns = then_s * 1'000'000'000 + 123'456'789;
      ASSERT_TRUE(rank.files->set_attributes(*path, 0440, {then_ns, then_ns}));
      ASSERT_TRUE(rank.session->complete_output(true));
    });
    bed.lose("n1");
    bed.run_well(nodes, [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_restart());
      const auto facts = stat_of_file(*rank.session->route_file(rank.file_name(0, 1)));
      EXPECT_EQ(facts.st_mode & 07777, 0440U) << rank.number();
      EXPECT_EQ(facts.st_mtim.tv_sec, then_s) << rank.number();
      EXPECT_EQ(facts.st_mtim.tv_nsec, 123'456'789) << rank.number();
      rank.expect_files(1);
    });
  }
}

TEST(SessionRestart, WhatIsLostNowIsKeptUntilANewerOneIsCommitted) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.save("n1", "n1");
  bed.save("n2", "n2");
  bed.lose("n1");
  bed.lose("n2");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    EXPECT_TRUE(rank.session->start_checkpoint()) << "and this run dies here";
  });
  bed.bring_back("n1", "n1");
  bed.bring_back("n2", "n2");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

/// The records in a file, as a later Cairn would have written them.
void make_newer(const std::string& path) {
  const std::string content = read_all(path);
  std::ofstream out(path, std::ios::binary);
  for (const Envelope& envelope : find_envelopes(std::as_bytes(std::span(content)))) {
    const Blob sealed = seal(envelope.type, rank_record_version + 1, envelope.payload);
    out.write(reinterpret_cast<const char*>(sealed.data()),
              static_cast<std::streamsize>(sealed.size()));
  }
}

TEST(SessionRestart, ADatasetOfANewerFormatIsReportedAndLeftAloneUntilAPurge) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  for (const std::string& part : bed.parts("n1", 2)) make_newer(part + "/record");
  bed.save("two");
  bed.settings.stores[0].count = 1;
  EXPECT_EQ(bed.restart(four_nodes(),
                        [](JobRank& rank) {
                          EXPECT_TRUE(rank.session->datasets().current("ckpt.1"));
                          EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
                          for (const int dataset : {3, 4}) rank.expect_written(dataset);
                        }),
            1);
  EXPECT_TRUE(bed.logs("dataset 2: its records are in a newer format")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 4);
  EXPECT_TRUE(bed.parts("n0", 1).empty());
  for (const std::string node : {"n0", "n1"}) {
    const std::vector<std::string> parts = bed.parts(node, 2);
    ASSERT_EQ(parts.size(), 2U) << node;
    for (const std::string& part : parts) {
      const std::string before = bed.saved("two", node) + part.substr(bed.node(node).size());
      EXPECT_TRUE(read_all(part + "/record") == read_all(before + "/record")) << part;
      EXPECT_TRUE(read_all(part + "/parity.1") == read_all(before + "/parity.1")) << part;
    }
  }
  bed.settings.cache_purge = true;
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(bed.parts("n1").empty());
}

TEST(SessionRestart, ASpareWithoutSpaceLosesNothing) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.lose("n1");
  const Nodes with_spare = {"n0", "n0", "n4", "n4", "n2", "n2", "n3", "n3"};
  bed.run_well(with_spare, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
  bed.lose("n4");
  bed.run(with_spare, [](JobRank& rank) {
    if (rank.settings.node_name == "n4")
      rank.hook = [](const FileOperation& operation) -> Status {
        if (operation.name != "write") return {};
        return fail(Code::no_space, "injected: no space for {}", operation.path);
      };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 0);
    EXPECT_FALSE(rank.write(2));
  });
  EXPECT_TRUE(bed.parts("n4").empty()) << "half of a dataset is of no use there";
  EXPECT_EQ(bed.restart({"n0", "n0", "n5", "n5", "n2", "n2", "n3", "n3"}), 1);
}

TEST(SessionRestart, APartOfARankThatDoesNotExistDoesNoHarm) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  const std::string dataset = folder_of(bed.parts("n0", 1)[0]);
  std::filesystem::create_directories(dataset + "/rank.99/files");
  std::filesystem::copy(bed.parts("n0", 1)[0] + "/record", dataset + "/rank.99/record");
  bed.lose("n1");
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(2); }), 1);
  EXPECT_EQ(bed.parts("n0"), bed.parts("n0", 2)) << "it goes with its dataset";
}

TEST(SessionRestart, AFileStillOpenAtCompleteIsRefused) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.file_name(0, 1));
    ASSERT_TRUE(path);
    const auto file = rank.files->create(*path, 0600);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(0, std::as_bytes(std::span("early", 5))));
    bool at_work = true;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (rank.number() != 2 || operation.name != "view" || !at_work) return {};
      at_work = false;  // the library reads, and the application writes on
      return (*file)->write_at(5, std::as_bytes(std::span("late", 4)));
    };
    const Status done = rank.session->complete_checkpoint(true);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
    EXPECT_NE(done.error().text.find("rank"), std::string::npos) << done.error().text;
  });
}

}  // namespace
}  // namespace cairn
