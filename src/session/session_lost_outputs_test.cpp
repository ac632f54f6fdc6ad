// Outputs that Init finds lost in the caches, and outputs of which a node that is away has more.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>

#include "support/left_output.hpp"

namespace cairn {
namespace {

/// No run has said so, and the next one, in which nothing fails, copies it.
void expect_not_lost(SafetyBed& bed, int dataset) {
  EXPECT_EQ(bed.logged_events("LOST"), 0);
  bed.hook = nullptr;
  bed.run_async([](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed.is_listed(dataset)) << bed.log_text();
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

// --- whose record is damaged ---

/// Its scheme keeps no other.
TEST_F(LostAtInit, WithADamagedRecord) {
  leave(Scheme::single);
  std::filesystem::resize_file(bed_.parts("n1", 1).front() + "/record", 10);
  expect_told();
}

/// The set has its record once more, but not the files.
TEST_F(LostAtInit, WithFewerFilesAndADamagedRecord) {
  leave(Scheme::xor_);
  for_each_file_of_set(0, [](const std::string& path) { std::filesystem::remove(path); });
  std::filesystem::resize_file(bed_.parts("n1", 1).front() + "/record", 10);
  expect_told();
}

/// A move from another node may have begun it here.
TEST_F(LostAtInit, IsNotLostWhereAPartHasNoRecord) {
  leave(Scheme::single);
  const std::string record = bed_.parts("n1", 1).front() + "/record";
  std::filesystem::rename(record, record + ".away");
  bed_.run_async([](JobRank& rank) {
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  EXPECT_FALSE(bed_.parts("n0", 1).empty());
}

/// The device may read it again.
TEST_F(LostAtInit, IsNotLostWhereARecordCannotBeRead) {
  leave(Scheme::single);
  bed_.hook = [](int rank, const FileOperation& operation) -> Status {
    const bool opens_it = operation.name == "open" && operation.path.ends_with("/rank.2/record") &&
                          operation.path.find("/dataset.1.") != std::string::npos;
    return rank == 2 && opens_it ? fail(Code::io, "injected") : Status{};
  };
  bed_.run_async([](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    EXPECT_NE(told.error().text.find("injected"), std::string::npos) << told.error().text;
    finalize(rank);
  });
  expect_not_lost(bed_, 1);
}

// --- what the program sees ---

TEST_F(LostAtInit, IsTheErrorOfAWaitToo) {
  leave(Scheme::single);
  std::filesystem::remove(cached_file());
  bed_.run_async([&](JobRank& rank) {
    expect_error(rank, 1, Safety::flushed, 1, Code::lost);
    expect_lost(rank.write(3));
    finalize(rank);
  });
}

/// A program may write no checkpoints.
TEST_F(LostAtInit, GoesWithTheNextOutput) {
  leave(Scheme::single);
  std::filesystem::remove(cached_file());
  bed_.run_async([&](JobRank& rank) {
    expect_lost(rank.write(3, flag_output));
    finalize(rank);
  });
  EXPECT_TRUE(bed_.logs("it is deleted with the next dataset")) << bed_.log_text();
  EXPECT_TRUE(bed_.parts("n1", 1).empty());
  bed_.run_async([&](JobRank& rank) {
    rank.expect_written(4, flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

/// An output too is one from which a run could go back, as long as no newer one is complete.
TEST_F(LostAtInit, StaysUntilTheNextCheckpointIfItIsOne) {
  leave_all({1}, flag_checkpoint | flag_output);
  std::filesystem::remove(cached_file());
  bed_.run_async([&](JobRank& rank) {
    EXPECT_FALSE(rank.write(3, flag_output));
    finalize(rank);
  });
  EXPECT_FALSE(bed_.parts("n1", 1).empty());
  bed_.run_async([&](JobRank& rank) {
    EXPECT_FALSE(rank.write(4));
    finalize(rank);
  });
  EXPECT_TRUE(bed_.parts("n1", 1).empty());
}

/// The newer one is lost for good, and the older one has parts on a node that is away.
TEST_F(LostAtInit, LeavesTheRemedyToAnotherOne) {
  leave_all({1, 2}, flag_output);
  std::filesystem::remove(bed_.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
  for (const std::string& part : bed_.parts("n3", 1)) std::filesystem::remove_all(part);
  bed_.run_async([](JobRank& rank) { (void)rank.session->finalize(); });
  EXPECT_TRUE(bed_.logs("dataset 1 cannot be restored")) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("start again on the nodes that have its parts")) << bed_.log_text();
}

// --- that was written, and not protected yet ---

class WrittenOutput : public SafetyBed {
 public:
  WrittenOutput() {
    settings.log_json = true;
    settings.checkpoints[0].behind = true;
    settings.stores[0].count = 9;
    write(four_nodes(), {1});
    EXPECT_FALSE(run(four_nodes(), [](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      rank.hook = [is_written = std::make_shared<std::atomic<bool>>(false)](
                      const FileOperation& operation) -> Status {
        if (operation.name == "rename" && operation.to.ends_with("/record")) *is_written = true;
        const bool is_parity = operation.path.find("/parity.") != std::string::npos;
        if (*is_written && operation.name == "create" && is_parity) throw Crash{};
        return {};
      };
      (void)rank.write(2, flag_output);
    }));
  }
  std::string cached_file() const { return parts("n1", 2).front() + "/files/ckpt.2/rank 2.0"; }
  void expect_told() {
    run_async([](JobRank& rank) {
      const Status told = rank.write(3);
      ASSERT_FALSE(told);
      EXPECT_EQ(told.error().code, Code::lost) << told.error().text;
      EXPECT_NE(told.error().text.find("dataset 2 (ckpt.2) is lost"), std::string::npos)
          << told.error().text;
      finalize(rank);
    });
    EXPECT_EQ(logged_events("LOST"), 1);
    EXPECT_TRUE(parts("n1", 2).empty());
  }
};

TEST(LostAtInitBehind, OfWhichAFileIsGone) {
  WrittenOutput bed;
  std::filesystem::remove(bed.cached_file());
  bed.expect_told();
}

TEST(LostAtInitBehind, OfWhichAFileHasChanged) {
  WrittenOutput bed;
  std::ofstream(bed.cached_file(), std::ios::app) << "x";
  bed.expect_told();
}

TEST(LostAtInitBehind, IsMissedThoughANewerOneOfItsNameIsThereWithOtherFiles) {
  WrittenOutput bed;
  run_elsewhere(bed, [](JobRank& rank) { write_with_other_files(rank, 2); });
  std::filesystem::remove(bed.cached_file());
  bed.expect_told();
}

/// A device may read it again.
class UnreadAtInitBehind : public testing::TestWithParam<const char*> {};

TEST_P(UnreadAtInitBehind, IsNotLost) {
  WrittenOutput bed;
  bed.hook = [](int rank, const FileOperation& operation) -> Status {
    const bool fails = operation.name == GetParam() ||
                       (operation.name == "view_at" && GetParam() == std::string("read"));
    return rank == 2 && fails && operation.path.ends_with("/files/ckpt.2/rank 2.0")
               ? fail(Code::io, "injected: cannot read {}", operation.path)
               : Status{};
  };
  bed.run_async([](JobRank& rank) {
    const Status told = rank.write(3);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
    finalize(rank);
  });
  expect_not_lost(bed, 2);
}

INSTANTIATE_TEST_SUITE_P(By, UnreadAtInitBehind, testing::Values("read", "info"),
                         [](const auto& by) { return std::string(by.param); });

/// No other node has a part of it, but this one comes back.
TEST(LostAtInitBehind, IsNotLostWhileANodeIsAway) {
  WrittenOutput bed;
  bed.save("n3", "n3");
  bed.lose("n3");
  bed.run_async([](JobRank& rank) {
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_EQ(bed.logged_events("LOST"), 0);
  bed.bring_back("n3", "n3");
  bed.run_async([](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed.is_listed(2)) << bed.log_text();
}

/// All had prepared its protected generation when they died, but only n3 had committed it. So the
/// next run may take it as protected with n3, and as only written without.
TEST(LostAtInitBehind, IsNotLostWhereTheNodeThatIsAwayHasItProtected) {
  SafetyBed bed;
  bed.settings.log_json = true;
  bed.settings.checkpoints[0].behind = true;
  bed.settings.stores[0].count = 9;
  bed.write(four_nodes(), {1});
  EXPECT_FALSE(bed.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [commits = std::make_shared<std::atomic<int>>(0)](
                    const FileOperation& operation) -> Status {
      const bool is_commit = operation.name == "rename" && operation.to.ends_with("/record") &&
                             operation.path.find("/dataset.2.") != std::string::npos;
      if (is_commit && ++*commits == 2) throw Crash{};
      return {};
    };
    (void)rank.write(2, flag_output);
    (void)rank.session->finalize();
  }));
  for (const std::string& part : bed.parts("n3", 2))
    std::filesystem::rename(part + "/record.new", part + "/record");
  std::filesystem::remove(bed.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
  bed.save("n3", "n3");
  bed.lose("n3");
  bed.run_async([](JobRank& rank) {
    rank.expect_written(3);
    finalize(rank);
  });
  bed.bring_back("n3", "n3");
  expect_not_lost(bed, 2);
}

// --- while the prefix directory may have it ---

/// By all ranks.
void work_again(JobRank& rank, std::atomic<bool>& fails) {
  rank.comm.barrier();
  fails = false;
  rank.comm.barrier();
}

class CopiedOutput : public SafetyBed {
 public:
  CopiedOutput() {
    settings.log_json = true;
    settings.checkpoints[0].scheme = Scheme::single;
    settings.flush_interval = 10;
    settings.stores[0].count = 9;
    run_async([](JobRank& rank) {
      rank.expect_written(1, flag_checkpoint | flag_output);
      rank.expect_written(2);
      finalize(rank);
    });
    std::filesystem::remove(parts("n1", 1).front() + "/files/ckpt.1/rank 2.0");
  }
};

TEST(LostInCache, IsNotMissedWhereThePrefixDirectoryFailsForAWhile) {
  CopiedOutput bed;
  std::atomic<bool> fails = true;
  bed.hook = [&](int, const FileOperation& operation) -> Status {
    return fails && operation.path.starts_with(bed.settings.prefix) ? fail(Code::io, "injected")
                                                                    : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    const Status told = rank.write(3);
    EXPECT_TRUE(told || told.error().code != Code::lost) << told.error().text;
    work_again(rank, fails);
    (void)rank.write(4);
    finalize(rank);
  });
  EXPECT_EQ(bed.logged_events("LOST"), 0);
}

/// The run makes one in its place, which may be the mount point.
TEST(LostInCache, IsNotMissedWhereThePrefixDirectoryDoesNotExist) {
  CopiedOutput bed;
  const std::string away = bed.settings.prefix + ".away";
  std::filesystem::rename(bed.settings.prefix, away);
  bed.run_async([&](JobRank& rank) {
    const Status told = rank.write(3);
    EXPECT_TRUE(told || told.error().code != Code::lost) << told.error().text;
    EXPECT_FALSE(bed.parts("n0", 1).empty()) << "it is not known yet that it is there";
    (void)rank.session->finalize();
  });
  std::filesystem::remove_all(bed.settings.prefix);
  std::filesystem::rename(away, bed.settings.prefix);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(4);
    finalize(rank);
  });
  EXPECT_EQ(bed.logged_events("LOST"), 0) << bed.log_text();
}

/// This run cannot know whether that directory has the output. So it tells that the output is not
/// copied, and does not call it lost.
TEST_F(LostAtInit, IsOnlyNotCopiedWhereThePrefixDirectoryDoesNotExist) {
  leave(Scheme::single);
  flip_bit(cached_file());
  std::filesystem::rename(bed_.settings.prefix, bed_.settings.prefix + ".away");
  bed_.run_async([](JobRank& rank) {
    const Status told = rank.write(3);
    const Status ended = rank.session->finalize();
    const bool is_told = (!told && told.error().code == Code::not_copied) ||
                         (!ended && ended.error().code == Code::not_copied);
    EXPECT_TRUE(is_told);
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 0);
  EXPECT_FALSE(bed_.logs("it is deleted")) << bed_.log_text();
  EXPECT_FALSE(bed_.parts("n1", 1).empty());
}

TEST(LostInCache, IsNotMissedWhileItsRecordInThePrefixDirectoryCannotBeRead) {
  CopiedOutput bed;
  std::filesystem::remove(bed.settings.prefix + "/.cairn/listing");
  const std::string dataset = folder_of(bed.parts("n1", 1).front());
  bed.hook = [&, uuid = dataset.substr(dataset.rfind('.') + 1)](
                 int, const FileOperation& operation) -> Status {
    const bool is_it = operation.path.starts_with(bed.settings.prefix + "/.cairn/datasets/") &&
                       operation.path.find(uuid) != std::string::npos && operation.name != "list";
    return is_it ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([](JobRank& rank) {
    const Status told = rank.write(3);
    EXPECT_TRUE(told || told.error().code != Code::lost) << told.error().text;
    (void)rank.session->finalize();
  });
  expect_not_lost(bed, 1);
}

/// The restart finds it damaged while the directory is away.
TEST_F(LostAtInit, IsToldOnceAfterThePrefixDirectoryWasAway) {
  leave_all({1}, flag_checkpoint | flag_output);
  std::atomic<bool> fails = true;
  bed_.hook = [&](int, const FileOperation& operation) -> Status {
    return fails && operation.path.starts_with(bed_.settings.prefix) ? fail(Code::io, "injected")
                                                                     : Status{};
  };
  bed_.run_async([&](JobRank& rank) {
    if (rank.number() == 0) flip_bit(cached_file());
    rank.comm.barrier();
    (void)rank.session->have_restart();
    EXPECT_FALSE(rank.session->start_restart());
    int told = 0;
    const auto count = [&](const Status& status) {
      if (status || status.error().text.find("dataset 1 (ckpt.1)") == std::string::npos) return;
      EXPECT_EQ(status.error().code, Code::lost) << status.error().text;
      ++told;
    };
    count(rank.write(3));
    work_again(rank, fails);
    for (const int dataset : {4, 5}) count(rank.write(dataset));
    count(rank.session->finalize());
    EXPECT_EQ(told, 1);
  });
}

/// That was away when the run began.
TEST_F(LostAtInit, IsToldWhenThePrefixDirectoryIsThereAgain) {
  leave(Scheme::single);
  std::filesystem::remove(cached_file());
  std::atomic<bool> fails = true;
  bed_.hook = [&](int, const FileOperation& operation) -> Status {
    return fails && operation.path.starts_with(bed_.settings.prefix) ? fail(Code::io, "injected")
                                                                     : Status{};
  };
  bed_.run_async([&](JobRank& rank) {
    (void)rank.write(3);
    work_again(rank, fails);
    const Status told = rank.write(4);
    const Status ended = rank.session->finalize();
    const bool is_told =
        (!told && told.error().code == Code::lost) || (!ended && ended.error().code == Code::lost);
    EXPECT_TRUE(is_told) << bed_.log_text();
  });
  EXPECT_EQ(bed_.logged_events("LOST"), 1);
}

// --- in a full store ---

class FullForThird {
 public:
  explicit FullForThird(
      AsyncBed& bed, std::function<bool()> is_full = [] { return true; }) {
    bed.hook = [is_full = std::move(is_full)](int, const FileOperation& operation) -> Status {
      const bool is_new = operation.name == "create" || operation.name == "make_folder";
      const bool is_third = operation.path.find("/dataset.3.") != std::string::npos;
      return is_new && is_third && is_full() ? fail(Code::no_space, "injected") : Status{};
    };
  }
};

/// It is in the prefix directory, and n3 is gone: what is left of it is of no use.
TEST(LostInCache, WhatIsCopiedGivesItsRoom) {
  SafetyBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.settings.stores[0].count = 9;
  bed.run_async([](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    finalize(rank);
  });
  EXPECT_TRUE(bed.is_listed(2));
  bed.lose("n3");
  const FullForThird full(bed, [&] { return !bed.parts("n0", 2).empty(); });
  bed.run_async([](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    (void)rank.write(3);
    rank.comm.barrier();
    const Status second = rank.write(3);
    EXPECT_TRUE(second) << second.error().text;
    (void)rank.session->finalize();
  });
}

/// SCR_Delete would not touch it.
TEST_F(LeftOutput, ThatIsLeftAloneIsNotCalledDeletable) {
  leave(Scheme::single);
  bed_.settings.distribute = false;
  const FullForThird full(bed_);
  bed_.run_async([](JobRank& rank) {
    const Status written = rank.write(3);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().text.find("SCR_Delete frees"), std::string::npos)
        << written.error().text;
    (void)rank.session->finalize();
  });
}

/// It waits for a node, and SCR_Delete frees its space.
TEST_F(LeftOutput, ThatWaitsForANodeIsCountedWhereTheStoreIsFull) {
  leave(Scheme::single);
  bed_.lose("n3");
  const FullForThird full(bed_);
  bed_.run_async([](JobRank& rank) {
    const Status written = rank.write(3);
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().text.find("the store holds 1 output that is not"), std::string::npos)
        << written.error().text;
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.1"));
    (void)rank.session->finalize();
  });
  EXPECT_TRUE(bed_.parts("n0", 1).empty());
}

}  // namespace
}  // namespace cairn
