// Outputs that an earlier run has left in the caches only, and that are damaged or cannot be read
// there when a later run copies them.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/left_output.hpp"

namespace cairn {
namespace {

/// The device reads this file for it.
bool reads(const FileOperation& operation, std::string_view file) {
  return (operation.name == "read" || operation.name == "view_at") &&
         operation.path.ends_with(file);
}

// --- whose files there has been written again ---

class DamagedOutput : public LeftOutput {
 protected:
  DamagedOutput() {
    leave(Scheme::single);
    flip_bit(cached_file());
  }
};

TEST_F(DamagedOutput, IsNotCalledSafeThoughItsNamesAreTaken) {
  take_name();
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3, flag_output));
    finalize(rank);
  });
  EXPECT_FALSE(bed_.logs("move it away")) << bed_.log_text();
  EXPECT_EQ(read_all(newer()), "by hand");
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

TEST_F(DamagedOutput, IsReturnedByOneRun) {
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3));
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("it is deleted with the next dataset")) << bed_.log_text();
  EXPECT_TRUE(bed_.parts("n1", 1).empty());
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(4);
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

TEST_F(DamagedOutput, IsNotMissedOnceItIsWrittenAgain) {
  run_elsewhere([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    finalize(rank);
  });
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(4);
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("is not missed")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("safe in the cache")) << bed_.log_text();
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  EXPECT_TRUE(bed_.parts("n1", 1).empty()) << "its leftovers go with the next checkpoint";
  bed_.expect_own_files(1);
}

/// SCR_Init reads it, to make sets for it.
TEST_F(DamagedOutput, IsReturnedToo) {
  bed_.settings.checkpoints[0].scheme = Scheme::xor_;
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3));
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

TEST_F(DamagedOutput, IsNotMissedWhereNothingIsToBeCopied) {
  bed_.settings.checkpoints[0].scheme = Scheme::xor_;
  bed_.settings.flush = false;
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
}

TEST_F(DamagedOutput, IsMissedWhereTheOneWrittenAgainIsDamagedToo) {
  run_elsewhere([&](JobRank& rank) {
    rank.expect_written(1, flag_output | flag_checkpoint);
    finalize(rank);
  });
  flip_bit(bed_.file(1, 2));
  run_elsewhere([&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    finalize(rank);
  });
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(4));
    finalize(rank);
  });
}

TEST_F(LeftOutput, IsMissedThoughAnOlderOneOfItsNameIsThere) {
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    finalize(rank);
  });
  number_ = 2;
  leave(Scheme::single);
  flip_bit(cached_file());
  bed_.run_async([&](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_NE(told.error().text.find("dataset 2 (ckpt.1) is lost"), std::string::npos)
        << told.error().text;
    finalize(rank);
  });
}

TEST_F(LeftOutput, IsMissedThoughANewerOneOfItsNameIsThereWithOtherFiles) {
  leave(Scheme::single);
  run_elsewhere([](JobRank& rank) { write_with_other_files(rank, 1); });
  flip_bit(cached_file());
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3, flag_output));
    finalize(rank);
  });
}

TEST_F(LeftOutput, ThatIsWholeStaysWhereItsNamesAreTaken) {
  leave(Scheme::single);
  take_name();
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(3);
    expect_error(rank, 1, Safety::flushed, 30, Code::not_copied);
    rank.expect_not_all_copied();
  });
  EXPECT_TRUE(bed_.logs("move it away")) << bed_.log_text();
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  bed_.run_async([&](JobRank& rank) {
    rank.comm.barrier();
    if (rank.number() == 0) std::filesystem::remove(newer());
    rank.comm.barrier();
    finalize(rank);
  });
  bed_.expect_own_files(1);
}

