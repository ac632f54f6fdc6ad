// Several stores and descriptors, what is evicted when, and whether it all fits.
#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "cache/catalog.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

const Nodes other_nodes = {"m0", "m0", "m1", "m1", "m2", "m2", "m3", "m3"};

/// Every third checkpoint goes to a store that all see.
void add_shared_store(JobBed& bed) {
  StoreSettings store;
  store.path = bed.node("shared");
  store.group = "WORLD";
  store.view = StoreView::global;
  store.count = 2;
  bed.settings.stores.push_back(store);
  CheckpointSettings checkpoint;
  checkpoint.id = 1;
  checkpoint.store = store.path;
  checkpoint.scheme = Scheme::single;
  checkpoint.group = "WORLD";
  checkpoint.interval = 3;
  bed.settings.checkpoints.push_back(checkpoint);
}

TEST(SessionLevels, SharedStoreOutlivesAllNodes) {
  JobBed bed;
  add_shared_store(bed);
  bed.write(four_nodes(), {1, 2, 3, 4});
  EXPECT_EQ(bed.parts("n0"), bed.parts("n0", 4)) << "the private store keeps one";
  EXPECT_EQ(bed.parts("shared"), bed.parts("shared", 3));
  EXPECT_EQ(bed.parts("shared").size(), 8U);
  for (const std::string node : {"n0", "n1", "n2", "n3"}) bed.lose(node);
  EXPECT_EQ(bed.restart(other_nodes, [](JobRank& rank) { rank.expect_written(4); }), 3);
  EXPECT_EQ(bed.restart(other_nodes), 4);
}

/// Which node a rank was on does not matter there.
TEST(SessionLevels, SharedStoreServesRanksThatHaveChangedTheirNodes) {
  JobBed bed;
  add_shared_store(bed);
  bed.write(four_nodes(), {1, 2, 3});
  const Nodes permuted = {"n3", "n1", "n0", "n2", "n1", "n3", "n2", "n0"};
  EXPECT_EQ(bed.restart(permuted), 3) << bed.log_text();
  EXPECT_EQ(bed.parts("shared", 3).size(), 8U) << "nothing was moved";
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(4); }), 3);
}

TEST(SessionLevels, EachStoreKeepsItsOwnCount) {
  JobBed bed;
  add_shared_store(bed);
  bed.write(four_nodes(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(bed.parts("n1"), bed.parts("n1", 10));
  EXPECT_EQ(bed.parts("shared").size(), 16U);
  EXPECT_EQ(bed.parts("shared", 6).size(), 8U);
  EXPECT_EQ(bed.parts("shared", 9).size(), 8U);
  EXPECT_EQ(bed.restart(four_nodes()), 10);
}

TEST(SessionLevels, ADescriptorForOutputsIsNotForCheckpointsIfAnotherFits) {
  JobBed bed;
  CheckpointSettings plain = bed.settings.checkpoints[0];
  plain.id = 1;
  plain.set_size = 4;
  bed.settings.checkpoints[0].output = true;
  bed.settings.checkpoints[0].set_size = 2;
  bed.settings.checkpoints.push_back(plain);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
  });
  const auto files = make_posix_files();
  for (const auto& [dataset, members] : {std::pair{1, 4U}, {2, 2U}}) {
    const HeldPart part = read_part(*files, {bed.parts("n2", dataset).at(0)}, 4);
    ASSERT_EQ(part.own.size(), 1U);
    EXPECT_EQ(part.own[0].record.encoding.members.size(), members) << dataset;
  }
}

