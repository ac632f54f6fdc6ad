// What a dataset survives: cairn.h.
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

TEST(SessionSafety, ADatasetGoesThroughAllStates) {
  SafetyBed bed;
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    EXPECT_EQ(safety(rank, 1), Safety::none);
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    EXPECT_EQ(safety(rank, 1), Safety::writing);
    EXPECT_EQ(safety(rank, 2), Safety::none);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    rank.comm.barrier();
    gate.open();
    expect_reached(rank, 1, Safety::flushed);
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  });
}

TEST(SessionSafety, WithoutRedundancyItIsWrittenOnly) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.run_async([](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_EQ(safety(rank, 1), Safety::written);
    expect_reached(rank, 1, Safety::written, 0);
    expect_error(rank, 1, Safety::protected_, 30, Code::bad_argument);
  });
}

/// Two of the four ranks are alone in their sets. A dataset is whole or lost, so the answer is the
/// same on the two others.
TEST(SessionSafety, ARankWithoutAPartnerMakesTheWholeDatasetWrittenOnly) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  const Nodes nodes = {"n0", "n0", "n0", "n1"};
  bed.run_well(nodes, [](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_EQ(safety(rank, 1), Safety::written);
  });
  bed.run_well(nodes, [](JobRank& rank) { EXPECT_EQ(safety(rank, 1), Safety::written); });
}

TEST(SessionSafety, AStoreThatAllNodesSeeProtectsWithoutRedundancy) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  bed.settings.stores[0].path = bed.node("shared");
  bed.settings.stores[0].view = StoreView::global;
  bed.settings.checkpoints[0].store = bed.settings.stores[0].path;
  std::filesystem::create_directories(bed.node("shared"));
  bed.run_async([](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
  });
}

TEST(SessionSafety, AnIncompleteDatasetIsNothing) {
  SafetyBed bed;
  bed.run_async([](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    ASSERT_TRUE(rank.write_files(1));
    EXPECT_FALSE(rank.session->complete_output(rank.number() != 3));
    EXPECT_EQ(safety(rank, 1), Safety::none);
    expect_error(rank, 1, Safety::written, 30, Code::not_found);
    finalize(rank);
  });
}

/// A copy is there once all parts are, although names are still being given.
TEST(SessionSafety, ACopyCountsAsSoonAsItIsPublished) {
  SafetyBed bed;
  Gate settling;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    const bool settles =
        operation.name == "rename" && operation.to.find("/rank ") != std::string_view::npos;
    if (settles) settling.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_reached(rank, 1, Safety::flushed);
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    EXPECT_EQ(bed.listed(), (Names{"ckpt.1"}));
    EXPECT_EQ(read_all(bed.file(1, 0)), "") << "no file has its name yet";
    rank.comm.barrier();
    settling.open();
    finalize(rank);
  });
  bed.expect_own_files(1);
}

/// Seven of eight parts are there, and one is not.
TEST(SessionSafety, APartThatIsMissingKeepsTheCopyFromCounting) {
  SafetyBed bed;
  Gate gate;
  std::atomic<int> marked = 0;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (stages(operation) && number == 5) gate.pass();
    for (int rank = 0; rank < 8; ++rank)
      if (is_done_marker(operation, rank)) ++marked;
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    gate.wait_for(1);
    while (marked < 7) sleep_ms(1);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    expect_too_late(rank, 1, Safety::flushed, 0.05);
    rank.comm.barrier();
    gate.open();
    expect_reached(rank, 1, Safety::flushed);
    finalize(rank);
  });
}

TEST(SessionSafety, TheAnswerNeverLooksIntoThePrefixDirectory) {
  SafetyBed bed;
  Gate gate;
  thread_local bool is_asking = false;
  std::atomic<int> looks = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_asking) ++looks;
    if (stages(operation)) gate.pass();
    return {};
  };
  bed.settings.log_json = true;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    is_asking = true;
    for (const int dataset : {1, 2}) (void)safety(rank, dataset);
    is_asking = false;
    rank.comm.barrier();
    EXPECT_EQ(looks, 0);
    gate.open();
    finalize(rank);
  });
}

TEST(SessionSafety, AnOutputThatHasLeftTheCacheIsFlushedStill) {
  SafetyBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_reached(rank, 1, Safety::flushed);
    (void)rank.session->datasets().drop("none of that name");  // waits until nothing is under way
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    rank.comm.barrier();
    EXPECT_TRUE(bed.parts("n0", 1).empty());
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  });
}

TEST(SessionSafety, ACheckpointThatWasEvictedWithoutACopyIsNothing) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  bed.run_async([](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    EXPECT_EQ(safeties(rank, {1, 2, 3}), "none protected protected");
  });
}

