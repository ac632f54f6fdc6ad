// Outputs that a run has left in the caches, and whose parts later runs have moved or made anew on
// other nodes.
#include <filesystem>

#include "support/left_output.hpp"

namespace cairn {
namespace {

class MovedOutput : public LeftOutput {
 protected:
  /// A run on `nodes` does not lose it. The next one, with the nodes back that are away, copies it.
  void expect_kept_by(const Nodes& nodes, const Nodes& then = four_nodes()) {
    run_on(nodes, [](JobRank& rank) {
      const Status told = rank.write(3);
      EXPECT_TRUE(told || told.error().code == Code::not_copied) << told.error().text;
      (void)rank.session->finalize();
    });
    EXPECT_EQ(bed_.logged_events("LOST"), 0);
    bed_.hook = nullptr;
    for (const std::string& node : away_) bed_.bring_back(node, node);
    run_on(then, [](JobRank& rank) { finalize(rank); });
    EXPECT_TRUE(bed_.is_listed(1)) << bed_.log_text();
  }
  /// Until expect_kept_by() has them back.
  void take_away(const std::string& node) {
    bed_.save(node, node);
    bed_.lose(node);
    away_.push_back(node);
  }
  void bring_back(const std::string& node) {
    bed_.bring_back(node, node);
    std::erase(away_, node);
  }
  /// By all ranks: rank 0 does it, while no other goes on. The output can be copied from then on.
  void damage_amid(JobRank& rank, std::atomic<bool>& is_full, const std::function<void()>& damage) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      damage();
      is_full = false;
    }
    rank.comm.barrier();
  }
  /// There is no room in the prefix directory for output 1 meanwhile.
  std::function<Status(int, const FileOperation&)> full_while(std::atomic<bool>& is_full) {
    return [&is_full](int rank, const FileOperation& operation) -> Status {
      return is_full ? first_is_full()(rank, operation) : Status{};
    };
  }
  /// As full_while(), and on the node of rank 5 there is none for the parity of new sets.
  std::function<Status(int, const FileOperation&)> without_new_sets(std::atomic<bool>& is_full) {
    return [this, &is_full](int rank, const FileOperation& operation) -> Status {
      const bool is_new_set = operation.name == "create" &&
                              operation.path.find("/dataset.1.") != std::string::npos &&
                              operation.path.find("/parity.") != std::string::npos;
      if (rank == 5 && is_new_set) return fail(Code::no_space, "injected");
      return full_while(is_full)(rank, operation);
    };
  }
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
  void flip_files(const std::string& node, int rank) {
    for_each_file(node, rank, [](const std::string& path) {
      if (std::filesystem::file_size(path) > 0) flip_bit(path);
    });
  }
  void remove_files(const std::string& node, int rank) {
    for_each_file(node, rank, [](const std::string& path) {
      EXPECT_TRUE(std::filesystem::remove(path)) << path;
    });
  }

  Names away_;
};

// --- n4 had the place of n3, and made its part anew ---

class RebuiltOutput : public MovedOutput {
 protected:
  RebuiltOutput() {
    leave(Scheme::xor_);
    take_away("n3");
    recover_on(with_n4_);
  }

  const Nodes with_n4_ = replaced(four_nodes(), "n3", "n4");
  const Nodes with_both_ = {"n0", "n0", "n1", "n1", "n2", "n2", "n4", "n3"};
};

/// That part is damaged, with one more of its set.
TEST_F(RebuiltOutput, IsNotLostWhileTheNodeThatWroteItIsAway) {
  remove_files("n0", 0);
  remove_files("n4", 6);
  expect_kept_by(with_n4_);
}

/// Other ranks run there.
TEST_F(RebuiltOutput, IsNotLostWhereTheNodeThatWroteItHasOtherRanks) {
  remove_files("n0", 0);
  remove_files("n4", 6);
  bring_back("n3");
  expect_kept_by(with_both_);
}

/// Init reads the one part before it removes the other.
TEST_F(RebuiltOutput, IsNotLostWhereOneOfTwoPartsIsDamaged) {
  flip_files("n0", 0);
  flip_files("n4", 6);
  bring_back("n3");
  expect_kept_by(with_both_);
}

/// The program is told what a wait is told.
TEST_F(RebuiltOutput, IsNotLostWhereItsCopyFindsTheDamage) {
  std::atomic<bool> is_full = true;
  bed_.hook = full_while(is_full);
  run_on(with_n4_, [&](JobRank& rank) {
    damage_amid(rank, is_full, [this] {
      flip_files("n0", 0);
      flip_files("n4", 6);
    });
    for (int i = 0; i < 2; ++i) expect_error(rank, 1, Safety::flushed, 1, Code::not_copied);
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    EXPECT_NE(told.error().text.find("start again on the nodes that have its parts"),
              std::string::npos)
        << told.error().text;
    expect_error(rank, 1, Safety::flushed, 1, Code::not_copied);
    finalize(rank);
  });
  expect_kept_by(with_n4_);
}

