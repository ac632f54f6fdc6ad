// Restarts with another number of ranks, and files that all ranks read.
#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

const Nodes six = {"n0", "n0", "n1", "n1", "n2", "n2"};
const Nodes one = {"n0"};

class ElasticCluster : public PrefixCluster {
 public:
  ElasticCluster() {
    settings.elastic = true;
    settings.flush_interval = 1;
  }

  /// Restarts; every rank reads what every one of the `writers` has written. From which dataset.
  int restart_from(std::size_t writers, const Nodes& nodes, const RankMain& more = nullptr) {
    int from = 0;
    run_well(nodes, [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      ASSERT_TRUE(name) << name.error().text;
      if (!*name) return;
      ASSERT_TRUE(rank.session->start_restart());
      const int dataset = std::stoi((*name)->substr((*name)->rfind('.') + 1));
      for (int writer = 0; writer < static_cast<int>(writers); ++writer)
        for (int number = 0; number < files_per_rank; ++number) {
          const auto path = rank.session->route_file(file(dataset, writer, number));
          ASSERT_TRUE(path) << path.error().text;
          ASSERT_TRUE(read_all(*path) == content_of(writer, number, dataset)) << *path;
        }
      const auto nobodys = rank.session->route_file(settings.prefix + "/nobody's");
      ASSERT_FALSE(nobodys);
      EXPECT_EQ(nobodys.error().code, Code::not_found);
      EXPECT_TRUE(rank.session->complete_restart(true));
      if (rank.number() == 0) from = dataset;
      if (more) more(rank);
    });
    return from;
  }
};

TEST(SessionElastic, FewerMoreAndOne) {
  ElasticCluster cluster;
  cluster.write_and_finalize({1, 2});
  cluster.lose_all_nodes();
  const auto writes_on = [](JobRank& rank) {
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->finalize());
  };
  EXPECT_EQ(cluster.restart_from(8, six, writes_on), 2);
  EXPECT_EQ(cluster.listed()[0], "ckpt.3");
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart_from(6, four_nodes()), 3);
  EXPECT_EQ(cluster.restart_from(6, one), 3);
  cluster.settings.fetch_bypass = true;
  EXPECT_EQ(cluster.restart_from(6, four_nodes()), 3);
}

TEST(SessionElastic, WhatTheCachesHaveTooIsReadInThePrefixDirectory) {
  ElasticCluster cluster;
  cluster.write_and_finalize({1, 2});
  EXPECT_EQ(cluster.restart_from(8, six, [](JobRank& rank) { rank.expect_written(3); }), 2);
  EXPECT_EQ(cluster.parts("n1"), cluster.parts("n1", 3)) << "what it supersedes is gone";
  EXPECT_EQ(cluster.restart(six), 3) << "from the cache";
}

TEST(SessionElastic, WhatOnlyTheCachesHaveIsCopiedFirst) {
  for (const Nodes& nodes : {six, Nodes{"n3", "n2", "n1", "n0"}}) {
    ElasticCluster cluster;
    cluster.settings.flush_interval = 2;
    cluster.write(four_nodes(), {1, 2, 3});
    EXPECT_EQ(cluster.listed(), Names({"ckpt.2"}));
    const bool all_nodes = nodes.size() == 4;
    if (!all_nodes) {  // a part is on a node that is not there
      cluster.run_well(nodes, [](JobRank& rank) {
        const auto found = rank.session->have_restart();
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, Code::wrong_ranks);
      });
      EXPECT_TRUE(cluster.said("no node of this run has the part of rank 6")) << cluster.said();
      EXPECT_EQ(cluster.restart(four_nodes()), 3) << "with the number that wrote it";
      continue;
    }
    EXPECT_EQ(cluster.restart_from(8, nodes, [](JobRank& rank) { rank.expect_written(4); }), 3);
    EXPECT_EQ(cluster.listed(), Names({"ckpt.4", "ckpt.3", "ckpt.2"}));
    cluster.expect_own_files(3);
  }
}

TEST(SessionElastic, MoreRanksCopyWhatTheCachesHave) {
  ElasticCluster cluster;
  cluster.settings.flush_interval = 0;
  cluster.write(one, {1, 2});
  EXPECT_EQ(cluster.restart_from(1, four_nodes()), 2);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.2"}));
}

