// Outputs that a run has left in the caches, and whose parts later runs have moved or made anew on
// other nodes.
#include <filesystem>

#include "support/left_output.hpp"

namespace cairn {
namespace {

class MovedOutput : public LeftOutput {
 protected:
  /// Init makes it whole, and cannot copy it.
  void recover_on(const Nodes& nodes) {
    bed_.hook = first_is_full();
    run_on(nodes, [](JobRank&) {});
    bed_.hook = nullptr;
  }
  void run_on(const Nodes& nodes, const JobBed::RankMain& rank_main) {
    EXPECT_TRUE(bed_.run(nodes, [&](JobRank& rank) {
      rank.background = make_background_thread();
      rank.hook = [this, number = rank.number()](const FileOperation& operation) {
        return bed_.hook ? bed_.hook(number, operation) : Status{};
      };
      ASSERT_TRUE(rank.init());
      rank_main(rank);
    }));
  }
  /// Of the part of that rank on that node.
  void for_each_file(const std::string& node, int rank,
                     const std::function<void(const std::string&)>& action) {
    for (const std::string& part : bed_.parts(node, 1))
      if (part.ends_with(fmt::format("/rank.{}", rank)))
        for (int file = 0; file < files_per_rank; ++file)
          action(fmt::format("{}/files/ckpt.1/rank {}.{}", part, rank, file));
  }
  void remove_files(const std::string& node, int rank) {
    for_each_file(node, rank, [](const std::string& path) {
      EXPECT_TRUE(std::filesystem::remove(path)) << path;
    });
  }
};

// --- n4 had the place of n3, and made its part anew ---

class RebuiltOutput : public MovedOutput {
 protected:
  RebuiltOutput() {
    leave(Scheme::xor_);
    bed_.save("n3", "n3");
    bed_.lose("n3");
    recover_on(with_n4_);
  }
  /// That part is damaged, with one more of its set.
  void damage() {
    remove_files("n0", 0);
    remove_files("n4", 6);
  }
  void expect_kept_by(const Nodes& nodes) {
    run_on(nodes, [](JobRank& rank) {
      rank.expect_written(3);
      (void)rank.session->finalize();
    });
    expect_copied_with_n3();
  }
  void expect_copied_with_n3() {
    EXPECT_EQ(bed_.logged_events("LOST"), 0);
    bed_.bring_back("n3", "n3");
    bed_.run_async([](JobRank& rank) { finalize(rank); });
    EXPECT_TRUE(bed_.is_listed(1)) << bed_.log_text();
  }

  const Nodes with_n4_ = replaced(four_nodes(), "n3", "n4");
};

TEST_F(RebuiltOutput, IsNotLostWhileTheNodeThatWroteItIsAway) {
  damage();
  expect_kept_by(with_n4_);
}

/// Other ranks run there.
TEST_F(RebuiltOutput, IsNotLostWhereTheNodeThatWroteItHasOtherRanks) {
  damage();
  bed_.bring_back("n3", "n3");
  expect_kept_by({"n0", "n0", "n1", "n1", "n2", "n2", "n4", "n3"});
}

/// Init does not read it.
TEST_F(RebuiltOutput, IsNotLostWhereItsCopyFindsTheDamage) {
  const auto flip = [](const std::string& path) {
    if (std::filesystem::file_size(path) > 0) flip_bit(path);
  };
  for_each_file("n0", 0, flip);
  for_each_file("n4", 6, flip);
  run_on(with_n4_, [](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    (void)rank.session->finalize();
  });
  expect_copied_with_n3();
}

// --- n0 and n1 have changed places, and nothing is left where the parts were before ---

TEST_F(MovedOutput, IsToldOnceIfItIsLost) {
  leave(Scheme::xor_);
  const Nodes nodes = {"n1", "n1", "n0", "n0", "n2", "n2", "n3", "n3"};
  recover_on(nodes);
  remove_files("n1", 0);
  remove_files("n0", 2);
  remove_files("n2", 4);
  for (const int dataset : {3, 4})
    run_on(nodes, [&](JobRank& rank) {
      const Status told = rank.write(dataset);
      EXPECT_EQ(told.has_value(), dataset == 4);
      if (!told) expect_lost(told);
      finalize(rank);
    });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
  EXPECT_TRUE(bed_.parts("n0", 1).empty());
}

}  // namespace
}  // namespace cairn
