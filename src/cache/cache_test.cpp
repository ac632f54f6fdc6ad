// Claiming private directories, reading what is in them, and removing it, on real files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cache/catalog.hpp"
#include "cache/private_folder.hpp"
#include "cache/store.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }

void write(const std::string& path, Bytes content) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(content.data()),
            static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(out.flush()) << path;
}

// --- private directories ---

class PrivateFolderTest : public ::testing::Test {
 protected:
  Result<std::string> claim() {
    return claim_private_folder(*files_, base_.path(), false, "ann", "cairn.job");
  }

  void expect_untrusted(const std::string& path) {
    const auto claimed = claim();
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().code, Code::untrusted) << claimed.error().text;
    EXPECT_NE(claimed.error().text.find(path), std::string::npos) << claimed.error().text;
  }

  TemporaryFolder base_;
  TemporaryFolder elsewhere_;
  std::string user_ = base_ / "ann";
  std::string job_ = user_ + "/cairn.job";
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(PrivateFolderTest, IsMadeForItsOwnerOnlyAndAcceptedAgain) {
  for (int time = 0; time < 2; ++time) {
    const auto claimed = claim();
    ASSERT_TRUE(claimed) << claimed.error().text;
    EXPECT_EQ(*claimed, job_);
    for (const std::string& path : {user_, job_})
      EXPECT_EQ(files_->info(path)->mode, 0700U) << path;
  }
}

TEST_F(PrivateFolderTest, TheBaseIsMadeOnlyWhenAsked) {
  const std::string deep = base_ / "a/b";
  const auto claimed = claim_private_folder(*files_, deep, false, "ann", "cairn.job");
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, Code::not_found);
  EXPECT_FALSE(fs::exists(base_ / "a"));
  EXPECT_TRUE(claim_private_folder(*files_, deep, true, "ann", "cairn.job"));
  EXPECT_TRUE(fs::is_directory(deep + "/ann/cairn.job"));
}

TEST_F(PrivateFolderTest, LinksOfOtherUsersAreNotFollowed) {
  fs::create_directory_symlink(elsewhere_.path(), user_);
  EXPECT_FALSE(claim());
  EXPECT_TRUE(fs::is_empty(elsewhere_.path()));
  fs::remove(user_);
  fs::create_directory(user_);
  set_mode(user_, 0700);
  fs::create_directory_symlink(elsewhere_.path(), job_);
  EXPECT_FALSE(claim());
  EXPECT_TRUE(fs::is_empty(elsewhere_.path()));
  fs::remove(job_);
  std::ofstream(job_) << "a file";
  EXPECT_FALSE(claim());
  fs::remove(job_);
  EXPECT_TRUE(claim()) << "with what was planted gone";
}

TEST_F(PrivateFolderTest, AFolderOpenToOthersIsUntrusted) {
  ASSERT_TRUE(claim());
  for (const mode_t mode : {0755U, 0750U, 0711U, 0701U}) {
    set_mode(job_, mode);
    expect_untrusted(job_);
  }
  set_mode(job_, 0700);
  for (const mode_t mode : {0777U, 01777U, 0720U, 0702U}) {
    set_mode(user_, mode);
    expect_untrusted(user_);
  }
  set_mode(user_, 0755);
  EXPECT_TRUE(claim()) << "other users may see that the directory of this user exists";
}

TEST_F(PrivateFolderTest, AFolderOfAnotherOwnerIsUntrusted) {
  if (::geteuid() == 0) {
    constexpr uid_t other_user = 1000;
    ASSERT_TRUE(claim());
    ASSERT_EQ(::chown(job_.c_str(), other_user, other_user), 0);
    expect_untrusted(job_);
    ASSERT_EQ(::chown(job_.c_str(), 0, 0), 0);
    ASSERT_EQ(::chown(user_.c_str(), other_user, other_user), 0);
    expect_untrusted(user_);
  } else {  // a directory that exists and belongs to another user
    const auto claimed = claim_private_folder(*files_, "/", false, "usr", "cairn.job");
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().code, Code::untrusted) << claimed.error().text;
    EXPECT_NE(claimed.error().text.find("belongs to user"), std::string::npos);
  }
}

