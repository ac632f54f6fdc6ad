// The checksums of what a run has written and not protected: on real files.
#include "recovery/written.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "files/hooked_files.hpp"
#include "files/passing_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t written_as = 3;  // the generation

enum class Stage { prepared, committed, both };

class OnDisk final : public PassingFiles {
 public:
  using PassingFiles::PassingFiles;
  Result<bool> is_memory(const std::string& /*path*/) override { return false; }
};

/// The part of rank 1 of one dataset: a file, and a record without checksums.
class WrittenPart : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(part_.folder.files());
    std::ofstream(file()) << std::string(3000, 'x');
  }

  std::string file() const { return part_.folder.file("state"); }

  RankRecord make_record(std::uint64_t generation, const std::string& boot) const {
    RankRecord record;
    record.dataset = {{1000, 7}, 1, 1, 1, 2, "ckpt.1"};
    record.rank = 1;
    const FileInfo info = *files_->info(file());
    record.files.push_back(
        {"state", info.size, 0640, info.owner, info.group, {5, info.times.modify_ns}});
    record.encoding.block_bytes = 512;
    record.encoding.generation = generation;
    record.encoding.members = {1};
    record.encoding.member_nodes = {"n1"};
    record.encoding.member_bytes = {info.size};
    record.exposure = Exposure{boot, 1'000'000};
    return record;
  }

  void hold(bool is_committed, std::uint64_t generation = written_as,
            const std::string& boot = this_boot()) {
    const RankRecord record = make_record(generation, boot);
    const Blob sealed = encode(record);
    const std::string path = is_committed ? part_.folder.record() : part_.folder.prepared();
    ASSERT_TRUE(write_file_atomically(*files_, path, sealed, false));
    part_.own.push_back({record, sealed, is_committed});
  }
  void hold(Stage stage) {
    if (stage != Stage::prepared) hold(true);
    if (stage != Stage::committed) hold(false);
  }

  Status settle() { return settle_written(*files_, part_, written_as); }

  /// What is in a record file; nothing if there is none.
  std::optional<RankRecord> record_in(const std::string& path) const {
    const auto content = read_file(*files_, path, 1 << 20);
    if (!content) return {};
    const auto found = find_envelopes(*content);
    return *decode_rank_record(found.at(0).payload, found[0].version);
  }

  static std::string this_boot() { return make_posix_files()->boot(); }

  TemporaryFolder base_;
  std::unique_ptr<Files> files_ = make_posix_files();
  HeldPart part_{{base_ / "dataset.1.u/rank.1"}, 1, {}, {}};
};

/// Some rank may not have prepared its part: then the dataset does not exist.
TEST_F(WrittenPart, WhatWasOnlyPreparedStaysSo) {
  hold(Stage::prepared);
  const Status settled = settle();
  ASSERT_TRUE(settled) << settled.error().text;
  EXPECT_FALSE(record_in(part_.folder.record())) << "only all ranks together commit it";
  const auto prepared = record_in(part_.folder.prepared());
  ASSERT_TRUE(prepared);
  EXPECT_FALSE(prepared->exposure);
  EXPECT_EQ(prepared->data_crcs.size(), 6U);
  ASSERT_EQ(part_.own.size(), 1U);
  EXPECT_FALSE(part_.own[0].committed);
  EXPECT_EQ(part_.own[0].sealed, encode(*prepared));
}

TEST_F(WrittenPart, WhatWasCommittedStaysSo) {
  for (const Stage stage : {Stage::committed, Stage::both}) {
    part_.own.clear();
    hold(stage);
    const Status settled = settle();
    ASSERT_TRUE(settled) << settled.error().text;
    const auto record = record_in(part_.folder.record());
    ASSERT_TRUE(record);
    EXPECT_FALSE(record->exposure);
    EXPECT_EQ(record->data_crcs.size(), 6U);
    EXPECT_EQ(record->encoding.generation, written_as);
    EXPECT_FALSE(record_in(part_.folder.prepared())) << "the same without checksums";
    ASSERT_EQ(part_.own.size(), 1U);
    EXPECT_TRUE(part_.own[0].committed);
    EXPECT_EQ(part_.own[0].sealed, encode(*record));
  }
}

TEST_F(WrittenPart, AnotherGenerationStaysAsItIs) {
  hold(true, written_as + 1);
  const Blob before = part_.own[0].sealed;
  EXPECT_TRUE(settle());
  EXPECT_EQ(encode(*record_in(part_.folder.record())), before);
  ASSERT_EQ(part_.own.size(), 1U);
  EXPECT_EQ(part_.own[0].sealed, before);
}

TEST_F(WrittenPart, WithoutTheProgramsFileAsItWasTheRecordStaysAsItIs) {
  hold(Stage::committed);
  const Blob before = part_.own[0].sealed;
  std::ofstream(file(), std::ios::app) << "more";
  const Status settled = settle();
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, Code::lost);
  EXPECT_TRUE(settled.error().text.find(file()) != std::string::npos) << settled.error().text;
  EXPECT_EQ(encode(*record_in(part_.folder.record())), before);
}

/// Its checksums may be of other bytes than the program wrote.
TEST_F(WrittenPart, WhereTheFileChangesMeanwhileTheRecordStaysAsItIs) {
  hold(Stage::committed);
  const Blob before = part_.own[0].sealed;
  bool has_changed = false;
  const auto changing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name.starts_with("view") && operation.path == file() &&
        !std::exchange(has_changed, true))
      std::ofstream(file(), std::ios::app) << "more";
    return {};
  });
  EXPECT_FALSE(settle_written(*changing, part_, written_as));
  EXPECT_TRUE(has_changed);
  EXPECT_EQ(encode(*record_in(part_.folder.record())), before);
}

/// The kernel reports once that it could not write a file.
TEST_F(WrittenPart, WhereTheFileCannotBeSyncedNoLaterRunTakesItForWritten) {
  for (const Stage stage : {Stage::prepared, Stage::committed, Stage::both}) {
    part_.own.clear();
    hold(stage);
    bool has_failed = false;
    auto failing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.name != "sync" || operation.path != file() || has_failed) return {};
      has_failed = true;
      return fail(Code::io, "injected");
    });
    OnDisk disk(std::move(failing));
    const Status settled = settle_written(disk, part_, written_as);
    ASSERT_FALSE(settled);
    EXPECT_EQ(settled.error().text, "injected");
    EXPECT_TRUE(part_.own.empty());
    EXPECT_FALSE(record_in(part_.folder.record()));
    EXPECT_FALSE(record_in(part_.folder.prepared()));
  }
}

TEST_F(WrittenPart, AfterTheNodeWasStartedAnewTheRecordStaysAsItIs) {
  for (const std::string& boot : {std::string("another"), std::string()}) {
    part_.own.clear();
    hold(true, written_as, boot);
    const Status settled = settle();
    ASSERT_FALSE(settled) << boot;
    EXPECT_EQ(settled.error().code, Code::lost);
    EXPECT_TRUE(record_in(part_.folder.record())->exposure);
  }
}

}  // namespace
}  // namespace cairn
