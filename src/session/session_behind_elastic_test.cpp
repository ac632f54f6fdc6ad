// Another number of ranks restarts from caches that have one protected dataset, and a newer one
// that is only written.
#include "support/behind_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class MixedCaches : public ::testing::Test {
 protected:
  const Nodes four = {"n0", "n1", "n2", "n3"};  ///< four ranks

  MixedCaches() {
    bed_.settings.elastic = true;
    bed_.settings.flush_interval = 0;
    bed_.settings.checkpoints[0].behind = true;
    bed_.write(four_nodes(), {1});
    bed_.die_exposed(four_nodes(), 2);
  }

  /// Four ranks restart, and each reads what the eight have written. From which dataset; 0 if none
  /// is offered or the restart is refused.
  int restart_four(const Nodes& nodes) {
    int from = 0;
    bed_.run_well(nodes, [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      if (!name || !*name || !rank.session->start_restart()) return;
      const int dataset = std::stoi((*name)->substr((*name)->rfind('.') + 1));
      for (int writer = 0; writer < 8; ++writer)
        for (int number = 0; number < files_per_rank; ++number) {
          const auto path = rank.session->route_file(bed_.file(dataset, writer, number));
          ASSERT_TRUE(path) << path.error().text;
          ASSERT_TRUE(read_all(*path) == content_of(writer, number, dataset)) << *path;
        }
      EXPECT_TRUE(rank.session->complete_restart(true));
      if (rank.number() == 0) from = dataset;
    });
    return from;
  }
  std::string file_of_rank_4() const {
    return bed_.parts("n2", 2).at(0) + "/files/ckpt.2/rank 4.0";
  }

  PrefixJobBed bed_;
};

TEST_F(MixedCaches, WithAllNodesTheWrittenOneIsTaken) {
  EXPECT_EQ(restart_four(four), 2) << bed_.log_text();
  bed_.expect_own_files(2);
  bed_.lose_all_nodes();
  EXPECT_EQ(bed_.restart(four_nodes()), 2) << "it was copied: " << bed_.log_text();
}

TEST_F(MixedCaches, WithAChangedFileTheProtectedOneIsTaken) {
  std::ofstream(file_of_rank_4(), std::ios::app) << "more";
  EXPECT_EQ(restart_four(four), 1) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("has changed since rank 4 wrote it")) << bed_.log_text();
}

/// Another node may have it: so the run does not begin with an older one.
TEST_F(MixedCaches, WithAMissingPartNothingIsTakenAndTheFirstNumberOfRanksTakesTheProtectedOne) {
  fs::remove_all(bed_.parts("n2", 2).at(0));
  EXPECT_EQ(restart_four(four), 0) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("no node of this run has the part of rank 4")) << bed_.log_text();
  EXPECT_EQ(bed_.restart(four_nodes()), 1) << bed_.log_text();
}

/// For another number of ranks nothing is rebuilt.
TEST_F(MixedCaches, WithoutANodeNothingIsTakenAndNothingIsLost) {
  const std::string away = bed_.node("n1") + ".away";
  fs::rename(bed_.node("n1"), away);
  EXPECT_EQ(restart_four(replaced(four, "n1", "n4")), 0) << bed_.log_text();
  fs::rename(away, bed_.node("n1"));
  EXPECT_EQ(restart_four(four), 2) << "the node is back: " << bed_.log_text();
}

TEST_F(MixedCaches, AfterAnotherNumberOfRanksHasLookedTheFirstOneRestarts) {
  const std::string away = bed_.node("n1") + ".away";
  fs::rename(bed_.node("n1"), away);
  EXPECT_EQ(restart_four(replaced(four, "n1", "n4")), 0) << bed_.log_text();
  EXPECT_EQ(bed_.restart(replaced(four_nodes(), "n1", "n4")), 1)
      << "of the written one some parts have checksums now, and one is away: " << bed_.log_text();
  fs::rename(away, bed_.node("n1"));
  EXPECT_EQ(bed_.restart(four_nodes()), 2) << "the node is back: " << bed_.log_text();
  bed_.lose("n3");
  EXPECT_EQ(bed_.restart(replaced(four_nodes(), "n3", "n5")), 2) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
