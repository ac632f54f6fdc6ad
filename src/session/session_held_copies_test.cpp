// Calls and settings that meet a copy in the background that has not arrived yet.
#include <atomic>
#include <thread>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

class HeldBed : public SafetyBed {
 public:
  HeldBed() {
    settings.stores[0].count = 9;
    hold_copies_at(gate);
  }

  /// Opens the gate while `call` of all ranks waits. The call must not end before.
  void expect_waits(JobRank& rank, const std::function<void()>& call) {
    std::thread opens;
    if (rank.number() == 0)
      opens = std::thread([this] {
        sleep_ms(50);
        is_open_ = true;
        gate.open();
      });
    call();
    EXPECT_TRUE(is_open_) << "the call did not wait for the copy";
    if (opens.joinable()) opens.join();
  }

  Gate gate;

 private:
  std::atomic<bool> is_open_ = false;
};

/// It is overdue when the second run begins.
TEST(SessionHeldCopies, ARestartWaitsForTheCopyAndItsFailureIsNotedThere) {
  HeldBed bed;
  bed.settings.flush_interval = 1000;
  bed.run_async([](JobRank& rank) { rank.expect_written(1); });
  bed.settings.flush_interval = 1;
  bed.run_async([&](JobRank& rank) {
    EXPECT_FALSE(bed.is_listed(1));
    bed.expect_waits(rank, [&] { EXPECT_TRUE(rank.session->have_restart()); });
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(false));
    EXPECT_EQ(safety(rank, 1), Safety::none);
  });
  EXPECT_TRUE(bed.is_listed(1));
  EXPECT_EQ(bed.restart(four_nodes()), 0) << "no restart takes it";
}

TEST(SessionHeldCopies, ADatasetThatIsWrittenInPlaceWaitsForTheCopyOfAnOlderOne) {
  HeldBed bed;
  CheckpointSettings in_place = bed.settings.checkpoints[0];
  in_place.bypass = true;
  in_place.interval = 2;
  bed.settings.checkpoints.push_back(in_place);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    bed.expect_waits(rank, [&] { rank.expect_written(2); });
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed flushed");
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2}) bed.expect_own_files(dataset);
}

TEST(SessionHeldCopies, TheOlderCopyIsDeletedOnlyWhenTheNewerOneIsThere) {
  HeldBed bed;
  bed.settings.prefix_size = 1;
  std::atomic<bool> is_shut = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_shut && stages(operation)) bed.gate.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_reached(rank, 1, Safety::flushed);
    rank.comm.barrier();
    is_shut = true;
    rank.comm.barrier();
    rank.expect_written(2);
    EXPECT_EQ(safeties(rank, {1, 2}), "protected protected");
    if (rank.number() == 0) {
      bed.gate.wait_for(1);
      EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
      bed.expect_own_files(1);
    }
    bed.expect_waits(rank, [&] { expect_reached(rank, 2, Safety::flushed); });
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.2"});
  bed.expect_own_files(2);
}

/// Eight ranks have died amid the copy, with all nodes of theirs there.
TEST(SessionHeldCopies, AnotherNumberOfRanksEndsTheCopyAndRestartsFromIt) {
  HeldBed bed;
  bed.settings.elastic = true;
  bed.die_amid_copy({1});
  EXPECT_FALSE(bed.is_listed(1));
  EXPECT_TRUE(bed.run({"n0", "n1", "n2", "n3"}, [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_TRUE(rank.session->complete_restart(true));
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  })) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
  bed.expect_own_files(1);
}

TEST(SessionHeldCopies, AfterAnElasticRestartTheNextOneWaitsForTheCopyOfTheNewRanks) {
  HeldBed bed;
  bed.settings.elastic = true;
  const Nodes four = {"n0", "n1", "n2", "n3"};
  bed.hook = nullptr;
  bed.write_and_finalize({1});
  EXPECT_TRUE(bed.run(four, [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_TRUE(rank.session->complete_restart(true));
    rank.hook = [&bed](const FileOperation& operation) -> Status {
      if (stages(operation)) bed.gate.pass();
      return {};
    };
    rank.expect_written(2);
    EXPECT_FALSE(bed.is_listed(2));
    bed.expect_waits(rank, [&] { EXPECT_TRUE(rank.session->have_restart()); });
    finalize(rank);
  })) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
