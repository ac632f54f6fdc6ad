// What a restart finds after nodes, files or incarnations have changed. What is lost and damaged
// under each scheme: session_faults_test.cpp.
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "records/wire.hpp"
#include "session/prefix_cluster.hpp"

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

std::string data_file(const Cluster& cluster, const std::string& node, int dataset, int rank) {
  for (const std::string& part : cluster.parts(node, dataset))
    if (part.ends_with(fmt::format("rank.{}", rank)))
      return fmt::format("{}/files/ckpt.{}/rank {}.0", part, dataset, rank);
  return "there is none";
}

TEST(SessionRestart, TwoNodesOfASetLostIsTooMuchAndSaysSo) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  cluster.lose("n1");
  cluster.lose("n2");
  EXPECT_EQ(cluster.restart(replaced(replaced(four_nodes(), "n1", "n4"), "n2", "n5")), 0);
  EXPECT_TRUE(cluster.said("dataset 2 cannot be restored")) << cluster.said();
  EXPECT_TRUE(cluster.said("dataset 1 cannot be restored")) << cluster.said();
  const std::string said = cluster.said();
  const std::string remedy = "start again on the nodes on which it was written";
  EXPECT_NE(said.find(remedy), std::string::npos) << said;
  EXPECT_EQ(said.find(remedy), said.rfind(remedy)) << "once is enough: " << said;
  EXPECT_LT(said.find(remedy), said.find("dataset 1 cannot be restored")) << "the first: " << said;
  EXPECT_TRUE(cluster.said("(written on n1)")) << cluster.said();
  EXPECT_TRUE(cluster.said("(written on n2)")) << cluster.said();
}

TEST(SessionRestart, OlderOneWhereTheNewestIsBeyondRepair) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  for (const std::string node : {"n1", "n3"})
    for (const std::string& part : cluster.parts(node, 2)) fs::remove_all(part);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_TRUE(cluster.said("(written on n1)")) << cluster.said();
  EXPECT_TRUE(cluster.said("(written on n3)")) << cluster.said();
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 1);
  EXPECT_EQ(cluster.parts("n0").size(), 4U) << "what was given up has made room";
  EXPECT_EQ(cluster.parts("n0", 1).size(), 2U) << "and is not counted";
  EXPECT_EQ(cluster.restart(four_nodes()), 3);
}

/// In whichever stripes they are: two members of a set that are damaged so share some.
void flip_every_block(const std::string& path) {
  constexpr std::uint64_t less_than_a_block = 50;
  for (std::uint64_t at = 0; at < fs::file_size(path); at += less_than_a_block) flip_byte(path, at);
}

TEST(SessionRestart, FlippedByteFoundAtStartRestartGoesToTheOlderOneWhenBeyondRepair) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    rank.comm.barrier();
    if (rank.number() == 2) flip_every_block(data_file(cluster, "n1", 2, 2));
    if (rank.number() == 4) flip_every_block(data_file(cluster, "n2", 2, 4));
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
    PrefixCluster cluster;
    cluster.settings.on_fetch_fail = on_fetch_fail;
    cluster.settings.stores[0].count = 1;
    cluster.write(four_nodes(), {1, 2, 3});
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
      rank.comm.barrier();
      if (rank.number() == 2) flip_every_block(data_file(cluster, "n1", 3, 2));
      if (rank.number() == 4) flip_every_block(data_file(cluster, "n2", 3, 4));
      rank.comm.barrier();
      EXPECT_FALSE(rank.session->start_restart());
      EXPECT_EQ(rank.restart(), 2);
    });
  }
}