/// So no rank knows who wrote its part.
TEST_F(RebuiltOutput, IsNotLostWhereItsRecordsAreDamaged) {
  for (const char* node : {"n0", "n1", "n4"})
    for (const std::string& part : bed_.parts(node, 1))
      std::filesystem::resize_file(part + "/record", 10);
  expect_kept_by(with_n4_);
}

/// A third node has made it anew once more.
TEST_F(RebuiltOutput, IsNotLostWhileTheNodeThatHasItIsAwayToo) {
  take_away("n4");
  const Nodes with_n5 = replaced(four_nodes(), "n3", "n5");
  recover_on(with_n5);
  flip_files("n0", 0);
  flip_files("n5", 6);
  expect_kept_by(with_n5, with_n4_);
}

/// The node that wrote it is back in its place, and the one that made it anew is away.
TEST_F(RebuiltOutput, IsNotLostWhileOnlyTheOtherNodeIsAway) {
  take_away("n4");
  bring_back("n3");
  remove_files("n0", 0);
  remove_files("n3", 6);
  expect_kept_by(four_nodes(), with_n4_);
}

TEST_F(RebuiltOutput, IsNotLostWhereItsCopyFindsThatTheOtherNodeIsAway) {
  take_away("n4");
  bring_back("n3");
  flip_files("n0", 0);
  flip_files("n3", 6);
  expect_kept_by(four_nodes(), with_n4_);
}

/// Init has made new sets for it, with other nodes.
TEST_F(MovedOutput, IsNotLostWhileANodeOfItsOldSetsIsAway) {
  leave(Scheme::xor_);
  take_away("n3");
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n2", "n4", "n4"};
  recover_on(crowded);
  for (const char* node : {"n0", "n1", "n2"})
    for (const std::string& part : bed_.parts(node, 1))
      for (const auto& entry : std::filesystem::directory_iterator(part))
        if (entry.path().filename().string().starts_with("parity."))
          std::filesystem::remove(entry.path());
  for (const int rank : {6, 7}) remove_files("n4", rank);
  expect_kept_by(crowded, replaced(crowded, "n4", "n3"));
}

/// So all parts are made, and none stays where it was.
TEST_F(RebuiltOutput, IsNotLostWhereAllPartsHaveMovedSince) {
  const Nodes shifted = {"n1", "n1", "n2", "n2", "n4", "n4", "n0", "n0"};
  recover_on(shifted);
  flip_files("n1", 0);
  flip_files("n0", 6);
  expect_kept_by(shifted, replaced(shifted, "n0", "n3"));
}

/// The node whose place n1 takes is away.
TEST_F(MovedOutput, IsNotLostWhereItsNodesAreShiftedByOne) {
  leave(Scheme::xor_);
  take_away("n0");
  const Nodes shifted = {"n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4"};
  recover_on(shifted);
  take_away("n1");
  bring_back("n0");
  remove_files("n0", 0);
  remove_files("n4", 6);
  expect_kept_by(replaced(shifted, "n1", "n0"), shifted);
}

/// A crash has left the folders of ranks that had no part there.
TEST_F(MovedOutput, IsNotLostWhereItWasMadeAnewInTheSecondTry) {
  leave(Scheme::xor_);
  take_away("n3");
  const std::string root = bed_.node("n4");
  const std::string like = folder_of(bed_.parts("n0", 1)[0]).substr(bed_.node("n0").size());
  for (const char* rank : {"/rank.6/files", "/rank.7/files"})
    std::filesystem::create_directories(root + like + rank);
  for (std::string path = root + like; path != root; path = folder_of(path))
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const Nodes with_n4 = replaced(four_nodes(), "n3", "n4");
  recover_on(with_n4);
  take_away("n4");
  bring_back("n3");
  flip_files("n0", 0);
  flip_files("n3", 6);
  expect_kept_by(four_nodes(), with_n4);
}