TEST_F(PrivateFolderTest, ABaseOfAnotherUserIsUntrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change owners";
  set_mode(base_.path(), 01777);
  constexpr uid_t other_user = 1234;
  constexpr uid_t unknown = 65534;
  ASSERT_EQ(::chown(base_.path().c_str(), other_user, other_user), 0);
  expect_untrusted(base_.path());
  EXPECT_FALSE(fs::exists(user_));
  ASSERT_EQ(::chown(base_.path().c_str(), unknown, unknown), 0);
  EXPECT_TRUE(claim()) << "what root's folders look like in a container";
}

TEST_F(PrivateFolderTest, AWorldWritableBaseMustBeSticky) {
  set_mode(base_.path(), 0777);
  expect_untrusted(base_.path());
  EXPECT_FALSE(fs::exists(user_)) << "nothing is put where others can replace it";
  set_mode(base_.path(), 01777);
  EXPECT_TRUE(claim());
}

// --- store and catalog ---

DatasetInfo dataset(std::uint64_t number) {
  return {{1000 + static_cast<std::int64_t>(number), 7}, number, number, 1, 4, "ckpt"};
}

RankRecord record_of(std::uint64_t number, int rank, std::uint64_t generation = 1) {
  RankRecord record;
  record.dataset = dataset(number);
  record.rank = rank;
  record.files = {{"state", 4, 0600, 0, 0, {}}};
  record.encoding = {generation, Scheme::single, 0, 1, 256, {rank}, {"n0"}, {4}};
  record.data_crcs = {5};
  return record;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    settings_.user = "ann";
    settings_.job_id = "job";
    settings_.node_name = "n0";
    store_settings_.path = base_ / "%n";
    stores_.push_back(open(*files_));
  }

  Store open(Files& files) {
    auto store = Store::open(files, store_settings_, settings_, PrefixId{0xabc});
    if (!store) throw std::runtime_error(store.error().text);
    return *std::move(store);
  }

  /// A committed part with one file and a parity file.
  RankFolder add_part(std::uint64_t number, int rank) {
    const RankFolder folder = stores_[0].rank_folder(dataset(number), rank);
    EXPECT_TRUE(stores_[0].make_rank_folder(dataset(number), rank));
    std::ofstream(folder.file("state")) << "data";
    std::ofstream(folder.parity(1)) << "parity";
    write(folder.record(), encode(record_of(number, rank)));
    return folder;
  }

  Catalog catalog(const LooksAfter& looks_after = [](std::size_t, int) { return true; }) {
    auto found = read_catalog(*files_, stores_, looks_after);
    if (!found) throw std::runtime_error(found.error().text);
    return *std::move(found);
  }

  /// Removes a part, but stops after `operations`; true if these were enough.
  bool remove_partly(const RankFolder& folder, std::uint64_t operations) {
    std::uint64_t left = ~std::uint64_t{0};
    const auto hooked = make_hooked_files(*files_, [&left](const FileOperation&) -> Status {
      if (left == 0) return fail(Code::io, "stopped");
      --left;
      return {};
    });
    Store store = open(*hooked);
    left = operations;
    return store.remove(folder).has_value();
  }

  TemporaryFolder base_;
  std::unique_ptr<Files> files_ = make_posix_files();
  Settings settings_;
  StoreSettings store_settings_;
  std::vector<Store> stores_;
};

TEST_F(CacheTest, AStoreIsThePrivateFolderOfTheJobOnThisNode) {
  EXPECT_EQ(stores_[0].root(), base_ / "n0/ann/cairn.job.0000000000000abc");
  const RankFolder folder = add_part(3, 2);
  EXPECT_EQ(folder.path, stores_[0].root() + "/dataset.3.00000000000003eb0000000000000007/rank.2");
  for (const std::string& path : {folder.files(), folder.path, folder_of(folder.path)})
    EXPECT_EQ(files_->info(path)->mode, 0700U);
}