TEST(SessionRestart, FlippedByteIsRepairedAlsoWithItsFileMoved) {
  for (const bool moved : {false, true}) {
    Cluster cluster;
    cluster.settings.stores[0].count = 2;
    cluster.write(four_nodes(), {1, 2});
    // Of the older one: at Init it is compared with its checksums because it is moved.
    flip_byte(data_file(cluster, "n1", moved ? 1 : 2, 2), 40);
    const Nodes nodes =
        moved ? Nodes{"n1", "n1", "n0", "n0", "n2", "n2", "n3", "n3"} : four_nodes();
    EXPECT_EQ(cluster.restart(nodes), 2);
    const std::string path = data_file(cluster, moved ? "n0" : "n1", moved ? 1 : 2, 2);
    EXPECT_TRUE(read_all(path) == content_of(2, 0, moved ? 1 : 2)) << path;
  }
}

TEST(SessionRestart, OneSetMovedTogetherAndTheOtherNot) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  const Nodes crowded_in_one = {"n0", "n0", "n0", "n1", "n2", "n2", "n3", "n3"};
  EXPECT_EQ(cluster.restart(crowded_in_one), 2);
  EXPECT_TRUE(cluster.said("dataset 1 (ckpt.1) is protected again")) << cluster.said();
  cluster.lose("n0");
  EXPECT_EQ(cluster.restart(replaced(crowded_in_one, "n0", "n4")), 2);
}

// --- incarnations ---

TEST(SessionRestart, ReturnOfANodeWithAnOldDatasetIsNotMixedIn) {
  Cluster cluster;
  cluster.write(four_nodes(), {4, 5});
  cluster.save("n1 of old", "n1");
  cluster.lose("n1");
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  EXPECT_EQ(cluster.restart(spare, [](JobRank& rank) { rank.expect_written(6); }), 5);
  cluster.bring_back("n1 of old", "n1");
  cluster.lose("n4");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(7); }), 6);
  EXPECT_EQ(cluster.restart(four_nodes()), 7);
  EXPECT_EQ(cluster.parts("n1").size(), 2U) << "nothing of the old one is left";
}

/// Both run ranks; only the replacement has parts of the newest checkpoint.
TEST(SessionRestart, ANodeThatComesBackBesideItsReplacementIsNotMixedIn) {
  Cluster cluster;
  cluster.write(four_nodes(), {4, 5});
  cluster.save("n1 of old", "n1");
  cluster.lose("n1");
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  EXPECT_EQ(cluster.restart(spare, [](JobRank& rank) { rank.expect_written(6); }), 5);
  cluster.bring_back("n1 of old", "n1");
  const Nodes both = {"n0", "n0", "n1", "n4", "n2", "n2", "n3", "n3"};
  EXPECT_EQ(cluster.restart(both, [](JobRank& rank) { rank.expect_written(7); }), 6);
  EXPECT_EQ(cluster.parts("n1").size(), 1U) << "nothing of the old one is left";
}

TEST(SessionRestart, DatasetOfTheSameNumberAndAnotherIdentityIsNotMixedIn) {
  for (const bool other_looks_newer : {false, true}) {
    Cluster cluster;
    const TemporaryFolder prefix;  // has one id in both lives of the job
    cluster.settings.prefix = prefix.path();
    cluster.write(four_nodes(), {1});
    cluster.save(other_looks_newer ? "mine" : "other");
    for (const std::string node : {"n0", "n1", "n2", "n3"}) cluster.lose(node);
    cluster.write(four_nodes(), {2});  // number 1 again
    cluster.save(other_looks_newer ? "other" : "mine");
    cluster.bring_back("mine");
    for (const std::string& part : cluster.parts("n1")) fs::remove_all(part);
    for (const std::string node : {"n1", "n2"})
      fs::copy(cluster.saved("other", node), cluster.node(node),
               fs::copy_options::recursive | fs::copy_options::skip_existing);
    EXPECT_EQ(cluster.restart(four_nodes()), other_looks_newer ? 1 : 2) << cluster.said();
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
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  std::atomic<bool> committed = false;
  EXPECT_FALSE(cluster.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = commit_of_one(rank.number(), 5, committed);
    EXPECT_TRUE(rank.write(2));
  }));
  cluster.save("crashed");
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  cluster.bring_back("crashed");
  cluster.lose("n0");
  EXPECT_EQ(cluster.restart(replaced(four_nodes(), "n0", "n4")), 2);
}