TEST(SessionLevels, SetSizeOfEachDescriptor) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.settings.checkpoints[0].set_size = 2;
  CheckpointSettings larger = bed.settings.checkpoints[0];
  larger.id = 1;
  larger.interval = 2;
  larger.set_size = 4;
  bed.settings.checkpoints.push_back(larger);
  bed.write(four_nodes(), {1, 2});
  const auto files = make_posix_files();
  for (const auto& [dataset, members] : {std::pair{1, 2U}, {2, 4U}}) {
    const std::vector<std::string> parts = bed.parts("n2", dataset);
    ASSERT_EQ(parts.size(), 2U);
    const HeldPart part = read_part(*files, {parts[0]}, 4);
    ASSERT_EQ(part.own.size(), 1U);
    EXPECT_EQ(part.own[0].record.encoding.members.size(), members) << dataset;
  }
}

TEST(SessionLevels, OutputsAreNotEvictedAndNotRestartedFrom) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(1, flag_output); });
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(2, flag_checkpoint | flag_output);
    for (const int dataset : {3, 4}) rank.expect_written(dataset);
  });
  for (const int kept : {1, 2, 4}) EXPECT_EQ(bed.parts("n3", kept).size(), 2U) << kept;
  EXPECT_EQ(bed.parts("n3").size(), 6U);
  EXPECT_EQ(bed.restart(four_nodes()), 4);
}

/// A dataset with neither flag is of no use to a later run.
TEST(SessionLevels, WhatIsNoCheckpointTakesNoCheckpointsPlace) {
  for (const bool keep_old : {true, false}) {
    JobBed bed;
    bed.settings.keep_old = keep_old;
    bed.run_well(four_nodes(), [](JobRank& rank) {
      rank.expect_written(1);
      rank.expect_written(2, 0);
      rank.expect_written(3, 0);
    });
    EXPECT_EQ(bed.parts("n0", 1).size(), 2U);
    EXPECT_TRUE(bed.parts("n0", 2).empty());
    EXPECT_EQ(bed.parts("n0", 3).size(), 2U);
    EXPECT_EQ(bed.restart(four_nodes()), 1);
  }
}

TEST(SessionLevels, WhatIsWrittenBeforeTheRestartDoesNotHideIt) {
  for (const std::uint32_t flags : {0U, flag_output}) {
    JobBed bed;
    bed.write(four_nodes(), {1});
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      rank.expect_written(2, flags);
      EXPECT_EQ(rank.restart(), 1);
      rank.expect_written(3);
      EXPECT_FALSE(rank.session->have_restart().value());
    });
  }
}

/// Nodes that are away may come back with it.
TEST(SessionLevels, AnOutputDoesNotGiveUpACheckpointThatCannotBeRestoredNow) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  for (const std::string name : {"n0", "n1"}) {
    bed.save("away." + name, name);
    bed.lose(name);
  }
  bed.run_well({"m0", "m0", "m1", "m1", "n2", "n2", "n3", "n3"}, [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart().value());
    rank.expect_written(2, flag_output);
    rank.expect_written(3, 0);
  });
  for (const std::string name : {"n0", "n1"}) bed.bring_back("away." + name, name);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionLevels, TheNumberOfAnOutputIsNotGivenAgainAfterARestart) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    for (const int output : {2, 3}) rank.expect_written(output, flag_output);
  });
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(4); }), 1);
  for (const int kept : {2, 3, 4}) EXPECT_EQ(bed.parts("n0", kept).size(), 2U) << kept;
  EXPECT_EQ(bed.parts("n0").size(), 6U);
}

TEST(SessionLevels, CurrentWithAnOutputDoesNotCountCheckpointsAnew) {
  JobBed bed;
  add_shared_store(bed);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    rank.expect_written(3, flag_output);
    EXPECT_TRUE(rank.session->datasets().current("ckpt.3"));
    rank.expect_written(4);
  });
  EXPECT_EQ(bed.parts("shared", 4).size(), 8U) << "it is the third checkpoint";
}