TEST_F(CacheTest, ListsDatasetsOldestFirst) {
  EXPECT_TRUE(catalog().empty());
  add_part(10, 0);
  add_part(9, 1);
  add_part(9, 0);
  const Catalog found = catalog();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.begin()->first, dataset(9).uuid);
  EXPECT_EQ(found.begin()->second.number, 9U);
  EXPECT_EQ(found.begin()->second.parts.size(), 2U);
  EXPECT_NE(found.begin()->second.own_record(1, 1), nullptr);
  EXPECT_EQ(found.begin()->second.own_record(1, 2), nullptr);
  EXPECT_EQ(found.begin()->second.own_record(2, 1), nullptr);
}

TEST_F(CacheTest, RecordsOfAnotherDatasetAreIgnored) {
  const RankFolder folder = add_part(1, 0);
  write(folder.record(), encode(record_of(2, 0)));
  const Catalog found = catalog();
  ASSERT_EQ(found.size(), 1U);
  const HeldPart& part = found.begin()->second.parts[0];
  EXPECT_TRUE(part.own.empty());
  EXPECT_TRUE(part.damaged);
}

TEST_F(CacheTest, DistinguishesCommittedPreparedAndKeptRecords) {
  const RankFolder folder = add_part(1, 0);
  const Blob own = encode(record_of(1, 0));
  const Blob kept = encode(record_of(1, 3));
  Blob content = own;
  content.insert(content.end(), kept.begin(), kept.end());
  write(folder.record(), content);
  write(folder.prepared(), encode(record_of(1, 0, 2)));

  const HeldPart part = read_part(*files_, folder, 0);
  ASSERT_EQ(part.own.size(), 2U);
  EXPECT_TRUE(part.own[0].committed);
  EXPECT_EQ(part.own[0].sealed, own);
  EXPECT_FALSE(part.own[1].committed);
  EXPECT_EQ(part.own[1].record.encoding.generation, 2U);
  ASSERT_EQ(part.kept.size(), 1U);
  EXPECT_EQ(part.kept[0].record.rank, 3);
  EXPECT_EQ(part.kept[0].sealed, kept);
  EXPECT_FALSE(part.damaged);
  EXPECT_FALSE(part.newer);
}

TEST_F(CacheTest, AFlippedByteLosesTheRecordItIsIn) {
  const RankFolder folder = add_part(1, 0);
  const Blob own = encode(record_of(1, 0));
  const Blob kept = encode(record_of(1, 3));
  Blob content = own;
  content.insert(content.end(), kept.begin(), kept.end());
  for (std::size_t at = 0; at < content.size(); at += 3) {
    Blob damaged = content;
    damaged[at] ^= std::byte{0x20};
    write(folder.record(), damaged);
    const HeldPart part = read_part(*files_, folder, 0);
    const bool own_hit = at < own.size();
    ASSERT_EQ(part.own.size(), own_hit ? 0U : 1U) << at;
    ASSERT_EQ(part.kept.size(), own_hit ? 1U : 0U) << at;
    ASSERT_EQ(part.damaged, own_hit) << at;
    ASSERT_FALSE(part.newer) << at;
  }
}

TEST_F(CacheTest, ARecordPathThatIsNoFileIsDamageNotAnError) {
  const RankFolder folder = add_part(1, 0);
  fs::remove(folder.record());
  EXPECT_FALSE(read_part(*files_, folder, 0).damaged) << "no record is no damage";
  write(folder.record(), {});
  EXPECT_TRUE(read_part(*files_, folder, 0).damaged) << "empty";
  write(folder.record(), encode(record_of(1, 3)));
  EXPECT_TRUE(read_part(*files_, folder, 0).damaged) << "only another's";
  fs::remove(folder.record());
  fs::create_directory(folder.record());
  EXPECT_TRUE(read_part(*files_, folder, 0).damaged) << "a folder";
  fs::remove(folder.record());
  ASSERT_EQ(::mkfifo(folder.record().c_str(), 0600), 0);
  EXPECT_TRUE(read_part(*files_, folder, 0).damaged) << "a pipe without a writer";
  ASSERT_EQ(catalog().size(), 1U);
  EXPECT_TRUE(catalog().begin()->second.parts.at(0).own.empty());
}

