#include "memory_files.hpp"

#include <gtest/gtest.h>

namespace cairn::sim {
namespace {

Blob blob(std::string_view text) {
  const Bytes bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

class MemoryFilesTest : public testing::Test {
 protected:
  std::string content(const std::string& path) {
    const auto read = read_file(*files, path, 1000);
    if (!read) return read.error().text;
    return {reinterpret_cast<const char*>(read->data()), read->size()};
  }
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE((*files->create(path, 0666))->write_at(0, blob(text)));
  }

  std::shared_ptr<Volume> disk = std::make_shared<Volume>(Volume::Medium::disk);
  std::shared_ptr<Volume> memory = std::make_shared<Volume>(Volume::Medium::memory);
  std::unique_ptr<Files> files =
      make_memory_files({{"/disk", disk}, {"/mem", memory}}, [] { return std::int64_t{5}; });
};

TEST_F(MemoryFilesTest, DoesWhatARealOneDoes) {
  ASSERT_TRUE(make_folders(*files, "/disk/a/b", 0777));
  write("/disk/a/b/f", "hello");
  EXPECT_EQ(content("/disk/a/b/f"), "hello");
  const auto info = files->info("/disk/a/b/f");
  EXPECT_EQ(info->size, 5U);
  EXPECT_EQ(info->mode, 0644U);
  EXPECT_EQ(info->times.modify_ns, 5);
  ASSERT_TRUE(files->rename("/disk/a/b/f", "/disk/a/b/g"));
  EXPECT_EQ(files->open("/disk/a/b/f").error().code, Code::not_found);
  EXPECT_EQ(*files->list("/disk/a/b"), std::vector<std::string>{"g"});
  EXPECT_EQ(files->remove_folder("/disk/a").error().code, Code::io);
  ASSERT_TRUE(remove_all(*files, "/disk/a"));
  EXPECT_EQ(files->info("/disk/a").error().code, Code::not_found);
  EXPECT_FALSE(*files->is_memory("/disk"));
  EXPECT_TRUE(*files->is_memory("/mem"));
}

TEST_F(MemoryFilesTest, RefusesWhatARealOneRefuses) {
  ASSERT_TRUE(files->make_folder("/mem/d", 0700));
  EXPECT_FALSE(files->open("/mem/d"));
  EXPECT_FALSE(files->create("/mem/none/f", 0600));
  write("/mem/f", "x");
  ASSERT_TRUE(files->set_attributes("/mem/f", 0400, {}));
  EXPECT_TRUE(files->open("/mem/f"));
  EXPECT_FALSE(files->open_for_update("/mem/f"));
  EXPECT_FALSE(files->make_folder("/mem/f", 0700));
  const auto lock = files->lock("/mem/lock");
  EXPECT_EQ(files->lock("/mem/lock").error().code, Code::busy);
}

TEST_F(MemoryFilesTest, AViewOfAFileCutShortIsAnError) {
  for (const std::string path : {"/mem/f", "/disk/f"}) {
    write(path, "hello");
    const auto view = *files->view(path);
    Blob scratch(5);
    EXPECT_TRUE(view->at(0, 5, scratch));
    ASSERT_TRUE((*files->open_for_update(path))->resize(3));
    EXPECT_EQ(view->at(0, 5, scratch).error().code, Code::io);
    EXPECT_TRUE(view->at(0, 3, scratch));
  }
}

TEST_F(MemoryFilesTest, AFullVolumeTakesWhatFits) {
  disk->limit_free_bytes(3);
  const auto file = *files->create("/disk/f", 0600);
  EXPECT_EQ(file->write_at(0, blob("hello")).error().code, Code::no_space);
  EXPECT_EQ(content("/disk/f"), "hel");
  EXPECT_TRUE(file->write_at(0, blob("HEL")));
}

TEST_F(MemoryFilesTest, WhatIsRefusedForLackOfRoomIsTold) {
  std::vector<std::string> refused;
  const auto told = make_memory_files(
      {{"/disk", disk}}, [] { return std::int64_t{5}; },
      {.refused_room = [&](const std::string& path) { refused.push_back(path); }});
  disk->limit_free_bytes(3);
  EXPECT_FALSE((*told->create("/disk/f", 0600))->write_at(0, blob("hello")));
  EXPECT_FALSE(told->make_folder("/disk/g", 0700));
  EXPECT_EQ(refused, (std::vector<std::string>{"/disk/f", "/disk/g"}));
}

TEST_F(MemoryFilesTest, InterruptedCallsAreMadeAgain) {
  int calls = 0;
  int signals = 0;
  const auto disturbed =
      make_memory_files({{"/disk", disk}}, [] { return std::int64_t{5}; },
                        {.interrupted = [&] { return ++calls % 2 == 1 && ++signals > 0; }});
  const auto file = *disturbed->create("/disk/f", 0600);
  EXPECT_TRUE(file->resize(1));
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(disturbed->open("/disk/f"));
  EXPECT_TRUE(disturbed->open_for_update("/disk/f"));
  EXPECT_TRUE(disturbed->view("/disk/f"));
  EXPECT_TRUE(disturbed->set_attributes("/disk/f", 0600, {}));
  EXPECT_TRUE(disturbed->list("/disk"));
  EXPECT_TRUE(disturbed->sync_folder("/disk"));
  EXPECT_TRUE(disturbed->space("/disk"));
  EXPECT_TRUE(disturbed->is_memory("/disk"));
  EXPECT_TRUE(disturbed->lock("/disk/lock"));
  EXPECT_EQ(signals, 12) << "each of them once";
}

TEST_F(MemoryFilesTest, WhatIsSyncedOutlivesAPowerFailure) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Chance chance(seed);
    write("/disk/f", "synced");
    const auto file = *files->open_for_update("/disk/f");
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(files->sync_folder("/disk"));
    disk->power_failure(chance);
    EXPECT_EQ(content("/disk/f"), "synced");
    disk->wipe();
  }
}

