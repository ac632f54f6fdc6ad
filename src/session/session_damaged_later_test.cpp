// Outputs that an earlier run has left in the caches only, and that are damaged or cannot be read
// there when a later run copies them.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// The device reads this file for it.
bool reads(const FileOperation& operation, std::string_view file) {
  return (operation.name == "read" || operation.name == "view_at") &&
         operation.path.ends_with(file);
}

/// Output 1 could not be copied before the first run ended, but checkpoint 2 was.
class LeftOutput : public testing::Test {
 protected:
  void leave(Scheme scheme) {
    leave_before(scheme, [](JobRank& rank) { rank.expect_written(2); });
  }
  /// As leave(), and it is the newest dataset: Init reads all of it.
  void leave_newest(Scheme scheme) {
    leave_before(scheme, [](JobRank&) {});
  }
  /// There is no room in the prefix directory for output 1.
  static std::function<Status(int, const FileOperation&)> first_is_full() {
    return [](int, const FileOperation& operation) -> Status {
      const bool is_first = operation.path.find("/ckpt.1/") != std::string::npos;
      return is_first && stages(operation) ? fail(Code::no_space, "injected") : Status{};
    };
  }
  std::string cached_file() const {
    return bed_.parts("n1", number_).front() + "/files/ckpt.1/rank 2.0";
  }

  void leave_before(Scheme scheme, const JobBed::RankMain& others) {
    bed_.settings.log_json = true;
    bed_.settings.checkpoints[0].scheme = scheme;
    bed_.settings.stores[0].count = 9;
    bed_.settings.flush_async = false;
    bed_.hook = first_is_full();
    bed_.run_async([&](JobRank& rank) {
      rank.expect_not_copied(1, flag_output);
      others(rank);
      rank.expect_not_all_copied();
    });
    bed_.settings.flush_async = true;
    bed_.hook = nullptr;
  }

  /// On nodes that have nothing of it.
  void run_elsewhere(const JobBed::RankMain& rank_main) {
    const Names nodes = {"n0", "n1", "n2", "n3"};
    for (const std::string& node : nodes) bed_.save(node, node);
    bed_.lose_all_nodes();
    bed_.run_async(rank_main);
    bed_.lose_all_nodes();
    for (const std::string& node : nodes) bed_.bring_back(node, node);
  }
  /// Of one of its files.
  void take_name() {
    std::filesystem::create_directories(folder_of(newer()));
    std::ofstream(newer()) << "by hand";
  }
  std::string newer() const { return bed_.file(1, 2); }

  SafetyBed bed_;
  int number_ = 1;  ///< of the dataset with the name ckpt.1 that is left
};

void expect_lost(const Status& completed) {
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().code, Code::lost) << completed.error().text;
  EXPECT_NE(completed.error().text.find("dataset 1 (ckpt.1) is lost"), std::string::npos)
      << completed.error().text;
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
  EXPECT_TRUE(bed_.logs("it is deleted when the next checkpoint is complete")) << bed_.log_text();
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

/// Of what Init finds damaged, that is no output, or has been copied.
TEST(DamagedInCache, IsNotMissedWhereItNeedNotBeCopied) {
  for (const int flags : {flag_checkpoint, flag_output}) {
    SafetyBed bed;
    bed.settings.log_json = true;
    bed.settings.checkpoints[0].scheme = Scheme::single;
    bed.settings.flush_interval = 10;
    bed.settings.stores[0].count = 9;
    bed.run_async([&](JobRank& rank) {
      rank.expect_written(1, flags);
      rank.expect_written(2);
      finalize(rank);
    });
    flip_bit(bed.parts("n1", 1).front() + "/files/ckpt.1/rank 2.0");
    bed.settings.checkpoints[0].scheme = Scheme::xor_;
    bed.run_async([&](JobRank& rank) {
      rank.expect_written(3);
      finalize(rank);
    });
    EXPECT_EQ(bed.logged_events("LOST"), 0) << flags;
    EXPECT_NE(bed.log_text().find("dataset 1 cannot be restored"), std::string::npos);
  }
}

// --- that Init reads, with all nodes there ---