TEST_F(CacheTest, ARecordOfANewerFormatIsMarkedAsNewer) {
  const RankFolder folder = add_part(1, 0);
  const Blob sealed = encode(record_of(1, 0));
  const Bytes payload = find_envelopes(sealed)[0].payload;
  write(folder.record(), seal(RecordType::rank, rank_record_version + 1, payload));
  const HeldPart part = read_part(*files_, folder, 0);
  EXPECT_TRUE(part.newer);
  EXPECT_TRUE(part.own.empty());
}

TEST_F(CacheTest, OtherNamesAreIgnored) {
  const std::string part = add_part(1, 0).path;
  const std::string root = stores_[0].root();
  const std::string uuid = text_of(dataset(2).uuid);
  for (const std::string& name :
       {std::string("dataset"), std::string("dataset."), std::string("dataset.x"),
        "dataset.-2." + uuid, "dataset.2x." + uuid, "dataset.2." + uuid + "0",
        "dataset.99999999999999999999." + uuid, "dataset..2." + uuid, "Dataset.2." + uuid})
    fs::create_directories(root + "/" + name + "/rank.0");
  for (const char* name : {"rank", "rank.", "rank.-1", "rank.1x", "rank.+1", "rank.1.2",
                           "rank.99999999999", "x", "rank. 1"})
    fs::create_directory(folder_of(part) + "/" + name);
  EXPECT_EQ(catalog().size(), 1U);
  EXPECT_EQ(catalog().begin()->second.parts.size(), 1U);
}

TEST_F(CacheTest, FilesAndLinksWithNamesOfFoldersAreIgnored) {
  const std::string part = add_part(1, 0).path;
  const std::string root = stores_[0].root();
  std::ofstream(root + "/dataset.2." + text_of(dataset(2).uuid)) << "a file";
  fs::create_directory_symlink(folder_of(part), root + "/dataset.3." + text_of(dataset(3).uuid));
  std::ofstream(folder_of(part) + "/rank.1") << "a file";
  fs::create_directory_symlink(part, folder_of(part) + "/rank.2");
  ASSERT_EQ(::mkfifo((folder_of(part) + "/rank.3").c_str(), 0600), 0);
  EXPECT_EQ(catalog().size(), 1U);
  EXPECT_EQ(catalog().begin()->second.parts.size(), 1U);
}

TEST_F(CacheTest, ReadsOnlyThePartsThatTheRankManages) {
  for (const int rank : {0, 1, 2, 3}) add_part(1, rank);
  add_part(2, 1);
  const Catalog found = catalog([](std::size_t store, int owner) {
    EXPECT_EQ(store, 0U);
    return owner % 2 == 0;
  });
  ASSERT_EQ(found.size(), 1U) << "dataset 2 has no part for this rank";
  const auto& parts = found.begin()->second.parts;
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].owner, 0);
  EXPECT_EQ(parts[1].owner, 2);
}

TEST_F(CacheTest, AFolderThatCannotBeListedIsAnError) {
  const std::string folder = folder_of(add_part(1, 0).path);
  const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "list" && operation.path == folder)
      return fail(Code::io, "no listing of {}", operation.path);
    return {};
  });
  const auto found = read_catalog(*hooked, stores_, [](std::size_t, int) { return true; });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::io);
}

TEST_F(CacheTest, ThatARecordCannotBeReadIsKnown) {
  const RankFolder part = add_part(1, 0);
  for (const std::string& path : {part.record(), part.prepared()}) {
    const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      return operation.name == "open" && operation.path == path ? fail(Code::io, "injected")
                                                                : Status{};
    });
    EXPECT_TRUE(read_part(*hooked, part, 0).unread) << path;
  }
  EXPECT_FALSE(read_part(*files_, part, 0).unread) << "one that is not there can be no better";
}

