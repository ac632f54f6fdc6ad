// `cairn verify` finds every byte that is not as it was written, and repairs what can be repaired.
#include "dead_job.hpp"

#include "tools/exit_codes.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Verify : public DeadJob {};

// --- caches ---

TEST_F(Verify, GoodCachesAreGood) {
  bed_.write(four_nodes(), {1});
  const auto before = contents_below(bed_.node(""));
  EXPECT_EQ(verify_caches(), exit_ok) << printed() << logged();
  EXPECT_TRUE(prints("dataset 1 (ckpt.1) in the caches: good: ")) << printed();
  EXPECT_TRUE(prints(" in 16 files")) << printed();
  EXPECT_EQ(contents_below(bed_.node("")), before);
}

/// Data, parity and record of one rank, each with the place of its first bad byte.
TEST_F(Verify, EveryFlippedByteOfTheCachesIsFoundAndRepaired) {
  bed_.write(four_nodes(), {1});
  const auto whole = contents_below(bed_.node(""));
  int flipped = 0;
  for (const auto& [name, content] : whole) {
    if (content.empty() || name.find("/rank.5/") == std::string::npos) continue;
    ++flipped;
    const std::string path = bed_.node(name);
    flip_bit(path);
    ASSERT_EQ(verify_caches(), exit_damaged) << path << printed();
    EXPECT_TRUE(prints("  bad: " + path)) << path << " in\n" << printed();
    EXPECT_TRUE(prints("give --repair")) << printed();
    EXPECT_EQ(verify_caches(true), exit_damaged);
    EXPECT_TRUE(prints("is repaired: ")) << printed();
    EXPECT_EQ(verify_caches(), exit_ok) << printed();
    EXPECT_EQ(read_all(path), content);
  }
  EXPECT_EQ(flipped, 4) << "two files, parity, record";
  EXPECT_EQ(contents_below(bed_.node("")), whole);
}

TEST_F(Verify, TheBlockAndTheBytesAreNamed) {
  bed_.write(four_nodes(), {1});
  const std::string file = bed_.parts("n1", 1).at(0) + "/files/ckpt.1/rank 2.0";
  const auto size = fs::file_size(file);
  ASSERT_GT(size, 1024U);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const char byte = static_cast<char>(stream.seekg(600).get() ^ 1);
  stream.seekp(600).put(byte);
  stream.close();
  EXPECT_EQ(verify_caches(), exit_damaged);
  EXPECT_TRUE(prints(file + " does not match its checksum (block 1: bytes 512-1023)")) << printed();
}

TEST_F(Verify, ALostNodeIsRebuilt) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n2");
  EXPECT_EQ(verify_caches(), exit_damaged);
  EXPECT_TRUE(prints("bad: the files of rank 4 (written on n2) are not here")) << printed();
  EXPECT_EQ(verify_caches(true), exit_damaged);
  EXPECT_TRUE(prints("is repaired: rebuilt rank 4 (n2), rank 5 (n2)")) << printed();
  EXPECT_EQ(verify_caches(), exit_ok) << printed();
}

TEST_F(Verify, MoreThanTheSchemeHoldsIsBeyondRepairAndStaysAsItIs) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n1");
  bed_.lose("n2");
  const auto before = contents_below(bed_.node(""));
  for (const bool repair : {false, true}) {
    EXPECT_EQ(verify_caches(repair), exit_beyond_repair);
    EXPECT_TRUE(prints("rank 2 (written on n1), rank 4 (written on n2)")) << printed();
    EXPECT_TRUE(prints("ranks 0,2,4,6")) << printed();
  }
  EXPECT_EQ(contents_below(bed_.node("")), before);
}

TEST_F(Verify, AFlippedByteWithoutRedundancyIsBeyondRepair) {
  bed_.settings.checkpoints[0].scheme = Scheme::single;
  bed_.write(four_nodes(), {1});
  const std::string file = bed_.parts("n1", 1).at(0) + "/files/ckpt.1/rank 2.0";
  flip_bit(file);
  EXPECT_EQ(verify_caches(true), exit_beyond_repair);
  EXPECT_TRUE(prints("bad: " + file)) << printed();
}