TEST_F(MemoryFilesTest, WhatIsNotSyncedMayGo) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Chance chance(seed);
    write("/disk/f", "old");
    ASSERT_TRUE((*files->open_for_update("/disk/f"))->sync());
    ASSERT_TRUE(files->sync_folder("/disk"));
    write("/disk/g", "new");
    ASSERT_TRUE(files->rename("/disk/g", "/disk/f"));
    disk->power_failure(chance);
    seen.insert(content("/disk/f"));
    disk->wipe();
  }
  EXPECT_TRUE(seen.contains("old"));
  EXPECT_TRUE(seen.contains("new"));
  EXPECT_TRUE(seen.contains("")) << "renamed before it was synced";
}

/// A sync of the bytes need not have them with it.
TEST_F(MemoryFilesTest, ModesAndTimesThatAreNotSyncedMayGo) {
  for (const bool all : {false, true}) {
    std::set<std::pair<std::uint32_t, std::int64_t>> seen;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      Chance chance(seed);
      write("/disk/f", "x");
      const auto file = *files->open_for_update("/disk/f");
      ASSERT_TRUE(file->set_attributes(0640, {7, 7}));
      ASSERT_TRUE(all ? file->sync_all() : file->sync());
      ASSERT_TRUE(files->sync_folder("/disk"));
      disk->power_failure(chance);
      const FileInfo info = *files->info("/disk/f");
      seen.insert({info.mode, info.times.modify_ns});
      disk->wipe();
    }
    EXPECT_TRUE(seen.contains({0640, 7}));
    EXPECT_EQ(seen.size(), all ? 1U : 2U);
  }
}

TEST_F(MemoryFilesTest, AFileKeepsItsIdWhenItIsRenamedAndACopyHasAnother) {
  write("/disk/f", "x");
  write("/mem/f", "x");
  const FileId id = files->info("/disk/f")->id;
  EXPECT_NE(files->info("/mem/f")->id, id) << "of another volume";
  ASSERT_TRUE(files->rename("/disk/f", "/disk/g"));
  EXPECT_EQ(files->info("/disk/g")->id, id);
  write("/disk/f", "x");
  EXPECT_NE(files->info("/disk/f")->id, id);
}

TEST_F(MemoryFilesTest, MemoryKeepsNothing) {
  Chance chance(1);
  write("/mem/f", "x");
  memory->power_failure(chance);
  EXPECT_EQ(files->info("/mem/f").error().code, Code::not_found);
}

}  // namespace
}  // namespace cairn::sim