TEST_F(MovedOutput, IsNotMadeAnewWhereAStoreHasNoRoomToSaySo) {
  leave(Scheme::xor_);
  take_away("n3");
  bed_.hook = [](int rank, const FileOperation& operation) -> Status {
    const bool is_mark = operation.path.find("/elsewhere") != std::string::npos;
    return rank < 6 && operation.name == "create" && is_mark ? fail(Code::no_space, "injected")
                                                             : Status{};
  };
  const Nodes with_n4 = replaced(four_nodes(), "n3", "n4");
  run_on(with_n4, [](JobRank&) {});
  bed_.hook = nullptr;
  EXPECT_FALSE(bed_.is_listed(1));
  run_on(with_n4, [](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed_.is_listed(1)) << bed_.log_text();
}

/// So it is with a checkpoint that is to be copied.
TEST_F(MovedOutput, ThatIsACheckpointIsNotCopiedForEachWait) {
  bed_.settings.log_json = true;
  bed_.settings.checkpoints[0].scheme = Scheme::xor_;
  bed_.hook = first_is_full();
  bed_.run_async([](JobRank& rank) {
    (void)rank.write(1);
    (void)rank.session->finalize();
  });
  take_away("n3");
  const Nodes with_n4 = replaced(four_nodes(), "n3", "n4");
  recover_on(with_n4);
  std::atomic<bool> is_full = true;
  bed_.hook = full_while(is_full);
  run_on(with_n4, [&](JobRank& rank) {
    damage_amid(rank, is_full, [this] {
      flip_files("n0", 0);
      flip_files("n4", 6);
    });
    for (int i = 0; i < 3; ++i) expect_error(rank, 1, Safety::flushed, 1, Code::not_copied);
    (void)rank.session->finalize();
  });
}

// --- ranks have changed places ---

/// Nothing is left where the parts were before. A later run may still find them there.
TEST_F(MovedOutput, IsNotCalledLost) {
  leave(Scheme::xor_);
  const Nodes nodes = {"n1", "n1", "n0", "n0", "n2", "n2", "n3", "n3"};
  recover_on(nodes);
  for (const char* node : {"n0", "n1", "n2"}) bed_.save(node, node);
  remove_files("n1", 0);
  remove_files("n0", 2);
  remove_files("n2", 4);
  away_ = {"n0", "n1", "n2"};
  expect_kept_by(nodes);
}

/// All nodes see the store, so it does not matter which of them wrote it.
TEST_F(MovedOutput, IsLostInASharedStoreWhereverItWasWritten) {
  StoreSettings& store = bed_.settings.stores[0];
  store.path = bed_.node("shared");
  store.group = "WORLD";
  store.view = StoreView::global;
  bed_.settings.checkpoints[0].store = store.path;
  leave(Scheme::single);
  for (int file = 0; file < files_per_rank; ++file)
    std::filesystem::remove(
        fmt::format("{}/files/ckpt.1/rank 2.{}", bed_.parts("shared", 1)[2], file));
  run_on({"m0", "m0", "m1", "m1", "m2", "m2", "m3", "m3"}, [](JobRank& rank) {
    expect_lost(rank.write(3));
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

// --- and there was no room for new sets, so the old parts stay ---

class CrowdedOutput : public MovedOutput {
 protected:
  CrowdedOutput() {
    leave(Scheme::xor_);
    bed_.hook = without_new_sets(is_full_);
  }

  const Nodes crowded_ = {"n0", "n1", "n0", "n1", "n2", "n2", "n3", "n3"};
  std::atomic<bool> is_full_ = true;
};

TEST_F(CrowdedOutput, IsNotLostWhileItHasItsOldSetsToo) {
  run_on(crowded_, [&](JobRank& rank) {
    damage_amid(rank, is_full_, [this] {
      remove_files("n0", 2);  // n1 has the part that was written
      remove_files("n2", 4);
    });
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    (void)rank.session->finalize();
  });
  bed_.hook = nullptr;
  expect_kept_by(four_nodes());
}

/// All ranks are back where they wrote it, and the parts that were moved are whole.
TEST_F(CrowdedOutput, IsNotLostWhileAnotherNodeHasAPartToo) {
  run_on(crowded_, [](JobRank&) {});
  remove_files("n1", 2);
  remove_files("n2", 4);
  expect_kept_by(four_nodes(), crowded_);
}

/// It has SINGLE, and nothing but its damaged record is left to say who wrote it.
TEST_F(MovedOutput, IsNotLostWhereTheRecordOfAMovedPartIsDamaged) {
  leave(Scheme::single);
  bed_.settings.checkpoints[0].scheme = Scheme::xor_;
  std::atomic<bool> is_full = true;
  bed_.hook = without_new_sets(is_full);
  run_on({"n0", "n1", "n0", "n0", "n2", "n2", "n3", "n3"}, [](JobRank&) {});
  take_away("n1");
  for (const std::string& part : bed_.parts("n0", 1))
    if (part.ends_with("rank.2") || part.ends_with("rank.3"))
      std::filesystem::resize_file(part + "/record", 10);
  bed_.hook = nullptr;
  expect_kept_by({"n0", "n0", "n0", "n0", "n2", "n2", "n3", "n3"});
}

}  // namespace
}  // namespace cairn