TEST_F(Verify, NothingIsRepairedWhileAJobRuns) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_EQ(verify_caches(true), exit_failure);
      EXPECT_TRUE(logs("wait until it has ended")) << logged();
      EXPECT_EQ(verify_caches(), exit_ok) << "but it may be read";
      EXPECT_TRUE(logs("wait until it has ended")) << logged();
    }
    rank.comm.barrier();
  });
}

// --- the prefix directory ---

TEST_F(Verify, AGoodPrefixDirectoryIsGoodAndLeftAlone) {
  bed_.write_and_finalize({1, 2, 3});
  const auto before = contents_below(prefix());
  EXPECT_EQ(verify_prefix(), exit_ok) << printed();
  EXPECT_EQ(verify_prefix(true), exit_ok) << printed();
  EXPECT_TRUE(prints("dataset 3 (ckpt.3) in " + prefix() + ": good: ")) << printed();
  EXPECT_EQ(contents_below(prefix()), before);
}

/// Damage, by what is done to a file.
const std::map<std::string, std::function<void(const std::string&)>> damages = {
    {"flipped",
     [](const std::string& path) {
       std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
       const char byte = static_cast<char>(file.get() ^ 1);
       file.seekp(0).put(byte);
     }},
    {"cut", [](const std::string& path) { fs::resize_file(path, 7); }},
    {"longer", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; }},
    {"removed", [](const std::string& path) { fs::remove(path); }},
    {"its folder removed",
     [](const std::string& path) { fs::remove_all(fs::path(path).parent_path()); }},
    {"a folder", [](const std::string& path) {
       fs::remove(path);
       fs::create_directory(path);
     }}};

TEST_F(Verify, AFileOfThePrefixDirectoryIsRepairedFromTheCacheThatHasIt) {
  bed_.write_and_finalize({1, 2});
  for (const auto& [how, damage] : damages) {
    if (how == "a folder") continue;
    const auto time = fs::last_write_time(bed_.file(2, 4));
    damage(bed_.file(2, 4));
    if (fs::exists(bed_.file(2, 4))) fs::last_write_time(bed_.file(2, 4), time);
    EXPECT_EQ(verify_prefix(), exit_damaged) << how << printed() << logged();
    EXPECT_TRUE(prints("bad: ")) << printed();
    EXPECT_TRUE(prints(bed_.file(2, 4))) << how << printed();
    EXPECT_EQ(verify_prefix(true), exit_damaged) << how << printed() << logged();
    EXPECT_TRUE(prints("is repaired: ")) << how << printed();
    EXPECT_EQ(verify_prefix(), exit_ok) << how << printed();
    bed_.expect_own_files(2);
    EXPECT_EQ(files_->info(bed_.file(2, 4))->mode & 0777U, 0640U) << how;
  }
  bed_.lose_all_nodes();
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
}

TEST_F(Verify, ADatasetWhoseRecordIsDamagedIsReportedThoughTheListingHasACopy) {
  bed_.write_and_finalize({1, 2});
  for (const auto& dataset : fs::directory_iterator(prefix() + "/.cairn/datasets"))
    flip_bit(dataset.path() / "dataset");
  EXPECT_TRUE(fs::exists(prefix() + "/.cairn/listing"));
  EXPECT_EQ(verify_prefix(), exit_beyond_repair) << printed();
  EXPECT_TRUE(prints("/dataset: ")) << printed();
}

TEST_F(Verify, AFileThatWasWrittenAgainIsNotReplaced) {
  bed_.write_and_finalize({1, 2});
  std::ofstream(bed_.file(2, 4)) << "by the program, later";
  EXPECT_EQ(verify_prefix(true), exit_beyond_repair) << printed();
  EXPECT_TRUE(prints("was written again since")) << printed();
  EXPECT_TRUE(prints("a cache has what was flushed")) << printed();
  EXPECT_FALSE(prints("CANNOT")) << "it can, once the file is moved away: " << printed();
  EXPECT_EQ(read_all(bed_.file(2, 4)), "by the program, later");
  fs::remove(bed_.file(2, 4));
  EXPECT_EQ(verify_prefix(true), exit_damaged) << printed();
  bed_.expect_own_files(2);
}

