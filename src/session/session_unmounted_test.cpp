// The file system of the prefix directory is unmounted while the program runs, so that another
// directory is at its path until it is mounted again: nothing there counts, and nothing is written
// there.
#include <filesystem>
#include <optional>

#include "cache/prefix_id_file.hpp"
#include "files/passing_files.hpp"
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t both = flag_checkpoint | flag_output;

/// The mount point is on another file system.
class Mountable final : public PassingFiles {
 public:
  Mountable(std::unique_ptr<Files> inner, std::string prefix, const std::atomic<bool>& is_mounted)
      : PassingFiles(std::move(inner)), prefix_(std::move(prefix)), is_mounted_(is_mounted) {}
  Result<FileInfo> info(const std::string& path) override {
    auto found = PassingFiles::info(path);
    if (found && path == prefix_ && !is_mounted_) ++found->id.file_system;
    return found;
  }

 private:
  const std::string prefix_;
  const std::atomic<bool>& is_mounted_;
};

class MountBed : public SafetyBed {
 public:
  MountBed() { clock = std::make_unique<SkewedClock>(40); }

  void unmount() {
    is_mounted = false;
    fs::rename(settings.prefix, mounted_);
    if (fs::exists(below_))
      fs::rename(below_, settings.prefix);
    else
      fs::create_directory(settings.prefix);
    before_ = names_below();
  }
  void mount() {
    for (const std::string& name : names_below())
      EXPECT_TRUE(std::binary_search(before_.begin(), before_.end(), name))
          << "it was made in the mount point: " << name;
    fs::remove_all(settings.prefix);
    fs::rename(mounted_, settings.prefix);
    is_mounted = true;
  }
  /// An earlier run has used the mount point itself.
  void use_mount_point() {
    write_and_finalize({9}, both);
    fs::rename(settings.prefix, below_);
    fs::create_directory(settings.prefix);
    lose_all_nodes();
    // Else the run could not know which of the two is the mount point.
    ASSERT_TRUE(replace_prefix_id(*make_posix_files(), *clock, settings.prefix, PrefixId{7}));
  }

  /// Does `action` on one rank while the others wait.
  template <class Action>
  static void by_one(JobRank& rank, Action action) {
    rank.comm.barrier();
    if (rank.number() == 0) action();
    rank.comm.barrier();
  }

  /// Of dataset 1. Copies are held at the gate.
  void unmount_amid_copy(JobRank& rank, Gate& gate) {
    rank.expect_written(1, both);
    by_one(rank, [&] {
      gate.wait_for(8);
      unmount();
      gate.open();
    });
  }

  /// Before SCR_Init.
  void see_mounts(JobRank& rank) {
    rank.files = std::make_unique<Mountable>(std::move(rank.files), settings.prefix, is_mounted);
  }
  std::atomic<bool> is_mounted = true;

  Names names_below() const {
    Names names;
    for (const auto& entry : fs::recursive_directory_iterator(settings.prefix))
      names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    return names;
  }
  void expect_told() const {
    EXPECT_TRUE(logs("is not the directory that it was when this run began")) << log_text();
    EXPECT_TRUE(logs("cairn index id")) << log_text();
    EXPECT_FALSE(logs("has taken over")) << "no other run is there: " << log_text();
  }

 private:
  const std::string mounted_ = node("mounted");
  const std::string below_ = node("below");
  Names before_;
};

/// It could be removed only from the directory itself.
void expect_not_given_up(MountBed& bed) {
  bed.clock =
      std::make_unique<SkewedClock>(20);  // on a slow machine a wait lasts until the next try
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    bed.unmount_amid_copy(rank, gate);
    const auto asked = rank.session->have_restart();
    ASSERT_FALSE(asked);
    EXPECT_NE(asked.error().text.find("may not be mounted"), std::string::npos)
        << asked.error().text;
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    MountBed::by_one(rank, [&] { bed.mount(); });
    expect_reached(rank, 1, Safety::flushed, -1);
    rank.expect_written(2, both);
    expect_reached(rank, 2, Safety::flushed, -1);
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("has taken over")) << bed.log_text();
  for (const int dataset : {1, 2}) EXPECT_TRUE(bed.arrived_by_itself(dataset)) << bed.log_text();
}