TEST(SessionLevels, OldOneStaysUntilTheNewIsProtectedUnlessGivenUp) {
  for (const bool keep_old : {true, false}) {
    JobBed bed;
    bed.write(four_nodes(), {1});
    bed.settings.keep_old = keep_old;
    EXPECT_EQ(bed.restart(four_nodes(),
                          [&](JobRank& rank) {
                            ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
                            rank.comm.barrier();
                            EXPECT_EQ(bed.parts("n0", 1).size(), keep_old ? 2U : 0U);
                            EXPECT_TRUE(rank.write_files(2));
                            EXPECT_TRUE(rank.session->complete_output(true));
                          }),
              1);
    EXPECT_EQ(bed.logs("CAIRN_KEEP_OLD=0"), !keep_old) << bed.log_text();
    EXPECT_EQ(bed.restart(four_nodes()), 2);
  }
}

TEST(SessionLevels, PurgedCachesAreEmpty) {
  JobBed bed;
  add_shared_store(bed);
  bed.write(four_nodes(), {1, 2, 3, 4});
  bed.settings.cache_purge = true;
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  for (const std::string node : {"n0", "n1", "n2", "n3", "shared"})
    EXPECT_TRUE(bed.parts(node).empty()) << node;
}

std::uint64_t free_bytes_at(const std::string& folder) {
  std::filesystem::create_directories(folder);
  return std::filesystem::space(folder).available;
}

TEST(SessionLevels, TheExpectedSizeCountsBesideALoadedCheckpoint) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.settings.checkpoint_bytes = std::uint64_t{1} << 50;
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs("has too little space")) << bed.log_text();
}

TEST(SessionLevels, ASmallCheckpointInTheCacheMakesLittleRoomForALargeOne) {
  for (const int tenths : {4, 6}) {
    JobBed bed;
    bed.write({"n0"}, {1});
    bed.settings.checkpoint_bytes =
        free_bytes_at(bed.node("n0")) / 10 * static_cast<std::uint64_t>(tenths);
    EXPECT_EQ(bed.restart({"n0"}), 1);
    EXPECT_EQ(bed.logs("has too little space"), tenths == 6) << bed.log_text();
  }
}

TEST(SessionLevels, AStoreSaidToBePrivateButSeenByTwoNodesIsRefused) {
  JobBed bed;
  bed.settings.stores[0].path = bed.node("all");
  bed.settings.checkpoints[0].store = bed.settings.stores[0].path;
  std::atomic<int> refused = 0;
  bed.run(four_nodes(), [&](JobRank& rank) {
    const Status ready = rank.init();
    ASSERT_FALSE(ready);
    if (ready.error().text.find("add %n") != std::string::npos) ++refused;
  });
  EXPECT_EQ(refused, 8);
  bed.settings.stores[0].group = "WORLD";
  bed.write(four_nodes(), {1});
  EXPECT_EQ(bed.restart(four_nodes()), 1) << "nor does the refusal leave anything behind";
}

namespace fs = std::filesystem;

/// A store that no checkpoint uses, before the one that all use.
void add_spare_store(JobBed& bed) {
  StoreSettings store;
  store.path = bed.node("%n/spare");
  bed.settings.stores.insert(bed.settings.stores.begin(), store);
}

/// A file in the place of its directory on n1.
void make_spare_unusable(const JobBed& bed) {
  fs::remove_all(bed.node("n1/spare"));
  fs::create_directories(bed.node("n1"));
  std::ofstream(bed.node("n1/spare")) << "not a directory";
}

void make_spare_usable(const JobBed& bed) { fs::remove(bed.node("n1/spare")); }

/// The folders of the job in the store that all use.
void remove_job_folders(const JobBed& bed) {
  for (const std::string node : {"n0", "n1", "n2", "n3"})
    fs::remove_all(bed.node(node) + "/tester");
}

/// On one rank, when all have come here.
void meanwhile(JobRank& rank, const std::function<void()>& change) {
  rank.comm.barrier();
  if (rank.number() == 0) change();
  rank.comm.barrier();
}

bool has_datasets_in_spare(const JobBed& bed) {
  for (const auto& entry : fs::recursive_directory_iterator(bed.node("n0/spare")))
    if (entry.path().filename().string().starts_with("dataset.")) return true;
  return false;
}

