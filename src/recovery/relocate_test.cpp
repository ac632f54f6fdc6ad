// Parts of a dataset on their way between ranks of a Team, on real files.
#include "recovery/relocate.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "support/file_contents.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int no_holder = -1;
constexpr std::size_t piece_bytes = 1000;

void write(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// Bytes none of which is zero, so that none looks as if it had not been read.
std::string content_of(int owner, std::size_t size) {
  std::minstd_rand random(static_cast<unsigned>(owner) + 1);
  std::string content(size, '\0');
  for (char& c : content) c = static_cast<char>(1 + random() % 255);
  return content;
}

/// A hook of one rank's files.
using RankHook = std::function<Status(int rank, const FileOperation&)>;

/// Every rank's part, first in folders from/rank.N, later in to/rank.N.
class Parts {
 public:
  explicit Parts(int ranks, const std::string& base = {}) : base_(base) {
    for (int owner = 0; owner < ranks; ++owner) {
      RankRecord& record = records_.emplace_back();
      record.rank = owner;
      record.encoding.generation = 2;
      for (const auto& [name, size] : sizes(owner)) {
        write(from(owner).file(name), content_of(owner, size));
        FileEntry& entry = record.files.emplace_back();
        entry.name = name;
        entry.size = size;
      }
      write(from(owner).parity(2), content_of(owner, parity_size(owner)));
    }
  }

  static std::vector<std::pair<std::string, std::size_t>> sizes(int owner) {
    const auto size = static_cast<std::size_t>(owner);
    return {{"state", 3333 * size + 2500}, {"empty", 0}, {"a/b/state", 1000 * size}, {"a/c", 1}};
  }
  static std::size_t parity_size(int owner) { return 777 * static_cast<std::size_t>(owner); }
  static std::uint64_t bytes(int owner) {
    std::uint64_t sum = parity_size(owner);
    for (const auto& [name, size] : sizes(owner)) sum += size;
    return sum;
  }

  int ranks() const { return static_cast<int>(records_.size()); }
  RankFolder from(int owner) const { return {base_ / ("from/rank." + std::to_string(owner))}; }
  RankFolder to(int owner) const { return {base_ / ("to/rank." + std::to_string(owner))}; }

  /// Moves the part of each rank from `holders[rank]` to it; what each rank got back.
  std::vector<Result<std::uint64_t>> move(
      const std::vector<int>& holders, Team::Mode mode = Team::Mode::rendezvous,
      const RankHook& hook = [](int, const FileOperation&) { return Status{}; },
      std::size_t piece = piece_bytes) {
    std::vector<Result<std::uint64_t>> results(holders.size());
    Team(ranks(), mode).run([&](Communicator& comm) {
      const int rank = comm.rank();
      const auto posix = make_posix_files();
      const auto files = make_hooked_files(
          *posix, [&](const FileOperation& operation) { return hook(rank, operation); });
      std::vector<OutgoingPart> outgoing;
      for (int owner = 0; owner < ranks(); ++owner)
        if (holders[static_cast<std::size_t>(owner)] == rank)
          outgoing.push_back({owner, from(owner)});
      const auto mine = static_cast<std::size_t>(rank);
      std::optional<IncomingPart> incoming;
      if (holders[mine] != no_holder) incoming = {holders[mine], to(rank), &records_[mine]};
      results[mine] = relocate(comm, *files, outgoing, incoming, piece);
    });
    return results;
  }

  void expect_arrived(int owner) const {
    for (const auto& [name, size] : sizes(owner)) {
      EXPECT_TRUE(fs::exists(to(owner).file(name))) << to(owner).file(name);
      EXPECT_TRUE(read_all(to(owner).file(name)) == content_of(owner, size))
          << to(owner).file(name);
    }
    EXPECT_TRUE(read_all(to(owner).parity(2)) == content_of(owner, parity_size(owner))) << owner;
  }

  void expect_arrived(const std::vector<int>& holders,
                      const std::vector<Result<std::uint64_t>>& results) const {
    for (int owner = 0; owner < ranks(); ++owner) {
      const auto& result = results[static_cast<std::size_t>(owner)];
      ASSERT_TRUE(result) << result.error().text;
      const bool moved = holders[static_cast<std::size_t>(owner)] != no_holder;
      EXPECT_EQ(*result, moved ? bytes(owner) : 0U);
      EXPECT_EQ(fs::exists(to(owner).path), moved);
      if (moved) expect_arrived(owner);
    }
  }

 private:
  TemporaryFolder base_;
  std::vector<RankRecord> records_;
};

TEST(Relocate, AnyPermutationArrivesWhole) {
  for (const auto mode : {Team::Mode::rendezvous, Team::Mode::buffered})
    for (const std::vector<int>& holders :
         {std::vector<int>{1, 2, 3, 4, 0}, {4, 3, 2, 1, 0}, {1, 0, 2, 4, 3}}) {
      Parts parts(5);
      parts.expect_arrived(holders, parts.move(holders, mode));
    }
}

TEST(Relocate, OneRankMaySendSeveralPartsAndOthersNone) {
  for (const auto mode : {Team::Mode::rendezvous, Team::Mode::buffered})
    for (const std::vector<int>& holders :
         {std::vector<int>{no_holder, 0, 0, 4, no_holder},
          {2, 2, 2, 2, 2},
          {no_holder, no_holder, no_holder, no_holder, no_holder}}) {
      Parts parts(5);
      parts.expect_arrived(holders, parts.move(holders, mode));
    }
}

TEST(Relocate, AnyLengthOfPiecesWillDo) {
  const std::vector<int> holders = {2, 0, 1};
  for (const std::size_t piece : {std::size_t{7}, std::size_t{2500}, std::size_t{1} << 20}) {
    Parts parts(3);
    parts.expect_arrived(holders, parts.move(
                                      holders, Team::Mode::rendezvous,
                                      [](int, const FileOperation&) { return Status{}; }, piece));
  }
}

TEST(Relocate, WhatTheRecordDoesNotNameIsNotWritten) {
  Parts parts(2);
  for (const char* name : {"record", "record.new", "parity.1", "parity.3", "files/stranger",
                           "files/a/b/stranger", "state", "files/empty.x"})
    write(parts.from(0).path + "/" + name, std::string(1500, 'x'));
  write(parts.from(0).path + "/nothing", "");
  fs::create_directory_symlink("/", parts.from(0).path + "/link");
  for (const auto& result : parts.move({1, no_holder})) ASSERT_TRUE(result);
  parts.expect_arrived(0);
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(parts.to(0).path))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, Parts::sizes(0).size() + 1);
}