/// The way back would be lost with the file.
TEST_F(Verify, NoFileIsToBeMovedAwayThatNoCacheCanRestore) {
  bed_.write_and_finalize({1, 2});
  bed_.lose_all_nodes();
  std::ofstream(bed_.file(2, 4)) << "by the program, later";
  EXPECT_EQ(verify_prefix(true), exit_beyond_repair) << printed();
  EXPECT_TRUE(prints("CANNOT BE REPAIRED")) << printed();
  EXPECT_TRUE(prints("because no cache has ")) << printed();
  EXPECT_FALSE(prints("away")) << printed();
}

TEST_F(Verify, AChangedFileAndALostOneCannotBothBeRepaired) {
  bed_.write_and_finalize({1, 2});
  bed_.lose("n1");
  flip_bit(bed_.file(2, 2));
  std::ofstream(bed_.file(2, 4)) << "by the program, later";
  EXPECT_EQ(verify_prefix(), exit_beyond_repair) << printed();
  EXPECT_TRUE(prints("CANNOT BE REPAIRED")) << printed();
  EXPECT_TRUE(prints("a cache has what was flushed")) << printed();
}

TEST_F(Verify, ARepairThatHasNothingToDoMayRunBesideAJob) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_EQ(verify_prefix(true), exit_ok) << printed() << logged();
    }
    rank.comm.barrier();
  });
}

/// The repairing command may have other settings than the run that flushed.
TEST_F(Verify, WhereTimesAreNotKeptNoFileThatMayBeTheProgramsIsReplaced) {
  for (const bool flushed_with : {true, false}) {
    bed_.settings.copy_metadata = flushed_with;
    bed_.write_and_finalize({1, 2});
    process_.environment["SCR_COPY_METADATA"] = "0";
    std::ofstream(bed_.file(2, 4)) << "by the program, later";
    EXPECT_EQ(verify_prefix(true), exit_beyond_repair) << printed();
    EXPECT_TRUE(prints("was written again since")) << printed();
    EXPECT_EQ(read_all(bed_.file(2, 4)), "by the program, later");
    fs::remove(bed_.file(2, 4));
    EXPECT_EQ(verify_prefix(true), exit_damaged) << printed();
    bed_.expect_own_files(2);
    bed_.lose_all_nodes();
    fs::remove_all(prefix());
    fs::create_directory(prefix());
  }
}

TEST_F(Verify, WithoutACacheTheFileIsBeyondRepairAndAnotherFolderMayHaveIt) {
  bed_.write_and_finalize({1, 2});
  bed_.save("copy");
  bed_.lose_all_nodes();
  flip_bit(bed_.file(2, 4));
  EXPECT_EQ(verify_prefix(true), exit_beyond_repair);
  EXPECT_TRUE(prints("because no cache has an intact copy of block ")) << printed();
  VerifyCommand command;
  command.source.prefix = prefix();
  command.caches = {bed_.saved("copy", "n2")};
  command.repair = true;
  EXPECT_EQ(verify(command), exit_damaged) << printed() << logged();
  bed_.expect_own_files(2);
}

TEST_F(Verify, DamageIsNeverCopiedFromADamagedCache) {
  bed_.write_and_finalize({1, 2});
  flip_bit(bed_.file(2, 4));
  const std::string cached = bed_.parts("n2", 2).at(0) + "/files/ckpt.2/rank 4.0";
  // Another byte of the same block.
  const auto at = static_cast<std::streamoff>(fs::file_size(cached) / 2 + 1);
  std::fstream file(cached, std::ios::in | std::ios::out | std::ios::binary);
  const char byte = static_cast<char>(file.seekg(at).get() ^ 1);
  file.seekp(at).put(byte);
  file.close();
  const std::string before = read_all(bed_.file(2, 4));
  EXPECT_EQ(verify_prefix(true), exit_beyond_repair) << printed();
  EXPECT_EQ(read_all(bed_.file(2, 4)), before);
}