/// Nor does a run of other ranks that cannot see that one remove the others' parts.
TEST(SessionRestart, CommittedByOneRankOutlivesARunOfFewerRanksWithoutItsNode) {
  Cluster cluster;
  std::atomic<bool> committed = false;
  EXPECT_FALSE(cluster.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = commit_of_one(rank.number(), 5, committed);
    EXPECT_TRUE(rank.write(1));
  }));
  EXPECT_EQ(cluster.restart({"n0", "n0", "n1", "n1", "n3", "n3"}), 0);
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << cluster.said();
}

TEST(SessionRestart, NewSetsCommittedOnOneNodeThatGoesAndReturns) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  const Nodes crowded_otherwise = {"n0", "n0", "n1", "n2", "n1", "n2", "n3", "n3"};
  for (const Nodes& later : {four_nodes(), crowded_otherwise}) {
    Cluster cluster;
    cluster.write(four_nodes(), {1});
    std::atomic<bool> committed = false;
    EXPECT_FALSE(cluster.run(crowded, [&](JobRank& rank) {
      rank.hook = commit_of_one(rank.number(), 0, committed);
      EXPECT_TRUE(rank.init());
    }));
    cluster.save("n0 of old", "n0");
    cluster.lose("n0");
    EXPECT_EQ(cluster.restart(replaced(later, "n0", "n4")), 1) << cluster.said();
    cluster.bring_back("n0 of old", "n0");
    cluster.lose("n4");
    EXPECT_EQ(cluster.restart(later), 1) << cluster.said();
  }
}

/// The crowded node dies next, with two members of an old set: one of them is still where it was.
TEST(SessionRestart, WithoutRoomForNewSetsTheOldPlacesStay) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.run(crowded, [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "rename" || !operation.path.ends_with("/record.new")) return {};
      return fail(Code::no_space, "injected: no room for {}", operation.to);
    };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_TRUE(cluster.said("keeps its old redundancy sets")) << cluster.said();
  cluster.lose("n0");
  EXPECT_EQ(cluster.restart(replaced(four_nodes(), "n0", "n4")), 1) << cluster.said();
}

/// The medium is bad: no time changes. What was encoded of such bytes is given up.
TEST(SessionRestart, AByteThatChangesBetweenTheCheckAndNewSetsReachesNoProgram) {
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.run(crowded, [&](JobRank& rank) {
    bool is_good = rank.number() != 0;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool encodes = operation.name == "create" &&
                           operation.path.find("/rank.0/parity.") != std::string_view::npos;
      if (!encodes || std::exchange(is_good, true)) return {};
      std::string file = data_file(cluster, "n0", 1, 0);
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
  EXPECT_TRUE(cluster.said("keeps its old redundancy sets")) << cluster.said();
}

// --- what the application says of it ---

TEST(SessionRestart, InvalidOnOneRankIsInvalidOnAllAndLeavesTheOlderOne) {
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_TRUE(rank.write_files(2));
    const Status done = rank.session->complete_checkpoint(rank.number() != 5);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
    EXPECT_NE(done.error().text.find("rank 5"), std::string::npos) << done.error().text;
  });
  EXPECT_EQ(cluster.parts("n2"), cluster.parts("n2", 1));
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionRestart, ARoutedFileThatWasNotWrittenIsInvalid) {
  Cluster cluster;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    ASSERT_TRUE(rank.session->route_file(rank.settings.prefix + "/only asked for"));
    const Status done = rank.session->complete_checkpoint(true);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
  });
}