TEST(Relocate, WhatStoodThereBeforeIsGone) {
  Parts parts(2);
  write(parts.to(0).file("old"), "old");
  write(parts.to(0).file("state"), std::string(100'000, 'x'));
  write(parts.to(0).record(), "old");
  for (const auto& result : parts.move({1, no_holder})) ASSERT_TRUE(result);
  parts.expect_arrived(0);
  EXPECT_FALSE(fs::exists(parts.to(0).file("old")));
  EXPECT_FALSE(fs::exists(parts.to(0).record()));
}

TEST(Relocate, ASourceThatIsNotThereArrivesAsNothing) {
  Parts parts(3);
  fs::remove_all(parts.from(1).path);
  fs::remove(parts.from(2).file("a/b/state"));
  const auto results = parts.move({2, 0, 1});
  for (const auto& result : results) ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(*results[1], 0U);
  EXPECT_TRUE(fs::is_empty(parts.to(1).files()));
  EXPECT_FALSE(fs::exists(parts.to(2).file("a/b/state")));
  EXPECT_TRUE(fs::exists(parts.to(2).file("a/c")));
  parts.expect_arrived(0);
}

/// Moves parts of three ranks while `damage` is done to the state of rank 1 at operation `name`
/// number `count` on it; returns what arrived of that file, all else being whole.
std::string arrives_after(const std::string& store, std::string_view name, int count,
                          const std::function<void(const std::string&)>& damage) {
  Parts parts(3, store);
  const std::string state = parts.from(1).file("state");
  const auto results =
      parts.move({2, 0, 1}, Team::Mode::rendezvous, [&](int, const FileOperation& operation) {
        // Only the one rank that holds it opens it, so the count is not shared.
        if (operation.name == name && operation.path == state && --count == 0) damage(state);
        return Status{};
      });
  EXPECT_LE(count, 0) << "the damage was done";
  for (const auto& result : results) EXPECT_TRUE(result);
  parts.expect_arrived(0);
  parts.expect_arrived(2);
  EXPECT_TRUE(read_all(parts.to(1).file("a/b/state")) == content_of(1, 1000));
  return read_all(parts.to(1).file("state"));
}

/// A store on disk and, where there is one, one in memory, which is read through a mapping.
std::vector<std::string> stores() {
  std::vector<std::string> bases = {""};
  if (fs::is_directory("/dev/shm")) bases.emplace_back("/dev/shm");
  return bases;
}

TEST(Relocate, ASourceThatVanishesOrIsCutArrivesWrongAndHangsNoRank) {
  const std::size_t size = Parts::sizes(1)[0].second;
  const std::string whole = content_of(1, size);
  for (const std::string& store : stores()) {
    const std::string vanished =
        arrives_after(store, "view", 1, [](const std::string& path) { fs::remove(path); });
    EXPECT_EQ(vanished, std::string(size, '\0'));
    const std::string cut = arrives_after(
        store, "view_at", 3, [](const std::string& path) { fs::resize_file(path, 1500); });
    ASSERT_EQ(cut.size(), size);
    EXPECT_EQ(cut.substr(0, 2 * piece_bytes), whole.substr(0, 2 * piece_bytes));
    EXPECT_EQ(cut.substr(2 * piece_bytes), std::string(size - 2 * piece_bytes, '\0'));
  }
}

TEST(Relocate, AReceiverThatCannotWriteSaysSoAndTheOthersFinish) {
  for (const std::string_view name : {"write", "create", "make_folder"})
    for (const auto mode : {Team::Mode::rendezvous, Team::Mode::buffered}) {
      Parts parts(4);
      const auto results =
          parts.move({1, 2, 3, 0}, mode, [&](int rank, const FileOperation& operation) -> Status {
            if (rank == 2 && operation.name == name)
              return fail(Code::no_space, "no space for {}", operation.path);
            return {};
          });
      for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(results[static_cast<std::size_t>(rank)].has_value(), rank != 2) << name;
      EXPECT_EQ(results[2].error().code, Code::no_space);
      for (const int rank : {0, 1, 3}) parts.expect_arrived(rank);
    }
}

}  // namespace
}  // namespace cairn