TEST_F(Verify, ADatasetThatHasFailedIsOfferedAgainOnceItIsRepaired) {
  bed_.write_and_finalize({1, 2});
  bed_.save("copy");
  bed_.lose_all_nodes();
  flip_bit(bed_.file(2, 4));
  EXPECT_EQ(bed_.restart(four_nodes()), 0);
  VerifyCommand command;
  command.source.prefix = prefix();
  command.caches = {bed_.saved("copy", "")};
  command.repair = command.force = true;
  EXPECT_EQ(verify(command), exit_damaged) << printed() << logged();
  EXPECT_TRUE(prints("a restart can use it again")) << printed();
  bed_.lose_all_nodes();
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
}

/// Where a program writes the same names again, a repair of the older dataset would destroy the
/// newer.
TEST_F(Verify, AFileThatBelongsToANewerDatasetNowIsNotTouched) {
  bed_.settings.stores[0].count = 2;
  bed_.settings.flush_interval = 1;
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) {
      ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
      const auto path = rank.session->route_file(rank.settings.prefix + "/latest." +
                                                 std::to_string(rank.number()));
      ASSERT_TRUE(path);
      std::ofstream(*path) << "written by dataset " << dataset;
      ASSERT_TRUE(rank.session->complete_output(true));
    }
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(verify_prefix(true, {"ckpt.1"}), exit_beyond_repair) << "it can be restored no more";
  EXPECT_TRUE(prints("is replaced, and CANNOT BE RESTORED: dataset 2 (ckpt.2)")) << printed();
  EXPECT_EQ(explain(0, {"ckpt.1"}), 0);
  EXPECT_TRUE(prints("it is replaced: dataset 2 (ckpt.2)")) << printed();
  flip_bit(prefix() + "/latest.3");
  EXPECT_EQ(verify_prefix(true, {"ckpt.1"}), exit_beyond_repair) << printed();
  EXPECT_EQ(verify_prefix(true, {"ckpt.2"}), exit_damaged) << printed();
  EXPECT_EQ(verify_prefix(true, {"ckpt.2"}), exit_ok) << printed();
  EXPECT_EQ(read_all(prefix() + "/latest.0"), "written by dataset 2");
}

TEST_F(Verify, WhatCanBeRepairedIsRepairedBesideWhatCannot) {
  bed_.write_and_finalize({1, 2});
  bed_.lose("n1");
  flip_bit(bed_.file(2, 2));
  flip_bit(bed_.file(2, 4));
  EXPECT_EQ(verify_prefix(true), exit_beyond_repair) << printed();
  EXPECT_TRUE(prints("bad: " + bed_.file(2, 2))) << printed();
  EXPECT_TRUE(prints("because no cache has an intact copy of block ")) << printed();
  EXPECT_EQ(read_all(bed_.file(2, 4)), content_of(4, 0, 2));
}

/// A newer one may have its names, or the name that is asked for.
TEST_F(Verify, NothingIsJudgedOrPassedOverWhereARecordCannotBeReadNow) {
  bed_.settings.flush_interval = 1;
  bed_.settings.stores[0].count = 3;
  bed_.write_and_finalize({1, 2, 1});
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*files_, {prefix()}, damaged);
  const auto posix = make_posix_files();
  bool passed = false;
  files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    const bool newest = operation.path.find("/datasets/dataset.3.") != std::string_view::npos;
    if (passed || !newest || !operation.path.ends_with("/dataset")) return {};
    return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
  });
  EXPECT_EQ(verify_prefix(false, {"ckpt.1"}), exit_failure) << printed();
  EXPECT_TRUE(prints("(ckpt.1) in " + prefix() + ": good")) << printed();
  EXPECT_TRUE(prints("unknown")) << printed();
  EXPECT_EQ(verify_prefix(false, {text_of(listing.at(2).info.uuid)}), exit_ok) << printed();
  flip_bit(bed_.file(2, 4));
  const std::string uuid = text_of(listing.at(1).info.uuid);
  EXPECT_EQ(verify_prefix(true, {uuid}), exit_failure) << printed();
  EXPECT_TRUE(prints("because it is unknown whether newer datasets")) << printed();
  passed = true;
  EXPECT_EQ(verify_prefix(true, {uuid}), exit_damaged) << printed();
  bed_.expect_own_files(2);
  files_ = make_posix_files();
}