class SessionUnmounted : public testing::TestWithParam<bool> {
 protected:
  SessionUnmounted() {
    if (is_mount_point_used()) bed.use_mount_point();
  }
  bool is_mount_point_used() const { return GetParam(); }

  /// As ranks do that wait for their own copies.
  void run_waiting(const JobBed::RankMain& rank_main) {
    bed.settings.flush_async = false;
    EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
      bed.see_mounts(rank);
      ASSERT_TRUE(rank.init());
      rank_main(rank);
    }));
  }
  void expect_told_and_copied(const Names& names) {
    bed.expect_told();
    expect_copied(names);
  }
  void expect_copied(const Names& names) const {
    EXPECT_EQ(bed.listed(), names);
    for (const std::string& name : names) bed.expect_own_files(name.back() - '0');
  }

  MountBed bed;
};

TEST_P(SessionUnmounted, CopiesBehindTheProgramGoOnWhenItIsMountedAgain) {
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, both);
    EXPECT_TRUE(rank.session->have_restart());  // nothing is under way
    MountBed::by_one(rank, [&] { bed.unmount(); });
    (void)rank.write(2, both);
    const auto reached = wait_for(rank, 2, Safety::flushed, -1);
    ASSERT_FALSE(reached);
    EXPECT_EQ(reached.error().code, Code::not_copied);
    EXPECT_NE(reached.error().text.find("may not be mounted"), std::string::npos)
        << reached.error().text;
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed protected");
    MountBed::by_one(rank, [&] {
      EXPECT_FALSE(bed.parts("n0", 2).empty());
      bed.mount();
    });
    (void)rank.write(3, both);  // it may have news of the failure
    for (const int dataset : {2, 3}) expect_reached(rank, dataset, Safety::flushed, -1);
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("has taken over")) << "no other run is there: " << bed.log_text();
  expect_copied({"ckpt.3", "ckpt.2", "ckpt.1"});
}

TEST_P(SessionUnmounted, CopiesOfTheProgramItselfGoOnWhenItIsMountedAgain) {
  run_waiting([&](JobRank& rank) {
    rank.expect_written(1, both);
    MountBed::by_one(rank, [&] { bed.unmount(); });
    rank.expect_not_copied(2, both);
    MountBed::by_one(rank, [&] { bed.mount(); });
    rank.expect_written(3, both);
    finalize(rank);
  });
  expect_told_and_copied({"ckpt.3", "ckpt.2", "ckpt.1"});
}

/// The run has put nothing there yet, so it is not the owner.
TEST_P(SessionUnmounted, TheRunDoesNotBecomeTheOwnerOfTheMountPoint) {
  run_waiting([&](JobRank& rank) {
    MountBed::by_one(rank, [&] { bed.unmount(); });
    rank.expect_not_copied(1, both);
    MountBed::by_one(rank, [&] { bed.mount(); });
    rank.expect_written(2, both);
    finalize(rank);
  });
  expect_told_and_copied({"ckpt.2", "ckpt.1"});
}