TEST_F(LeftOutput, WhoseNamesAreTakenLetsNoCallWaitForOtherCopies) {
  leave(Scheme::xor_);
  take_name();
  Gate gate;
  bed_.hold_copies_at(gate);
  Rescue rescue(gate, 10'000);
  bed_.run_async([&](JobRank& rank) {
    for (const int dataset : {3, 4}) rank.expect_written(dataset);
    rank.comm.barrier();
    const bool is_in_time = rank.number() != 0 || rescue.end();
    EXPECT_TRUE(is_in_time) << bed_.log_text();
    rank.expect_not_all_copied();
  });
}

TEST_F(LeftOutput, WhoseNamesAreTakenDelaysNoCopyOfWhatIsProtectedBehind) {
  leave(Scheme::xor_);
  take_name();
  bed_.settings.checkpoints[0].behind = true;
  std::atomic<bool> is_there = false;
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(4);
    for (int i = 0; i < 3000 && !is_there; ++i) {
      (void)rank.session->schedule().need_checkpoint();
      rank.comm.barrier();
      if (rank.number() == 0) {
        sleep_ms(5);
        is_there = bed_.is_listed(4);
      }
      rank.comm.barrier();
    }
    rank.expect_not_all_copied();
  });
  EXPECT_TRUE(is_there);
}

// --- of which the device cannot read a file ---

class UnreadableOutput : public LeftOutput {
 protected:
  void begin(Scheme scheme, int error_number) {
    leave(scheme);
    bed_.hook = [this, error_number, bad = cached_file()](int, const FileOperation& operation) {
      if (operation.path != bad) return Status{};
      if (operation.name == "write") is_bad_ = false;
      const bool fails = is_bad_ && reads(operation, bad);
      return fails ? Status(tl::unexpected(errno_error(error_number, "read", bad))) : Status{};
    };
  }

  static void expect_unrepaired(const Status& told) {
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    EXPECT_NE(told.error().text.find("cannot be repaired now"), std::string::npos)
        << told.error().text;
    EXPECT_NE(told.error().text.find("cannot read"), std::string::npos) << told.error().text;
  }
  void expect_copied_once_readable() {
    EXPECT_EQ(bed_.logged_events("LOST"), 0);
    is_bad_ = false;
    bed_.run_async([&](JobRank& rank) { finalize(rank); });
    bed_.expect_own_files(1);
  }

  std::atomic<bool> is_bad_ = true;  ///< until it is written anew
};