TEST(SessionElastic, WhatCannotBeCopiedIsRefusedAndStays) {
  ElasticCluster cluster;
  cluster.settings.flush_interval = 0;
  cluster.write(four_nodes(), {1});
  cluster.save("whole");
  cluster.flip(cluster.parts("n2", 1)[0] + "/files/ckpt.1/rank 4.0");
  const Nodes four = {"n0", "n1", "n2", "n3"};
  cluster.run_well(four, [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
  EXPECT_TRUE(cluster.said("rank 4.0 does not match its checksum")) << cluster.said();
  EXPECT_EQ(cluster.listed(), Names());
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << "which repairs it";
}

TEST(SessionElastic, WhatWasCopiedButHasNoNamesYetIsRefusedAndReadNextTime) {
  ElasticCluster cluster;
  cluster.settings.flush_interval = 0;
  cluster.write(four_nodes(), {1});
  const Nodes four = {"n0", "n1", "n2", "n3"};
  cluster.run_well(four, [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool naming =
          operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
      return naming ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
    };
    EXPECT_FALSE(rank.session->have_restart());
    rank.hook = nullptr;
  });
  EXPECT_TRUE(cluster.said("all of it is there, but not under its own names")) << cluster.said();
  EXPECT_EQ(cluster.restart_from(8, four), 1);
  cluster.expect_own_files(1);
}

/// At every call that one of the ranks makes in the prefix directory.
TEST(SessionElastic, ACrashWhileItIsCopiedLosesNothing) {
  constexpr int stride = sanitized ? 23 : 5;
  const Nodes four = {"n0", "n1", "n2", "n3"};
  bool crashed = true;
  for (int step = 0; crashed; step += stride) {
    ElasticCluster cluster;
    cluster.settings.flush_interval = 0;
    cluster.write(four_nodes(), {1});
    crashed = !cluster.run(four, [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      if (rank.number() == step % 2)
        rank.hook = [&, count = 0](const FileOperation& operation) mutable -> Status {
          if (operation.path.starts_with(cluster.settings.prefix) && count++ == step) throw Crash{};
          return {};
        };
      (void)rank.session->have_restart();
      rank.hook = nullptr;
    });
    ASSERT_EQ(cluster.restart_from(8, four), 1) << step;
    ASSERT_EQ(cluster.listed(), Names({"ckpt.1"})) << step;
  }
}

TEST(SessionElastic, DamageIsFoundInWhateverPartAndTheNextOlderTaken) {
  for (const int writer : {0, 5, 7}) {
    ElasticCluster cluster;
    cluster.write_and_finalize({1, 2});
    cluster.lose_all_nodes();
    cluster.flip(cluster.file(2, writer, 1));
    EXPECT_EQ(cluster.restart_from(8, six), 1) << writer;
    EXPECT_TRUE(cluster.said(fmt::format("rank {}.1", writer))) << cluster.said();
  }
}

TEST(SessionElastic, ARestartThatIsRejectedIsOut) {
  ElasticCluster cluster;
  cluster.write_and_finalize({1, 2});
  cluster.lose_all_nodes();
  cluster.run_well(six, [](JobRank& rank) {
    EXPECT_EQ(*rank.session->have_restart(), "ckpt.2");
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 1));
    EXPECT_EQ(*rank.session->have_restart(), "ckpt.1");
  });
  EXPECT_EQ(cluster.restart_from(8, six), 1);
}

/// Rank 3 of a job whose other ranks have only their own files.
class BroadcastCluster : public Cluster {
 public:
  BroadcastCluster() { settings.broadcast = {"input/*"}; }

  std::string input() const { return settings.prefix + "/input/mesh"; }

  void write_with_input(int dataset) {
    run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
      EXPECT_TRUE(rank.write_files(dataset));
      if (rank.number() == 3) {
        const auto path = rank.session->route_file(input());
        ASSERT_TRUE(path);
        std::ofstream(*path) << "of all " << dataset;
      }
      EXPECT_TRUE(rank.session->complete_output(true));
    });
  }

  std::vector<std::string> broadcasts(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(node(name) + "/tester/cairn." + settings.job_id))
      if (entry.path().filename().string().starts_with("broadcast.")) found.push_back(entry.path());
    return found;
  }
};

TEST(SessionBroadcast, EveryRankReadsItOnItsNodeUntilTheRestartIsComplete) {
  BroadcastCluster cluster;
  cluster.write_with_input(1);
  cluster.lose("n1");
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(*rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(cluster.input());
    ASSERT_TRUE(path) << path.error().text;
    EXPECT_EQ(read_all(*path), "of all 1");
    EXPECT_TRUE(path->starts_with(cluster.node(rank.settings.node_name))) << *path;
    rank.expect_files(1);
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->complete_restart(true));
    rank.comm.barrier();
    EXPECT_TRUE(cluster.broadcasts(rank.settings.node_name).empty());
  });
}

TEST(SessionBroadcast, WhatADeadRestartHasLeftGoes) {
  BroadcastCluster cluster;
  cluster.write_with_input(1);
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(*rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart());
  });
  EXPECT_EQ(cluster.broadcasts("n2").size(), 1U);
  const Nodes moved = {"n0", "n1", "n2", "n3", "n0", "n1", "n2", "n3"};
  cluster.run_well(moved, [&](JobRank& rank) {
    rank.comm.barrier();
    EXPECT_TRUE(cluster.broadcasts(rank.settings.node_name).empty());
  });
}

TEST(SessionBroadcast, WhereThereIsNoRoomTheCheckpointIsKeptAndTheRunGoesOn) {
  BroadcastCluster cluster;
  cluster.write_with_input(1);
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool copy = operation.name == "create" &&
                        operation.path.find("/broadcast.") != std::string_view::npos;
      return copy ? fail(Code::no_space, "injected: {}", operation.path) : Status{};
    };
    ASSERT_TRUE(*rank.session->have_restart());
    const auto started = rank.session->start_restart();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::no_space);
    EXPECT_FALSE(*rank.session->have_restart());
  });
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

}  // namespace
}  // namespace cairn