/// In a directory that the run has not used yet, which is on the same file system.
TEST(SessionMadeAnew, TheDirectoryHasItsIdAgain) {
  MountBed bed;
  bed.settings.flush_async = false;
  const auto files = make_posix_files();
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    const PrefixId id = read_prefix_id(*files, bed.settings.prefix).id;
    MountBed::by_one(rank, [&] {
      fs::remove_all(bed.settings.prefix);
      fs::create_directory(bed.settings.prefix);
    });
    rank.expect_written(1, both);
    EXPECT_EQ(read_prefix_id(*files, bed.settings.prefix).id, id);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

/// It is unmounted between the look at its id and the first directory that the owner makes.
TEST_P(SessionUnmounted, TheRunDoesNotKeepAMountPointThatItHasJustBecomeTheOwnerOf) {
  bed.settings.flush_async = false;
  std::atomic<bool> is_due = false;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool makes = operation.name == "make_folder" &&
                         operation.path.starts_with(bed.settings.prefix + "/.cairn");
      if (makes && is_due.exchange(false)) {
        bed.is_mounted = false;
        fs::rename(bed.settings.prefix, bed.node("aside"));
        fs::create_directories(bed.settings.prefix + "/.cairn");
      }
      return {};
    };
    bed.see_mounts(rank);
    ASSERT_TRUE(rank.init());
    MountBed::by_one(rank, [&] { is_due = true; });
    rank.expect_not_copied(1, both);
    MountBed::by_one(rank, [&] {
      EXPECT_FALSE(is_due);
      fs::remove_all(bed.settings.prefix);
      fs::rename(bed.node("aside"), bed.settings.prefix);
      bed.is_mounted = true;
    });
    rank.expect_written(2, both);
    finalize(rank);
  }));
  expect_told_and_copied({"ckpt.2", "ckpt.1"});
}

/// The copy is published, and its files do not have their names yet.
TEST_P(SessionUnmounted, FilesGetTheirNamesWhenItIsMountedAgain) {
  Gate gate;
  std::atomic<int> misses = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    const bool names_file =
        operation.name == "rename" && operation.path.find("/.cairn.") != std::string::npos;
    if (names_file) gate.pass();
    if (names_file && !fs::exists(operation.path)) ++misses;
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, both);
    expect_reached(rank, 1, Safety::flushed, -1);
    MountBed::by_one(rank, [&] {
      gate.wait_for(8);
      bed.unmount();
      fs::create_directory(bed.settings.prefix + "/ckpt.1");  // so that it can be synced there
      gate.open();
      while (misses < 8) sleep_ms(1);
      sleep_ms(50);  // for what follows the renames
      fs::remove_all(bed.settings.prefix + "/ckpt.1");
      bed.mount();
    });
    (void)rank.write(2, both);  // it may have news of the failure
    finalize(rank);
  });
  expect_copied({"ckpt.2", "ckpt.1"});
}

TEST_P(SessionUnmounted, ACopyIsNotGivenUpMeanwhile) {
  expect_not_given_up(bed);
  expect_copied({"ckpt.2", "ckpt.1"});
}

/// The owner of the mount point has an epoch with a lower number than that of this run.
TEST(SessionOfALaterEpoch, ACopyIsNotGivenUpMeanwhile) {
  MountBed bed;
  bed.use_mount_point();
  fs::create_directories(PrefixFolder(bed.settings.prefix).closed(1));
  expect_not_given_up(bed);
}

TEST_P(SessionUnmounted, TheEndOfTheRunNamesWhatIsInTheCachesOnly) {
  for (const bool is_async : {true, false}) {
    const int first = is_async ? 1 : 3;
    const auto rank_main = [&](JobRank& rank) {
      rank.expect_written(first, both);
      EXPECT_TRUE(rank.session->have_restart());  // nothing is under way
      MountBed::by_one(rank, [&] { bed.unmount(); });
      (void)rank.write(first + 1, both);
      const Status ended = rank.session->finalize();
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
      EXPECT_EQ(ended.error().text.find(fmt::format("ckpt.{},", first)), std::string::npos)
          << ended.error().text;
      EXPECT_NE(ended.error().text.find("cairn index id"), std::string::npos)
          << "if it is replaced: " << ended.error().text;
      MountBed::by_one(rank, [&] { bed.mount(); });
    };
    if (is_async)
      bed.run_async(rank_main);
    else
      run_waiting(rank_main);
    bed.expect_told();
    EXPECT_TRUE(bed.is_listed(first));
    EXPECT_FALSE(bed.is_listed(first + 1));
    EXPECT_EQ(bed.restart(four_nodes()), first + 1);
    EXPECT_TRUE(bed.is_listed(first + 1)) << "SCR_Init copies it";
  }
}