TEST_F(UnreadableOutput, IsRepairedAndCopied) {
  begin(Scheme::xor_, EIO);
  bed_.run_async([&](JobRank& rank) {
    expect_reached(rank, 1, Safety::flushed);
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("were repaired")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("Cairn goes on trying")) << bed_.log_text();
  bed_.expect_own_files(1);
}

/// Another try may read it.
TEST_F(UnreadableOutput, IsNotLostWhereNoSchemeHasItAndHoldsNoOtherBack) {
  begin(Scheme::single, EIO);
  bed_.run_async([&](JobRank& rank) {
    expect_unrepaired(rank.write(3));
    expect_reached(rank, 3, Safety::flushed);
    finalize(rank);
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.3", "ckpt.2"}));
  expect_copied_once_readable();
}

/// That ends, and says nothing of the file.
TEST_F(UnreadableOutput, WaitsWhereTheProcessHasTooManyFiles) {
  begin(Scheme::single, EMFILE);
  bed_.run_async([&](JobRank& rank) {
    expect_error(rank, 1, Safety::flushed, 0.2, Code::not_copied);
    rank.comm.barrier();
    is_bad_ = false;
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  bed_.expect_own_files(1);
}

TEST_F(UnreadableOutput, IsNotLostWhereAnotherPartOfItsSetIsDamaged) {
  begin(Scheme::xor_, EIO);
  for (const int rank : {0, 4})
    for (int file = 0; file < files_per_rank; ++file)
      flip_bit(fmt::format("{}/files/ckpt.1/rank {}.{}",
                           bed_.parts(fmt::format("n{}", rank / 2), 1).front(), rank, file));
  bed_.run_async([&](JobRank& rank) {
    expect_unrepaired(rank.write(3));
    finalize(rank);
  });
  expect_copied_once_readable();
}

TEST_F(UnreadableOutput, IsNotLostWhereItsNamesAreTakenToo) {
  begin(Scheme::single, EMFILE);
  take_name();
  bed_.run_async([&](JobRank& rank) {
    expect_unrepaired(rank.write(3));
    finalize(rank);
  });
  std::filesystem::remove(newer());
  expect_copied_once_readable();
}

/// A copy that goes on without the program finds it.
TEST(UnreadableOutputOfThisRun, IsReturnedOnce) {
  SafetyBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  Gate gate;
  std::atomic<bool> is_bad = false;
  bed.hook = [&](int, const FileOperation& operation) -> Status {
    if (stages(operation)) gate.pass();
    if (!is_bad || !reads(operation, "/files/ckpt.1/rank 2.0")) return {};
    return tl::unexpected(errno_error(EIO, "read", operation.path));
  };
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    rank.comm.barrier();
    is_bad = true;
    gate.open();
    expect_error(rank, 1, Safety::flushed, -1, Code::io);
    const Status told = rank.write(3, flag_output);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    EXPECT_EQ(told.error().text.find("dataset 2"), std::string::npos) << told.error().text;
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("Cairn goes on trying")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2"}));
}

/// A run has left a copy of which only the part of rank 2 is missing, and then n3 is lost.
TEST(UnreadablePart, OfACopyThatIsNearItsEndStaysForTheNextRun) {
  SafetyBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  std::atomic<int> staged = 0;
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    if (is_done_marker(operation, 6) || is_done_marker(operation, 7)) ++staged;
    return rank == 2 && stages(operation) ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    while (staged < 2) sleep_ms(1);
    finalize(rank);
  });
  const std::string bad = bed.parts("n1", 1).front() + "/files/ckpt.1/rank 2.0";
  bed.lose("n3");
  bed.hook = [bad](int, const FileOperation& operation) -> Status {
    if (!reads(operation, bad)) return {};
    return tl::unexpected(errno_error(EIO, "read", bad));
  };
  bed.run_async([&](JobRank& rank) { finalize(rank); });
  bed.hook = nullptr;
  bed.run_async([&](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed.is_listed(1)) << bed.log_text();
}

// --- that cannot be rebuilt for lack of room ---

std::function<Status(int, const FileOperation&)> no_room_for(Names datasets) {
  return [datasets = std::move(datasets)](int, const FileOperation& operation) -> Status {
    const bool is_made = operation.name == "create" || operation.name == "make_folder";
    const bool is_full =
        std::any_of(datasets.begin(), datasets.end(), [&](const std::string& dataset) {
          return operation.path.find("/dataset." + dataset + ".") != std::string::npos;
        });
    return is_made && is_full ? fail(Code::no_space, "injected: cannot write {}", operation.path)
                              : Status{};
  };
}

TEST_F(LeftOutput, ThatHasNoRoomToBeRebuiltGivesNoneToTheNextDataset) {
  leave(Scheme::xor_);
  bed_.lose("n1");
  bed_.hook = no_room_for({"1", "3"});
  bed_.run_async([&](JobRank& rank) {
    const Status written = rank.write(3);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Code::no_space) << written.error().text;
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
    EXPECT_NE(ended.error().text.find("dataset 1"), std::string::npos) << ended.error().text;
  });
  bed_.hook = nullptr;
  bed_.run_async([&](JobRank& rank) { finalize(rank); });
  ASSERT_TRUE(bed_.is_listed(1)) << bed_.log_text();
  bed_.expect_own_files(1);
}

/// Only what is lost is of no use any more.
TEST_F(LeftOutput, ThatHasNoRoomToBeRebuiltIsToldThoughANewerOneOfItsNameIsThere) {
  leave(Scheme::xor_);
  run_elsewhere([&](JobRank& rank) {
    rank.expect_written(1, flag_output | flag_checkpoint);
    finalize(rank);
  });
  bed_.lose("n1");
  bed_.hook = no_room_for({"1"});
  bed_.run_async([&](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    EXPECT_NE(told.error().text.find("try again"), std::string::npos) << told.error().text;
    finalize(rank);
  });
  EXPECT_FALSE(bed_.logs("is not missed")) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