class LostAtInit : public LeftOutput {
 protected:
  /// One call returns the loss, and what is left of the output is removed with the next checkpoint.
  void expect_told() {
    bed_.run_async([&](JobRank& rank) {
      expect_lost(rank.write(3));
      finalize(rank);
    });
    EXPECT_EQ(bed_.logged_events("LOST"), 1);
    EXPECT_TRUE(bed_.parts("n1", 1).empty());
    EXPECT_FALSE(bed_.logs("start again on the nodes")) << bed_.log_text();
  }
  /// Each file of three ranks of the set that begins with rank 0 or 1.
  void for_each_file_of_set(int first, const std::function<void(const std::string&)>& damage) {
    for (const int rank : {first, first + 2, first + 4})
      for (int file = 0; file < files_per_rank; ++file)
        damage(fmt::format(
            "{}/files/ckpt.1/rank {}.{}",
            bed_.parts(fmt::format("n{}", rank / 2), 1)[static_cast<std::size_t>(first)], rank,
            file));
  }
};

TEST_F(LostAtInit, WithAFlippedBit) {
  leave_newest(Scheme::single);
  flip_bit(cached_file());
  expect_told();
}

TEST_F(LostAtInit, WithAFileThatIsTooShort) {
  leave(Scheme::single);
  std::filesystem::resize_file(cached_file(), 1);
  expect_told();
}

TEST_F(LostAtInit, WithoutAFile) {
  leave(Scheme::single);
  std::filesystem::remove(cached_file());
  expect_told();
}

TEST_F(LostAtInit, WithMoreFlippedBitsThanItsSetCanRepair) {
  leave_newest(Scheme::xor_);
  for_each_file_of_set(0, [](const std::string& path) { flip_bit(path); });
  expect_told();
}

TEST_F(LostAtInit, WithFewerFilesThanItsSetNeeds) {
  leave(Scheme::xor_);
  for_each_file_of_set(0, [](const std::string& path) { std::filesystem::remove(path); });
  expect_told();
}

/// It could not be whole again even if there were room.
TEST_F(LostAtInit, ThoughAnotherSetFindsNoRoom) {
  leave(Scheme::xor_);
  for_each_file_of_set(1, [](const std::string& path) { std::filesystem::remove(path); });
  std::filesystem::remove(cached_file());
  bed_.hook = [](int rank, const FileOperation& operation) -> Status {
    const bool is_new = operation.name == "create" || operation.name == "write";
    const bool is_cached = operation.path.find("/files/ckpt.1/") != std::string::npos;
    return rank == 2 && is_new && is_cached ? fail(Code::no_space, "injected") : Status{};
  };
  expect_told();
}

/// Each set misses two members, which nodes that are away have.
TEST_F(LeftOutput, OfASetThatMissesTwoNodesIsNotLostWhileTheyAreAway) {
  leave(Scheme::xor_);
  for (const char* node : {"n1", "n3"}) {
    bed_.save(node, node);
    bed_.lose(node);
  }
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  EXPECT_FALSE(bed_.parts("n0", 1).empty());
  for (const char* node : {"n1", "n3"}) bed_.bring_back(node, node);
  bed_.run_async([&](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed_.is_listed(1)) << bed_.log_text();
}

/// The node that is away has what is missing. The store is full for a while.
TEST_F(LeftOutput, StaysForANodeThatIsAwayInAFullStoreToo) {
  leave(Scheme::single);
  bed_.save("n3", "n3");
  bed_.lose("n3");
  bed_.hook = [](int /*rank*/, const FileOperation& operation) -> Status {
    const bool is_new = operation.name == "create" || operation.name == "make_folder";
    const bool is_third = operation.path.find("/dataset.3.") != std::string::npos;
    return is_new && is_third ? fail(Code::no_space, "injected") : Status{};
  };
  bed_.run_async([&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    const Status written = rank.write(3);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Code::no_space) << written.error().text;
    EXPECT_TRUE(rank.session->finalize());
  });
  bed_.hook = nullptr;
  bed_.bring_back("n3", "n3");
  bed_.run_async([&](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed_.is_listed(1)) << bed_.log_text();
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
  run_elsewhere([&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_output));
    if (rank.number() == 0) {
      EXPECT_TRUE(rank.write_files(1));
    } else {
      const auto path = rank.session->route_file(
          fmt::format("{}/other/rank {}", rank.settings.prefix, rank.number()));
      ASSERT_TRUE(path);
      std::ofstream(*path) << "other";
    }
    EXPECT_TRUE(rank.session->complete_output(true));
    finalize(rank);
  });
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
