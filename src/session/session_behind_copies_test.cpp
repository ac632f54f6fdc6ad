// A dataset is to be copied once it is protected behind the program, and other copies are under
// way: which calls wait for these.
#include <atomic>
#include <filesystem>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// Three outputs, one after the other. No copy gets anywhere while the gate is shut.
class ThirdOutput : public testing::Test {
 protected:
  ThirdOutput() {
    bed_.settings.checkpoints[0].behind = true;
    bed_.settings.stores[0].count = 9;
    bed_.hold_copies_at(gate_);
  }

  /// The first two are under way, and the third one is protected, then `more`. No call may wait
  /// until the gate is opened for it.
  void run(const JobBed::RankMain& more) {
    bed_.run_async([&](JobRank& rank) {
      for (const int dataset : {1, 2, 3}) rank.expect_written(dataset, flag_output);
      while (safety(rank, 3) == Safety::written) sleep_ms(1);
      more(rank);
    });
  }
  /// More than the parity of its scheme can repair.
  void damage_on_two_nodes(int dataset) const {
    for (const char* node : {"n1", "n2"})
      for (const std::string& part : bed_.parts(node, dataset))
        for (const auto& file : std::filesystem::recursive_directory_iterator(part + "/files"))
          if (file.is_regular_file() && file.file_size() > 0) flip_bit(file.path());
  }
  void expect_no_wait(JobRank& rank) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue_.end()) << "a call has waited for a copy";
    }
    rank.comm.barrier();
  }

  SafetyBed bed_;
  Gate gate_;
  Rescue rescue_{gate_, 10'000};
};

TEST_F(ThirdOutput, NeedCheckpointAndShortWaitsDoNotWaitForThem) {
  run([&](JobRank& rank) {
    EXPECT_TRUE(rank.session->schedule().need_checkpoint());
    expect_too_late(rank, 3, Safety::flushed, 0);
    expect_reached(rank, 3, Safety::protected_, -1);
    expect_too_late(rank, 3, Safety::flushed, 0.01);
    EXPECT_TRUE(rank.session->schedule().need_checkpoint());
    expect_no_wait(rank);
    expect_reached(rank, 3, Safety::flushed, -1);
    finalize(rank);
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

/// As a program that makes more than the prefix directory takes has to be slowed down.
TEST_F(ThirdOutput, TheNextStartBeginsItsCopy) {
  run([&](JobRank& rank) {
    EXPECT_TRUE(rank.session->schedule().need_checkpoint());
    expect_no_wait(rank);
    ASSERT_TRUE(rank.session->start_output("ckpt.4", flag_output));
    EXPECT_NE(safety(rank, 1), Safety::protected_) << "there was no room before";
    EXPECT_TRUE(bed_.comes_to_be_listed(3));
    EXPECT_FALSE(rank.session->complete_output(false));
    finalize(rank);
  });
}

/// What an earlier copy has come to is returned by the next Complete, whichever call sees it.
TEST_F(ThirdOutput, TheLossThatANeedCheckpointFindsIsReturnedByTheNextComplete) {
  run([&](JobRank& rank) {
    gate_.wait_for(8);  // the data are read behind it
    rank.comm.barrier();
    if (rank.number() == 0) damage_on_two_nodes(1);
    expect_no_wait(rank);
    const auto is_there = [&] {
      return allreduce(rank.comm, safety(rank, 1) != Safety::none ? 1 : 0, Reduce::max) != 0;
    };
    while (is_there()) {
      sleep_ms(1);
      EXPECT_TRUE(rank.session->schedule().need_checkpoint());
    }
    const Status completed = rank.write(4, flag_output);
    ASSERT_FALSE(completed);
    EXPECT_EQ(completed.error().code, Code::lost) << completed.error().text;
    EXPECT_NE(completed.error().text.find("(ckpt.1) is lost"), std::string::npos)
        << completed.error().text;
    (void)rank.session->finalize();
  });
}

TEST_F(ThirdOutput, AFinalizeThatLeavesCopiesDoesNotWaitForThem) {
  bed_.settings.flush_at_end = FlushAtEnd::leave;
  run([&](JobRank& rank) {
    const Status ended = rank.session->finalize();
    EXPECT_TRUE(ended) << ended.error().text;
    expect_no_wait(rank);
  });
  EXPECT_TRUE(
      bed_.logs("the copies of dataset 1 (ckpt.1), dataset 2 (ckpt.2), dataset 3 (ckpt.3) to "))
      << bed_.log_text();
}

TEST_F(ThirdOutput, AFinalizeWithALimitKeepsIt) {
  bed_.settings.flush_at_end_seconds = 1;
  run([&](JobRank& rank) {
    rank.expect_not_all_copied();
    expect_no_wait(rank);
  });
}

}  // namespace
}  // namespace cairn