TEST(SessionSafety, OfTwoDatasetsOfOneNameTheNewerCounts) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  bed.run_async([](JobRank& rank) {
    rank.expect_written(1, flag_checkpoint | flag_output);
    expect_reached(rank, 1, Safety::flushed);
    rank.expect_written(1);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    EXPECT_EQ(safety(rank, 1), Safety::writing);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
  });
}

// --- what was there before ---

TEST(SessionSafety, ARestartedRunKnowsWhatIsInTheCachesAndWhatIsThereToo) {
  SafetyBed bed;
  bed.settings.flush_interval = 2;
  bed.write_and_finalize({1, 2});
  bed.write(four_nodes(), {3});
  bed.lose("n2");
  EXPECT_EQ(bed.restart(replaced(four_nodes(), "n2", "n4"),
                        [](JobRank& rank) {
                          EXPECT_EQ(safeties(rank, {1, 2, 3}), "none flushed protected");
                        }),
            3);
}

/// The members of each set have come to one node.
TEST(SessionSafety, ARestartOnOneNodeLosesTheProtection) {
  SafetyBed bed;
  bed.settings.flush_interval = 0;
  bed.write({"n0", "n0", "n1", "n1"}, {1});
  bed.lose("n1");
  EXPECT_EQ(bed.restart(Nodes(4, "n0"),
                        [](JobRank& rank) { EXPECT_EQ(safety(rank, 1), Safety::written); }),
            1);
}

TEST(SessionSafety, ACheckpointThatWasFetchedIsFlushed) {
  SafetyBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes(),
                        [](JobRank& rank) {
                          EXPECT_EQ(safety(rank, 2), Safety::flushed);
                          expect_reached(rank, 2, Safety::flushed, 0);
                        }),
            2);
}

TEST(SessionSafety, ACheckpointThatIsReadInPlaceIsFlushed) {
  SafetyBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  bed.settings.fetch_bypass = true;
  EXPECT_EQ(
      bed.restart(four_nodes(), [](JobRank& rank) { EXPECT_EQ(safety(rank, 2), Safety::flushed); }),
      2);
}

TEST(SessionSafety, ADatasetWrittenInPlaceIsFlushedOnceItIsComplete) {
  SafetyBed bed;
  bed.settings.checkpoints[0].bypass = true;
  bed.run_async([](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    EXPECT_EQ(safety(rank, 1), Safety::writing);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  });
}

// --- what takes a copy away ---

TEST(SessionSafety, ADeletedOrDroppedCopyDoesNotCount) {
  SafetyBed bed;
  bed.run_async([](JobRank& rank) {
    for (const int dataset : {1, 2}) {
      rank.expect_written(dataset, flag_checkpoint | flag_output);
      expect_reached(rank, dataset, Safety::flushed);
    }
    ASSERT_TRUE(rank.session->datasets().drop("ckpt.1"));
    EXPECT_EQ(safeties(rank, {1, 2}), "protected flushed");
    expect_error(rank, 1, Safety::flushed, 30, Code::bad_argument);
    ASSERT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_EQ(safety(rank, 2), Safety::none);
    finalize(rank);
  });
}

TEST(SessionSafety, ACopyThatAProgramCouldNotUseDoesNotCount) {
  SafetyBed bed;
  bed.write_and_finalize({1, 2});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed flushed");
    ASSERT_TRUE(rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(false));
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed none");
  });
}

/// Before the newer one has taken the names: any rank may be the first to do so.
TEST(SessionSafety, ACopyDoesNotCountWhenANewerDatasetTakesItsFileNames) {
  SafetyBed bed;
  Gate gate;
  std::atomic<bool> is_held = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_held && stages(operation)) gate.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_checkpoint | flag_output);
    expect_reached(rank, 1, Safety::flushed);
    ASSERT_TRUE(rank.session->start_output("ckpt.1 again", flag_checkpoint));
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    // One rank is enough.
    const bool wrote = rank.write_files(rank.number() == 6 ? 1 : 2).has_value();
    is_held = true;
    ASSERT_TRUE(rank.session->complete_output(wrote));
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    rank.comm.barrier();
    gate.open();
    const auto reached = rank.session->safety().wait("ckpt.1 again", Safety::flushed, 30);
    EXPECT_TRUE(reached && *reached);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    finalize(rank);
  });
}

TEST(SessionSafety, ACopyDoesNotCountWhenItIsPushedOut) {
  SafetyBed bed;
  bed.settings.prefix_size = 2;
  bed.settings.stores[0].count = 9;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_checkpoint | flag_output);
    expect_reached(rank, 1, Safety::flushed);
    for (const int dataset : {2, 3, 4}) {
      rank.expect_written(dataset);
      expect_reached(rank, dataset, Safety::flushed);
    }
    EXPECT_EQ(safeties(rank, {1, 2, 3, 4}), "flushed protected flushed flushed");
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.4", "ckpt.3", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
