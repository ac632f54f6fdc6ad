// What makes a written dataset safe to restore and to protect: the boot of its node, the order of
// syncs, and a generation for each try.
#include <atomic>
#include <set>
#include <thread>

#include "files/passing_files.hpp"
#include "support/behind_bed.hpp"

namespace cairn {
namespace {

/// A node that has been started anew since, or whose store is no memory.
class OtherNode final : public PassingFiles {
 public:
  OtherNode(std::unique_ptr<Files> inner, std::string its_boot, bool has_disk)
      : PassingFiles(std::move(inner)), boot_(std::move(its_boot)), has_disk_(has_disk) {}

  std::string boot() override { return boot_.empty() ? PassingFiles::boot() : boot_; }
  Result<bool> is_memory(const std::string& path) override {
    if (has_disk_) return false;
    return PassingFiles::is_memory(path);
  }

 private:
  const std::string boot_;
  const bool has_disk_;
};

/// Dataset 1 is protected, and the job dies while dataset 2 is only written.
std::unique_ptr<JobBed> bed_of_exposed() {
  auto bed = behind_bed();
  bed->write(four_nodes(), {1});
  bed->die_exposed(four_nodes(), 2);
  return bed;
}

/// `prepare` comes before SCR_Init. Returns the dataset, the same on all ranks.
int restart_after(JobBed& bed, const JobBed::RankMain& prepare) {
  return bed.agreed(
      four_nodes(), [](JobRank& rank) { return rank.restart(); }, prepare);
}

// --- the boot of the node ---

JobBed::RankMain start_anew(const std::string& node) {
  return [node](JobRank& rank) {
    if (rank.settings.node_name != node) return;
    rank.files = std::make_unique<OtherNode>(std::move(rank.files), "another boot", false);
  };
}

/// Sizes and times are right there, and yet the bytes may be zeros.
TEST(SessionBehindRecords, WhatANodeWroteBeforeItWasStartedAnewIsNotRestored) {
  const auto bed = bed_of_exposed();
  EXPECT_EQ(restart_after(*bed, start_anew("n1")), 1) << bed->log_text();
  EXPECT_TRUE(bed->logs("has been started anew since")) << bed->log_text();
  EXPECT_TRUE(bed->logs("n1")) << "names the node: " << bed->log_text();
}

TEST(SessionBehindRecords, WhatIsProtectedIsRestoredAfterItsNodeWasStartedAnew) {
  const auto bed = bed_of_exposed();
  EXPECT_EQ(bed->restart(four_nodes()), 2) << "and protects it: " << bed->log_text();
  EXPECT_EQ(restart_after(*bed, start_anew("n1")), 2) << bed->log_text();
}

// --- a node that was not seen ---

/// The job dies when rank 0 has committed its part of the written dataset, and the others have
/// prepared theirs.
void die_amid_renames(JobBed& bed, int dataset) {
  const auto has_rank_0_committed = [&] {
    for (const std::string& part : bed.parts("n0", dataset))
      if (std::filesystem::exists(part + "/record")) return true;
    return false;
  };
  EXPECT_FALSE(bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name != "rename" || !operation.to.ends_with("/record") || rank.number() == 0)
        return {};
      while (!has_rank_0_committed()) std::this_thread::yield();
      throw Crash{};
    };
    (void)rank.write(dataset);
  }));
}

/// The run without n3 gives the committed part its checksums; those of n3 are only prepared.
TEST(SessionBehindRecords, PreparedPartsOfANodeThatIsBackGetChecksumsToo) {
  const auto bed = behind_bed();
  bed->write(four_nodes(), {1});
  die_amid_renames(*bed, 2);
  const std::string away = bed->node("n3") + ".away";
  std::filesystem::rename(bed->node("n3"), away);
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n3", "n4")), 1) << bed->log_text();
  std::filesystem::rename(away, bed->node("n3"));
  EXPECT_EQ(bed->restart(four_nodes()), 2) << bed->log_text();
  bed->lose("n1");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n1", "n5")), 2)
      << "it was protected: " << bed->log_text();
}

// --- syncs ---

/// Looks at one rank's Init: what was synced before its record of dataset 2 has got checksums.
class SyncWatch {
 public:
  Status operator()(const FileOperation& operation) {
    if (operation.path.find("/dataset.2.") == std::string_view::npos || is_settled_) return {};
    if (operation.name == "sync" || operation.name == "sync_folder")
      synced_.insert(std::string(operation.path));
    is_settled_ = operation.name == "rename" && operation.to.ends_with("/record");
    return {};
  }

  bool is_settled() const { return is_settled_; }
  bool has_synced(const std::string& path) const { return synced_.count(path) != 0; }

 private:
  std::set<std::string> synced_;
  bool is_settled_ = false;
};

/// Else a loss of power could leave checksums of bytes that are gone.
TEST(SessionBehindRecords, FilesAreSyncedBeforeTheirRecordHasChecksums) {
  const auto bed = bed_of_exposed();
  std::vector<SyncWatch> watches(four_nodes().size());
  const int from = restart_after(*bed, [&](JobRank& rank) {
    rank.files = std::make_unique<OtherNode>(std::move(rank.files), "", true);
    rank.hook = std::ref(watches[static_cast<std::size_t>(rank.number())]);
  });
  EXPECT_EQ(from, 2) << bed->log_text();
  for (const char* node : {"n0", "n1", "n2", "n3"})
    for (const std::string& part : bed->parts(node, 2)) {
      const SyncWatch& watch = watches[static_cast<std::size_t>(part.back() - '0')];
      EXPECT_TRUE(watch.is_settled()) << part;
      EXPECT_TRUE(watch.has_synced(std::filesystem::path(part).parent_path())) << part;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(part + "/files"))
        EXPECT_TRUE(!entry.is_regular_file() || entry.file_size() == 0 ||
                    watch.has_synced(entry.path()))
            << entry.path();
    }
}