/// And why, with what the user can do.
void expect_unfinished(JobRank& rank) {
  const Status ended = rank.session->finalize();
  ASSERT_FALSE(ended);
  EXPECT_TRUE(ended.error().text.starts_with("not finished: the copy of dataset 1"))
      << ended.error().text;
  EXPECT_NE(ended.error().text.find("cairn index id"), std::string::npos) << ended.error().text;
}

TEST_P(SessionUnmounted, TheEndOfTheRunSaysWhyACopyThatIsUnderWayIsNotFinished) {
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    bed.unmount_amid_copy(rank, gate);
    expect_unfinished(rank);
    MountBed::by_one(rank, [&] { bed.mount(); });
  });
}

/// Then nothing waits until the place of the directory is looked at.
TEST_P(SessionUnmounted, TheEndOfTheTimeSaysWhyACopyThatIsUnderWayIsNotFinished) {
  Gate gate;
  bed.hold_copies_at(gate);
  bed.settings.flush_at_end_seconds = 1;
  bed.run_async([&](JobRank& rank) {
    bed.unmount_amid_copy(rank, gate);
    EXPECT_FALSE(wait_for(rank, 1, Safety::flushed, -1));
    expect_unfinished(rank);
    MountBed::by_one(rank, [&] { bed.mount(); });
  });
}

TEST(SessionAboveAMountPoint, TheEndOfTheTimeDoesNotWaitForALookAtThePlace) {
  MountBed bed;
  bed.use_mount_point();
  Gate copies;
  Gate answers;
  Rescue rescue(answers, 20'000);
  std::atomic<bool> hangs = false;
  bed.hold_copies_at(copies);
  bed.hook = [&, before = bed.hook](int rank, const FileOperation& operation) -> Status {
    if (hangs && rank == 3 && operation.path.ends_with("/.cairn/id")) answers.pass();
    return before(rank, operation);
  };
  bed.settings.flush_at_end_seconds = 1;
  bed.run_async([&](JobRank& rank) {
    bed.unmount_amid_copy(rank, copies);
    EXPECT_FALSE(wait_for(rank, 1, Safety::flushed, -1));
    MountBed::by_one(rank, [&] { hangs = true; });
    EXPECT_FALSE(rank.session->finalize());
    EXPECT_TRUE(rank.number() != 3 || rank.session->is_held()) << "its thread looks still";
    MountBed::by_one(rank, [&] {
      EXPECT_TRUE(rescue.end()) << "a call waited for the directory";
      bed.mount();
    });
  });
}

TEST_P(SessionUnmounted, ADirectoryThatTheUserHasReplacedIsUsedWhenItHasTheId) {
  const auto files = make_posix_files();
  run_waiting([&](JobRank& rank) {
    rank.expect_written(1, both);
    const PrefixId id = read_prefix_id(*files, bed.settings.prefix).id;
    MountBed::by_one(rank, [&] { bed.unmount(); });
    rank.expect_not_copied(2, both);
    MountBed::by_one(rank, [&] {
      EXPECT_TRUE(
          bed.logs(fmt::format("cairn index id {} -p {}", text_of(id), bed.settings.prefix)))
          << bed.log_text();
      ASSERT_TRUE(replace_prefix_id(*files, *bed.clock, bed.settings.prefix, id));
    });
    rank.expect_written(3, both);
    finalize(rank);
  });
  for (const int dataset : {2, 3}) EXPECT_TRUE(bed.is_listed(dataset));
}

INSTANTIATE_TEST_SUITE_P(MountPoints, SessionUnmounted, testing::Bool(),
                         [](const auto& used) { return used.param ? "Used" : "Empty"; });

}  // namespace
}  // namespace cairn