TEST(SessionLevels, AnUnreadableStoreThatNoCheckpointUsesKeepsNoRunFromBeginning) {
  JobBed bed;
  add_spare_store(bed);
  bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.path.find("/n1/spare") == std::string_view::npos) return {};
      return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
    };
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    rank.expect_written(1);
  });
  EXPECT_TRUE(bed.logs("no checkpoint uses the store")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionLevels, AStoreThatWasLeftOutStaysSoWhenTheFolderOfTheJobIsMadeAgain) {
  JobBed bed;
  add_spare_store(bed);
  make_spare_unusable(bed);
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    meanwhile(rank, [&] {
      make_spare_usable(bed);
      remove_job_folders(bed);
    });
    rank.expect_written(2);
  });
  EXPECT_FALSE(has_datasets_in_spare(bed));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionLevels, AStoreThatCannotBeMadeAgainDuringTheRunIsAnErrorUntilItCan) {
  JobBed bed;
  add_spare_store(bed);
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    meanwhile(rank, [&] {
      make_spare_unusable(bed);
      remove_job_folders(bed);
    });
    EXPECT_FALSE(rank.write(2));
    meanwhile(rank, [&] { make_spare_usable(bed); });
    rank.expect_written(3);
  });
  EXPECT_FALSE(has_datasets_in_spare(bed));
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

TEST(SessionLevels, ARackMayBeLostWhereRacksAreTheFailureGroup) {
  JobBed bed;
  for (const auto& [node, rack] : std::map<std::string, std::string>{
           {"n0", "r0"}, {"n1", "r0"}, {"n2", "r1"}, {"n3", "r1"}, {"n4", "r2"}, {"n5", "r2"}})
    bed.settings.node_groups[node]["RACK"] = rack;
  bed.settings.checkpoints[0].group = "RACK";
  const Nodes three_racks = {"n0", "n1", "n2", "n3", "n4", "n5"};
  bed.write(three_racks, {1});
  bed.lose("n2");
  bed.lose("n3");
  EXPECT_EQ(bed.restart(three_racks), 1);
}

TEST(SessionLevels, WhatCannotFitIsReportedAtInitWithTheFigures) {
  JobBed bed;
  bed.settings.checkpoint_bytes = std::uint64_t{1} << 50;
  bed.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(1); });
  EXPECT_TRUE(bed.logs("node n0 has too little space")) << bed.log_text();
  EXPECT_TRUE(bed.logs("up to 2 datasets of 2.67 PiB")) << bed.log_text();
  EXPECT_TRUE(bed.logs("they need 5.33 PiB")) << bed.log_text();
}

TEST(SessionLevels, StoresOnOneFileSystemMustFitTogether) {
  for (const bool both : {false, true}) {
    JobBed bed;
    bed.settings.checkpoint_bytes = free_bytes_at(bed.node("n0")) * 3 / 10;
    if (both) add_shared_store(bed);  // which keeps two and one, of the same space
    bed.run_well({"n0"}, [](JobRank& rank) { rank.expect_written(1); });
    EXPECT_EQ(bed.logs("has too little space"), both) << bed.log_text();
    EXPECT_EQ(bed.logs("up to 3 datasets"), both) << bed.log_text();
  }
}

TEST(SessionLevels, OutputsTakeNoPartInTheSpaceOfCheckpoints) {
  JobBed bed;
  bed.settings.checkpoint_bytes = free_bytes_at(bed.node("n0")) * 6 / 10;
  bed.run_well({"n0"}, [](JobRank& rank) {
    for (const int output : {1, 2, 3}) rank.expect_written(output, flag_output);
  });
  bed.run_well({"n0"}, [](JobRank&) {});
  EXPECT_TRUE(bed.logs("has too little space")) << bed.log_text();
}