/// Of a file of dataset 2 on rank 2, in the background.
class FailingSync {
 public:
  explicit FailingSync(Code code) : code_(code) {}
  Status meet(const JobRank& rank, const FileOperation& operation) {
    const bool is_data = operation.path.find("/files/ckpt.2/") != std::string_view::npos;
    if (rank.number() != 2 || operation.name != "sync" || !is_data || has_failed.exchange(true))
      return {};
    return fail(code_, "injected: cannot sync {}", operation.path);
  }
  std::atomic<bool> has_failed = false;

 private:
  const Code code_;
};

void write_on_disks(JobRank& rank) {
  rank.files = std::make_unique<OtherNode>(std::move(rank.files), "", true);
  ASSERT_TRUE(rank.init());
  rank.expect_written(1);
  EXPECT_TRUE(rank.session->have_restart()) << "waits";
}

/// After a sync that failed the kernel may have dropped the bytes, and the next one succeeds.
void fail_a_sync_once(Code code, const JobBed::RankMain& then) {
  const auto bed = behind_bed();
  FailingSync sync(code);
  const auto ended = bed->run(four_nodes(), [&](JobRank& rank) {
    write_on_disks(rank);
    rank.hook = [&](const FileOperation& operation) { return sync.meet(rank, operation); };
    rank.expect_written(2);
    then(rank);
    rank.hook = {};
    EXPECT_TRUE(sync.has_failed);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
  EXPECT_TRUE(ended);
  EXPECT_EQ(bed->restart(four_nodes()), 1) << bed->log_text();
}

TEST(SessionBehindRecords, WhatCouldNotBeSyncedIsNotProtectedByAnotherTry) {
  for (const Code code : {Code::io, Code::no_space})
    fail_a_sync_once(code, [&](JobRank& rank) { EXPECT_TRUE(rank.session->have_restart()); });
}

TEST(SessionBehindRecords, WhatCouldNotBeSyncedIsNotLeftToTheNextRun) {
  fail_a_sync_once(Code::io, [](JobRank& rank) {
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::io) << ended.error().text;
  });
}

TEST(SessionBehindRecords, WhatCouldNotBeSyncedIsGoneThoughTheJobDiesBeforeItsNextCall) {
  const auto bed = behind_bed();
  FailingSync sync(Code::io);
  EXPECT_FALSE(bed->run(four_nodes(), [&](JobRank& rank) {
    write_on_disks(rank);
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_of_parity = operation.path.find("/parity.") != std::string_view::npos;
      if (rank.number() == 2 && sync.has_failed && is_of_parity) throw Crash{};
      return sync.meet(rank, operation);
    };
    rank.expect_written(2);
    EXPECT_TRUE(rank.session->have_restart()) << "drops the parity of the try";
  }));
  EXPECT_TRUE(sync.has_failed);
  EXPECT_EQ(bed->restart(four_nodes()), 1) << bed->log_text();
}

// --- tries ---

/// A prepared record of the first try may lie on a node that is away when a later try is committed.
TEST(SessionBehindRecords, EachTryToProtectHasALaterGeneration) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    std::atomic<bool> is_full = true;
    std::vector<std::uint64_t> tries;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const std::string_view made = operation.name == "rename" ? operation.to : operation.path;
      const auto at = made.rfind("/parity.");
      if ((operation.name != "create" && operation.name != "rename") || at == std::string::npos)
        return {};
      tries.push_back(std::stoull(std::string(made.substr(at + std::string("/parity.").size()))));
      if (rank.number() == 2 && is_full) return fail(Code::no_space, "injected");
      return {};
    };
    rank.expect_written(2);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    EXPECT_FALSE(rank.session->start_output("ckpt.3", flag_checkpoint)) << "tries in vain";
    rank.comm.barrier();
    is_full = false;
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
    rank.hook = {};
    tries.erase(std::unique(tries.begin(), tries.end()), tries.end());
    EXPECT_GE(tries.size(), 3U);
    for (std::size_t i = 1; i < tries.size(); ++i) EXPECT_LT(tries[i - 1], tries[i]);
  });
}

// --- when the work comes before the program ---

TEST(Spread, TheFirstDatasetIsProtectedAtOnce) {
  const Spread spread = Spread::of(1'000, std::nullopt);
  EXPECT_TRUE(spread.is_late(1'000, 0, 100));
  EXPECT_TRUE(spread.is_late(1'001, 99, 100));
}

TEST(Spread, TheOthersAreReadInLessThanHalfTheTimeSinceTheLastOne) {
  const Spread spread = Spread::of(14'000, 6'000);
  EXPECT_FALSE(spread.is_late(14'875, 26, 100)) << "a quarter of the time has passed";
  EXPECT_TRUE(spread.is_late(14'875, 25, 100));
  EXPECT_FALSE(spread.is_late(17'499, 100, 100));
  EXPECT_TRUE(spread.is_late(17'500, 100, 100)) << "an eighth of it is left";
}

TEST(Spread, NoDatasetTakesLongerThanAMinute) {
  const std::int64_t hour_us = 3'600'000'000;
  const Spread spread = Spread::of(2 * hour_us, hour_us);
  EXPECT_FALSE(spread.is_late(2 * hour_us + 52'499'999, 100, 100));
  EXPECT_TRUE(spread.is_late(2 * hour_us + 52'500'000, 100, 100));
}

}  // namespace
}  // namespace cairn