TEST(SessionRestart, ARestartThatOneRankCouldNotUseGoesToTheOlderOne) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(*rank.session->start_restart(), "ckpt.2");
    const Status done = rank.session->complete_restart(rank.number() != 6);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid);
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(cluster.parts("n3"), cluster.parts("n3", 1));
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
    Cluster cluster;
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
      ASSERT_TRUE(rank.write_files(1));
      const auto path = rank.session->route_file(rank.file_name(0, 1));
      const std::int64_t then_ns = then_s * 1'000'000'000 + 123'456'789;
      ASSERT_TRUE(rank.files->set_attributes(*path, 0440, {then_ns, then_ns}));
      ASSERT_TRUE(rank.session->complete_output(true));
    });
    cluster.lose("n1");
    cluster.run_well(nodes, [&](JobRank& rank) {
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
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.save("n1", "n1");
  cluster.save("n2", "n2");
  cluster.lose("n1");
  cluster.lose("n2");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    EXPECT_TRUE(rank.session->start_checkpoint()) << "and this run dies here";
  });
  cluster.bring_back("n1", "n1");
  cluster.bring_back("n2", "n2");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
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

TEST(SessionRestart, ADatasetOfANewerFormatIsToldAndLeftAloneUntilAPurge) {
  Cluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.write(four_nodes(), {1, 2});
  for (const std::string& part : cluster.parts("n1", 2)) make_newer(part + "/record");
  cluster.save("two");
  cluster.settings.stores[0].count = 1;
  EXPECT_EQ(cluster.restart(four_nodes(),
                            [](JobRank& rank) {
                              EXPECT_TRUE(rank.session->current("ckpt.1"));
                              EXPECT_TRUE(rank.session->remove("ckpt.2"));
                              for (const int dataset : {3, 4}) rank.expect_written(dataset);
                            }),
            1);
  EXPECT_TRUE(cluster.said("dataset 2: its records are in a newer format")) << cluster.said();
  EXPECT_EQ(cluster.restart(four_nodes()), 4);
  EXPECT_TRUE(cluster.parts("n0", 1).empty());
  for (const std::string node : {"n0", "n1"}) {
    const std::vector<std::string> parts = cluster.parts(node, 2);
    ASSERT_EQ(parts.size(), 2U) << node;
    for (const std::string& part : parts) {
      const std::string before =
          cluster.saved("two", node) + part.substr(cluster.node(node).size());
      EXPECT_TRUE(read_all(part + "/record") == read_all(before + "/record")) << part;
      EXPECT_TRUE(read_all(part + "/parity.1") == read_all(before + "/parity.1")) << part;
    }
  }
  cluster.settings.cache_purge = true;
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  EXPECT_TRUE(cluster.parts("n1").empty());
}

TEST(SessionRestart, ASpareWithoutSpaceLosesNothing) {
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.lose("n1");
  const Nodes with_spare = {"n0", "n0", "n4", "n4", "n2", "n2", "n3", "n3"};
  cluster.run_well(with_spare, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
  cluster.lose("n4");
  cluster.run(with_spare, [](JobRank& rank) {
    if (rank.settings.node_name == "n4")
      rank.hook = [](const FileOperation& operation) -> Status {
        if (operation.name != "write") return {};
        return fail(Code::no_space, "injected: no space for {}", operation.path);
      };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 0);
    EXPECT_FALSE(rank.write(2));
  });
  EXPECT_TRUE(cluster.parts("n4").empty()) << "half of a dataset is of no use there";
  EXPECT_EQ(cluster.restart({"n0", "n0", "n5", "n5", "n2", "n2", "n3", "n3"}), 1);
}

TEST(SessionRestart, APartOfARankThatThereIsNotHarmsNobody) {
  Cluster cluster;
  cluster.write(four_nodes(), {1});
  const std::string dataset = folder_of(cluster.parts("n0", 1)[0]);
  std::filesystem::create_directories(dataset + "/rank.99/files");
  std::filesystem::copy(cluster.parts("n0", 1)[0] + "/record", dataset + "/rank.99/record");
  cluster.lose("n1");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(2); }), 1);
  EXPECT_EQ(cluster.parts("n0"), cluster.parts("n0", 2)) << "it goes with its dataset";
}

TEST(SessionRestart, AFileStillOpenAtCompleteIsRefused) {
  Cluster cluster;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
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