TEST(SessionLevels, RanksWithoutAnotherNodeAreWarnedThatNothingProtectsThem) {
  JobBed bed;
  bed.write({"n0", "n0"}, {1});
  EXPECT_TRUE(bed.logs("All ranks run on one node")) << bed.log_text();
  EXPECT_EQ(bed.restart({"n0", "n0"}), 1);
}

TEST(SessionLevels, AHopThatDoesNotFitTheSetsIsReported) {
  for (const int hop : {1, 2, 3}) {
    JobBed bed;
    bed.settings.checkpoints[0].scheme = Scheme::partner;
    bed.settings.checkpoints[0].partner_copies = 2;
    bed.settings.checkpoints[0].partner_hop = hop;
    bed.run_well(four_nodes(), [](JobRank&) {});
    EXPECT_EQ(bed.logs("in 2 of 2 redundancy sets, a hop of 2"), hop == 2)
        << hop << ": " << bed.log_text();
  }
}

// --- above 4 GiB ---

constexpr std::uint64_t large_bytes = (std::uint64_t{4} << 30) + (std::uint64_t{1} << 20);

std::string large_file(JobRank& rank) {
  return rank.session->route_file(rank.settings.prefix + "/large").value_or("/nowhere");
}

void put_byte(const std::string& path, std::uint64_t offset, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset)).put(byte);
  ASSERT_TRUE(file.good()) << path;
}

TEST(SessionLevels, FileAbove4GiBIsCheckedToItsEnd) {
  if (sanitized) GTEST_SKIP() << "reads 12 GiB";
  JobBed bed("/tmp");  // sparse there, also when it is read
  bed.settings.block_bytes = 1 << 20;
  bed.settings.encode_bytes = 32 << 20;
  bed.run_well({"n0"}, [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const std::string path = large_file(rank);
    ASSERT_TRUE(rank.files->create(path, 0600).value()->resize(large_bytes));
    put_byte(path, large_bytes - 1, 'x');
    const Status done = rank.session->complete_checkpoint(true);
    ASSERT_TRUE(done) << done.error().text;
  });
  bed.run_well({"n0"}, [](JobRank& rank) {
    ASSERT_EQ(rank.session->have_restart().value(), "scr.dataset.1");
    const std::string path = rank.session->route_loaded("/prefix/large");
    EXPECT_EQ(std::filesystem::file_size(path), large_bytes);
    put_byte(path, large_bytes - 2, 'y');
    EXPECT_FALSE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->have_restart().value());
  });
}

/// The checkpoint on the disks cannot get new redundancy sets. The next one in memory takes its
/// place in no other store.
TEST(SessionLevels, WhatKeepsItsOldSetsStaysInItsStore) {
  JobBed bed;
  StoreSettings disk = bed.settings.stores[0];
  disk.path = bed.node("disk.%n");
  bed.settings.stores.push_back(disk);
  CheckpointSettings third = bed.settings.checkpoints[0];
  third.id = 1;
  third.store = disk.path;
  third.interval = 3;
  bed.settings.checkpoints.push_back(third);
  bed.write(four_nodes(), {1, 2, 3});
  std::set<std::string> before;
  for (const std::string& part : bed.parts("disk.n0", 3))
    for (const auto& entry : std::filesystem::directory_iterator(part))
      before.insert(entry.path().filename());
  const Nodes permuted = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  std::atomic<bool> is_full = true;
  bed.run(permuted, [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      const std::filesystem::path path(operation.path);
      const bool is_new_parity = operation.name == "create" && path.stem() == "parity" &&
                                 operation.path.find("/disk.") != std::string::npos &&
                                 before.count(path.filename()) == 0;
      return is_full && is_new_parity ? fail(Code::no_space, "injected") : Status{};
    };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 3);
    rank.comm.barrier();
    is_full = false;
    rank.comm.barrier();
    rank.expect_written(4);
  });
  for (const char* node : {"n0", "n1", "n2", "n3"}) bed.lose(node);
  EXPECT_EQ(bed.restart(permuted), 3) << bed.log_text();
}

}  // namespace
}  // namespace cairn