TEST_F(CacheTest, RemovingTheLastPartRemovesTheFolderOfTheDataset) {
  const RankFolder first = add_part(1, 0);
  const RankFolder second = add_part(1, 1);
  ASSERT_TRUE(stores_[0].remove(first));
  EXPECT_FALSE(fs::exists(first.path));
  EXPECT_TRUE(fs::exists(second.record()));
  ASSERT_TRUE(stores_[0].remove(second));
  EXPECT_TRUE(fs::is_empty(stores_[0].root()));
  EXPECT_TRUE(stores_[0].remove(second)) << "what is not there is removed already";
}

TEST_F(CacheTest, FoldersInThePlaceOfFilesAreRemovedWithTheRest) {
  const RankFolder folder = add_part(1, 0);
  for (const std::string& path :
       {folder.record(), folder.prepared(), folder.parity(1), stores_[0].spare(0)}) {
    fs::remove(path);
    fs::create_directories(path + "/x");
  }
  ASSERT_TRUE(stores_[0].remove(folder));
  ASSERT_TRUE(stores_[0].drop_spare(0));
  EXPECT_TRUE(fs::is_empty(stores_[0].root()));
}

TEST_F(CacheTest, InMemoryAParityFileIsKeptAsTheSpareOfTheRank) {
  const std::map<bool, std::string> bases = {{true, "/dev/shm"}, {false, ""}};
  for (const auto& [memory, base] : bases) {
    const TemporaryFolder folder(base);
    store_settings_.path = folder / "%n";
    stores_ = {open(*files_)};
    for (const std::uint64_t number : {1, 2}) {  // the later one replaces the earlier one
      const RankFolder part = add_part(number, 3);
      ASSERT_TRUE(stores_[0].recycle(part, part.parity(1), 3));
      EXPECT_FALSE(fs::exists(folder_of(part.path)));
    }
    const bool kept = fs::exists(stores_[0].spare(3));
    EXPECT_EQ(kept, !stores_[0].durable());
    if (memory && !stores_[0].durable()) {
      EXPECT_EQ(fs::file_size(stores_[0].spare(3)), 6U);
    }
    ASSERT_TRUE(
        drop_leftovers(*files_, stores_, [](std::size_t, int owner) { return owner != 3; }));
    EXPECT_EQ(fs::exists(stores_[0].spare(3)), kept) << "another rank looks after it";
    ASSERT_TRUE(drop_leftovers(*files_, stores_, [](std::size_t, int) { return true; }));
    EXPECT_TRUE(fs::is_empty(stores_[0].root())) << "no run needs an earlier run's";
    fs::create_directories(stores_[0].spare(7) + "/x");
    ASSERT_TRUE(drop_leftovers(*files_, stores_, [](std::size_t, int) { return true; }));
    EXPECT_FALSE(fs::exists(stores_[0].spare(7))) << "whatever it is, its name is Cairn's";
  }
}

TEST_F(CacheTest, APartHalfRemovedIsNeverTakenForWhole) {
  bool removed = false;
  std::uint64_t operations = 0;
  for (; !removed; ++operations) {
    const RankFolder folder = add_part(1, 0);
    write(folder.prepared(), encode(record_of(1, 0, 2)));
    removed = remove_partly(folder, operations);
    const HeldPart part = read_part(*files_, folder, 0);
    const bool whole = fs::exists(folder.file("state")) && fs::exists(folder.parity(1));
    const bool committed = std::any_of(part.own.begin(), part.own.end(),
                                       [](const HeldRecord& held) { return held.committed; });
    const bool only_inspected = operations < 2;
    EXPECT_EQ(committed, only_inspected) << "stopped after " << operations;
    EXPECT_TRUE(part.own.empty() || whole) << "stopped after " << operations;
    ASSERT_TRUE(stores_[0].remove(folder)) << "what is left can be removed";
    EXPECT_TRUE(fs::is_empty(stores_[0].root()));
  }
  EXPECT_GT(operations, 8U);
}

}  // namespace
}  // namespace cairn
