#include "recovery/broadcast_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/checksum.hpp"
#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "records/set_layout.hpp"
#include "support/file_contents.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;

std::string text_of_bytes(std::size_t bytes, char first) {
  std::string text(bytes, first);
  for (std::size_t i = 0; i < bytes; i += 997) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

/// Seven ranks on three nodes, the first rank of none is 0 but of the first.
class BroadcastTest : public ::testing::Test {
 protected:
  static constexpr int ranks = 7;
  static constexpr int owner = 3;

  BroadcastTest() { placement_.node_of_rank = {5, 5, 8, 5, 8, 1, 1}; }

  std::string node_folder(int rank) const {
    return folder_ / std::to_string(placement_.node_of_rank[static_cast<std::size_t>(rank)]);
  }
  std::string path(int rank, const std::string& name) const {
    return folder_ / ("rank." + std::to_string(rank) + "/" + name);
  }

  /// What a rank has written, with the checksums of its blocks.
  RankRecord write(int rank, const Contents& contents) {
    RankRecord record;
    record.rank = rank;
    std::string stream;
    for (const auto& [name, content] : contents) {
      fs::create_directories(fs::path(path(rank, name)).parent_path());
      std::ofstream(path(rank, name), std::ios::binary) << content;
      stream += content;
      FileEntry& entry = record.files.emplace_back();
      entry.name = name;
      entry.size = content.size();
      entry.mode = 0640;
      entry.times = {1'000'000'000, 2'000'000'000};
    }
    record.encoding.block_bytes = 64 << 10;
    record.encoding.members = {rank};
    record.encoding.member_bytes = {stream.size()};
    const Geometry geometry = SetLayout(record.encoding).geometry();
    for (std::uint64_t index = 0; geometry.data_length(index, stream.size()) > 0; ++index)
      record.data_crcs.push_back(crc32c(std::as_bytes(
          std::span(stream).subspan(static_cast<std::size_t>(geometry.data_offset(index)),
                                    geometry.data_length(index, stream.size())))));
    return record;
  }

  void write_all() {
    records_.clear();
    for (int rank = 0; rank < ranks; ++rank) records_.push_back(write(rank, {{"own", "mine"}}));
    records_[owner] = write(owner, {{"a", text_of_bytes(100'001, 'a')},
                                    {"mesh/big", big_},
                                    {"mesh/empty", ""},
                                    {"z.cfg", "of three"}});
    records_[5] = write(5, {{"z.cfg", "of five"}});
  }

  using RankMain = std::function<void(Communicator&, BroadcastFiles&, const Status&)>;
  using RankHook = std::function<Status(int rank, const FileOperation&)>;

  void run(const RankMain& then, const RankHook& hook = nullptr) {
    Team(ranks).run([&](Communicator& comm) {
      const auto posix = make_posix_files();
      const auto files = make_hooked_files(*posix, [&](const FileOperation& next) -> Status {
        return hook ? hook(comm.rank(), next) : Status{};
      });
      const RankRecord& mine = records_[static_cast<std::size_t>(comm.rank())];
      std::vector<std::string> paths;
      for (const FileEntry& file : mine.files) paths.push_back(path(comm.rank(), file.name));
      BroadcastFiles broadcast(*files, placement_);
      const Status placed =
          broadcast.place(comm, patterns_, mine, paths, node_folder(comm.rank()) + "/broadcast");
      then(comm, broadcast, placed);
    });
  }

  void expect_refused(const RankHook& hook, Code code) {
    run(
        [&](Communicator& comm, BroadcastFiles& broadcast, const Status& placed) {
          ASSERT_FALSE(placed);
          EXPECT_EQ(placed.error().code, code) << placed.error().text;
          EXPECT_FALSE(broadcast.find("mesh/big"));
          comm.barrier();
          EXPECT_FALSE(fs::exists(node_folder(comm.rank()) + "/broadcast"));
        },
        hook);
  }

  TemporaryFolder folder_;
  Placement placement_;
  std::vector<std::string> patterns_ = {"mesh/*", "*.cfg"};
  const std::string big_ = text_of_bytes((std::size_t{5} << 19) + 7, 'b');
  std::vector<RankRecord> records_;
};

TEST_F(BroadcastTest, EveryNodeHasItsCopyOfWhatMatches) {
  write_all();
  run([&](Communicator& comm, BroadcastFiles& broadcast, const Status& placed) {
    ASSERT_TRUE(placed) << placed.error().text;
    const std::string folder = node_folder(comm.rank()) + "/broadcast";
    EXPECT_EQ(broadcast.find("mesh/big"), folder + "/mesh/big");
    EXPECT_TRUE(read_all(folder + "/mesh/big") == big_);
    EXPECT_EQ(read_all(folder + "/mesh/empty"), "");
    EXPECT_TRUE(fs::exists(folder + "/mesh/empty"));
    EXPECT_EQ(read_all(folder + "/z.cfg"), "of three") << "the lowest rank's";
    EXPECT_FALSE(broadcast.find("a"));
    EXPECT_FALSE(broadcast.find("own"));
    const auto info = make_posix_files()->info(folder + "/mesh/big");
    EXPECT_EQ(info->mode, 0640U);
    EXPECT_EQ(info->times.modify_ns, 2'000'000'000);
    comm.barrier();
    EXPECT_TRUE(broadcast.remove(comm.rank()));
    comm.barrier();
    EXPECT_FALSE(fs::exists(folder));
    EXPECT_FALSE(broadcast.find("mesh/big"));
  });
}

TEST_F(BroadcastTest, AFileIsReadOnce) {
  write_all();
  std::atomic<std::uint64_t> bytes = 0;
  run([](Communicator&, BroadcastFiles&, const Status& placed) { EXPECT_TRUE(placed); },
      [&](int, const FileOperation& next) -> Status {
        if (next.path == path(owner, "mesh/big")) bytes += next.bytes;
        return {};
      });
  const std::size_t of_neighbours = 2 * records_[owner].encoding.block_bytes;
  EXPECT_GE(bytes, big_.size());
  EXPECT_LT(bytes, big_.size() + of_neighbours);
}

TEST_F(BroadcastTest, WithoutAMatchNothingIsMade) {
  write_all();
  patterns_ = {"*.mesh"};
  run([&](Communicator& comm, BroadcastFiles& broadcast, const Status& placed) {
    EXPECT_TRUE(placed);
    EXPECT_FALSE(broadcast.find("mesh/big"));
    EXPECT_TRUE(broadcast.remove(comm.rank()));
  });
  EXPECT_FALSE(fs::exists(node_folder(0)));
}

TEST_F(BroadcastTest, DamageAndFailuresAreEverybodysError) {
  write_all();
  std::fstream(path(owner, "mesh/big"), std::ios::binary | std::ios::in | std::ios::out)
      .seekp(2'000'000)
      .put('!');
  expect_refused(nullptr, Code::corrupt);
  write_all();
  const auto no_room = [this](int rank, const FileOperation& next) -> Status {
    const bool there =
        rank == 5 && next.name == "write" && next.path == node_folder(5) + "/broadcast/mesh/big";
    return there ? fail(Code::no_space, "injected") : Status{};
  };
  expect_refused(no_room, Code::no_space);
}

TEST(BroadcastPatterns, AreThoseOfTheShellOverTheWholeName) {
  EXPECT_TRUE(matches_any({"x", "in/*.dat"}, "in/a.dat"));
  EXPECT_TRUE(matches_any({"*.dat"}, "in/deep/a.dat"));
  EXPECT_FALSE(matches_any({"a.dat"}, "in/a.dat"));
  EXPECT_FALSE(matches_any({}, "a"));
}

}  // namespace
}  // namespace cairn