TEST_F(Verify, WhatCannotBeDeletedKeepsNothingFromBeingRepaired) {
  bed_.settings.flush_interval = 1;
  bed_.write_and_finalize({1, 2});
  auto keeper = Keeper::take_over(*files_, *clock_, {prefix()}, {});
  ASSERT_TRUE(keeper && keeper->take_out(keeper->known().listing.at(1).info) && keeper->resign());
  flip_bit(bed_.file(2, 4));
  const auto posix = make_posix_files();
  files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    const bool struck = operation.name == "remove_file" && operation.path == bed_.file(1, 0);
    return struck ? Status(fail(Code::io, "injected: cannot remove {}", operation.path)) : Status{};
  });
  EXPECT_EQ(verify_prefix(true), exit_damaged) << printed() << logged();
  EXPECT_TRUE(logs("injected: cannot remove")) << logged();
  bed_.expect_own_files(2);
  files_ = make_posix_files();
}

/// Which is then not known to be as it was written.
TEST_F(Verify, ANameOfTheCurrentOneThatCannotBeReadIsNoSuccess) {
  bed_.write_and_finalize({1, 2});
  const auto posix = make_posix_files();
  files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (operation.path != prefix() + "/.cairn/current") return {};
    return fail(Code::io, "injected: cannot read {}", operation.path);
  });
  EXPECT_EQ(verify_prefix(), exit_failure) << printed();
  EXPECT_TRUE(prints("(ckpt.2) in " + prefix() + ": good")) << printed();
  EXPECT_TRUE(prints("injected: cannot read " + prefix() + "/.cairn/current")) << printed();
  EXPECT_EQ(verify_prefix(false, {"ckpt.2"}), exit_ok) << printed();
  files_ = make_posix_files();
}

/// To people and to programs: run_in_both_ways() compares the two.
TEST_F(Verify, WhatIsNotThereIsNamed) {
  bed_.write_and_finalize({1, 2});
  EXPECT_EQ(verify_prefix(false, {"ckpt.2"}), exit_ok) << printed();
  EXPECT_EQ(verify_prefix(false, {"ckpt.9"}), exit_failure);
  EXPECT_TRUE(logs("there is no such dataset: ckpt.9")) << logged();
  fs::remove_all(prefix());
  EXPECT_EQ(verify_prefix(), exit_failure);
  EXPECT_TRUE(logs(prefix())) << logged();
}

/// A process that copied it was late, wrote the same bytes once more, and died.
TEST_F(Verify, TimesAndPermissionsAreSetAgainWhereAllBytesAreRight) {
  bed_.write_and_finalize({1, 2});
  const std::string late = bed_.file(2, 3);
  const auto files = make_posix_files();
  const auto before = *files->info(late);
  ASSERT_TRUE(
      files->set_attributes(late, before.mode | 0600, {5, before.times.modify_ns + 7'000'000'000}));
  EXPECT_EQ(verify_prefix(), exit_ok) << printed();
  EXPECT_NE(files->info(late)->times.modify_ns, before.times.modify_ns);
  EXPECT_EQ(verify_prefix(true), exit_ok) << printed() << logged();
  EXPECT_TRUE(prints("1 files have their times and permissions again")) << printed();
  EXPECT_EQ(files->info(late)->times.modify_ns, before.times.modify_ns);
  EXPECT_EQ(files->info(late)->mode, before.mode);
  EXPECT_EQ(verify_prefix(true), exit_ok) << printed();
  EXPECT_FALSE(prints("again")) << printed();
}

TEST_F(Verify, TimesAreNotSetAgainWhereAByteIsWrong) {
  bed_.write_and_finalize({2});
  const std::string name = bed_.file(2, 3);
  const auto files = make_posix_files();
  ASSERT_TRUE(
      files->set_attributes(name, 0600, {5, files->info(name)->times.modify_ns + 7'000'000'000}));
  std::ofstream(name, std::ios::binary | std::ios::in).put('!');
  const auto changed = *files->info(name);
  EXPECT_NE(verify_prefix(true), exit_ok) << printed();
  EXPECT_EQ(files->info(name)->times.modify_ns, changed.times.modify_ns);
}

}  // namespace
}  // namespace cairn
