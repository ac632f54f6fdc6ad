// Protect and heal one set over a Team of threads and real files.
#include <sys/resource.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "files/hooked_files.hpp"
#include "redundancy/block_check.hpp"
#include "redundancy/replicas.hpp"
#include "redundancy/set_on_disk.hpp"

namespace cairn {
namespace {

void flip(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 0x40);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
  ASSERT_TRUE(file.good());
}

std::vector<std::vector<std::size_t>> unequal() {
  return {{30'000, 5}, {12'345, 40'001}, {0, 0}, {100'000, 1}};
}

TEST(Protect, ParityTakesTheFormulaToTheByte) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  for (int rank = 0; rank < set.members(); ++rank)
    EXPECT_EQ(std::filesystem::file_size(set.parity(rank)), (100'001U + 2) / 3);
}

TEST(Protect, ParityIsTheSumOfTheStripe) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), {{4096 * 2}, {4096 * 2}, {4096 * 2}});
  set.protect_all();
  // Row 0, position 0: the second data block of member 1 and the first of member 2.
  const std::string one = read(set.path(1, 0)).substr(4096);
  const std::string two = read(set.path(2, 0));
  const std::string parity = read(set.parity(0));
  ASSERT_EQ(parity.size(), 4096U);
  for (std::size_t i = 0; i < parity.size(); ++i)
    ASSERT_EQ(parity[i], static_cast<char>(one[i] ^ two[i]));
}

TEST(Protect, ChecksumsAreThoseOfTheBlocks) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all(Team::Mode::buffered);
  set.expect_intact();
  const RankRecord& record = set.record(0);
  const std::string stream = content_of(0, 0, 30'000) + content_of(0, 1, 5);
  const Geometry geometry = SetLayout(record.encoding).geometry();
  ASSERT_EQ(record.data_crcs.size(), geometry.data_blocks(30'005));
  for (std::size_t i = 0; i < record.data_crcs.size(); ++i) {
    const std::string block =
        stream.substr(geometry.data_offset(i), geometry.data_length(i, 30'005));
    EXPECT_EQ(record.data_crcs[i], crc32c(std::as_bytes(std::span(block))));
  }
}

/// Flips a byte of the first whole block that its rank sends.
class GarblingCommunicator final : public Communicator {
 public:
  explicit GarblingCommunicator(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request isend(Bytes data, int to, int tag) override {
    if (data.size() != block_bytes || !garbled_.empty()) return inner_.isend(data, to, tag);
    garbled_.assign(data.begin(), data.end());
    garbled_[17] ^= std::byte{1};
    return inner_.isend(garbled_, to, tag);
  }
  Request irecv(MutableBytes buffer, int from, int tag) override {
    return inner_.irecv(buffer, from, tag);
  }
  void idle() override { inner_.idle(); }

 private:
  Communicator& inner_;
  Blob garbled_;
};

TEST(Protect, ACopyThatWentWrongOnTheWayIsFoundAndMadeGood) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal(), {Scheme::partner, 2, 1});
  Team(set.members()).run([&](Communicator& comm) {
    GarblingCommunicator garbling(comm);
    Communicator& mine = comm.rank() == 3 ? static_cast<Communicator&>(garbling) : comm;
    const auto files = make_posix_files();
    EXPECT_TRUE(
        protect(mine, *files, set.folder(comm.rank()), set.record(comm.rank()), encode_bytes));
  });
  const auto healed = set.heal_all(true);
  ASSERT_TRUE(healed) << healed.error().text;
  EXPECT_EQ(*healed, 2U) << "the copy, and the copy of it";
  set.expect_intact();
}

TEST(Protect, AMissingFileFailsOnItsRankAndHangsNobody) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  std::filesystem::remove(set.path(1, 0));
  Team(4).run([&](Communicator& comm) {
    const auto files = make_posix_files();
    const auto done =
        protect(comm, *files, set.folder(comm.rank()), set.record(comm.rank()), encode_bytes);
    EXPECT_EQ(done.has_value(), comm.rank() != 1);
    if (!done) {
      EXPECT_NE(done.error().text.find("rank.1/files/d0/state"), std::string::npos);
    }
  });
}

TEST(Protect, OverASpareOfAnySizeTheParityIsTheSame) {
  for (const std::size_t spare_bytes : {0U, 100U, 1'000'000U}) {
    TemporaryFolder base;
    SetOnDisk set(base.path(), unequal());
    set.protect_all();
    const std::string fresh = read(set.parity(2));
    const std::string spare = base / "spare.2";
    write(spare, std::string(spare_bytes, '\xff'));
    Team(4).run([&](Communicator& comm) {
      const auto files = make_posix_files();
      const auto done = protect(comm, *files, set.folder(comm.rank()), set.record(comm.rank()),
                                encode_bytes, comm.rank() == 2 ? spare : "");
      EXPECT_TRUE(done) << done.error().text;
    });
    EXPECT_EQ(read(set.parity(2)), fresh) << "over " << spare_bytes << " bytes";
    EXPECT_FALSE(std::filesystem::exists(spare));
    set.expect_intact();
  }
}

TEST(Heal, AnyOneMemberLostIsRebuiltBitForBit) {
  for (const auto& sizes :
       {unequal(), {{70'000, 1}, {50'000, 2}}, {{1}, {2}, {3}, {0}, {4}, {5}, {6}, {9000}}}) {
    TemporaryFolder base;
    SetOnDisk set(base.path(), sizes);
    set.protect_all();
    for (int lost = 0; lost < set.members(); ++lost) {
      std::filesystem::remove_all(set.folder(lost).path);
      const auto healed = set.heal_all(false);
      ASSERT_TRUE(healed) << healed.error().text;
      set.expect_intact();
    }
  }
}

TEST(Heal, RebuiltFilesHaveTheirModeAndTimes) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  std::filesystem::remove_all(set.folder(3).path);
  ASSERT_TRUE(set.heal_all(false));
  const auto info = make_posix_files()->info(set.path(3, 0));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->mode, 0640U);
  EXPECT_EQ(info->times.modify_ns, 1'600'000'000'123'456'789);
}

TEST(Heal, AFlippedByteAnywhereIsFoundAndRepaired) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  for (int rank = 0; rank < set.members(); ++rank)
    for (const std::string& path : {set.path(rank, 0), set.path(rank, 1), set.parity(rank)}) {
      const auto size = std::filesystem::file_size(path);
      for (const std::uint64_t at : {std::uint64_t{0}, size / 2, size - 1}) {
        if (size == 0) continue;
        flip(path, at);
        const auto healed = set.heal_all(true);
        ASSERT_TRUE(healed) << healed.error().text;
        ASSERT_EQ(*healed, 1U) << path << " at " << at;
        set.expect_intact();
      }
    }
}

TEST(Heal, TruncatedDeletedLongerAndReplacedFilesAreRepaired) {
  namespace fs = std::filesystem;
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  const std::vector<std::function<void(const std::string&)>> damages = {
      [](const std::string& path) { fs::resize_file(path, 100); },
      [](const std::string& path) { fs::resize_file(path, fs::file_size(path) + 50); },
      [](const std::string& path) { fs::remove(path); },
      [](const std::string& path) {
        fs::remove(path);
        fs::create_directories(path + "/in/the/way");
      },
      [](const std::string& path) {
        fs::remove(path);
        fs::create_symlink("/etc/passwd", path);
      },
      [](const std::string& path) {  // parity.1: the rank's folder
        fs::remove_all(folder_of(path));
        std::ofstream(folder_of(path)) << "in the way";
      }};
  for (const auto& damage : damages)
    for (const std::string& path : {set.path(0, 0), set.path(2, 0), set.parity(1)}) {
      damage(path);
      const auto healed = set.heal_all(false);
      ASSERT_TRUE(healed) << healed.error().text;
      set.expect_intact();
    }
}

TEST(Heal, TwoLostMembersAreRefusedByNameAndNothingIsTouched) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  std::filesystem::remove_all(set.folder(1).path);
  std::filesystem::remove_all(set.folder(3).path);
  const auto healed = set.heal_all(false);
  ASSERT_FALSE(healed);
  EXPECT_EQ(healed.error().code, Code::lost);
  EXPECT_NE(healed.error().text.find("rank 1 (written on n1)"), std::string::npos)
      << healed.error().text;
  EXPECT_NE(healed.error().text.find("rank 3 (written on n3)"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(set.folder(1).path));
}

TEST(Heal, DamageInDifferentStripesIsRepairedEvenOnSeveralMembers) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), {{100'000}, {100'000}, {100'000}, {100'000}});
  set.protect_all();
  flip(set.path(0, 0), 0);        // row 0
  flip(set.path(1, 0), 50'000);   // row 4
  flip(set.parity(2), 4096 * 2);  // row 2
  const auto healed = set.heal_all(true);
  ASSERT_TRUE(healed) << healed.error().text;
  EXPECT_EQ(*healed, 3U);
  set.expect_intact();
}

TEST(Heal, AFlipInTheStripeOfALostMemberIsRefusedNeverSpread) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), unequal());
  set.protect_all();
  flip(set.path(0, 0), 20'000);
  std::filesystem::remove_all(set.folder(3).path);
  const auto healed = set.heal_all(false);
  ASSERT_FALSE(healed);
  EXPECT_EQ(healed.error().code, Code::lost);
  EXPECT_FALSE(std::filesystem::exists(set.path(3, 0)));
}

TEST(Heal, ASingleRankFindsDamageButCannotRepairIt) {
  TemporaryFolder base;
  SetOnDisk set(base.path(), {{9000, 10}});
  set.protect_all();
  EXPECT_TRUE(set.heal_all(true));
  flip(set.path(0, 0), 5000);
  const auto healed = set.heal_all(true);
  ASSERT_FALSE(healed);
  EXPECT_EQ(healed.error().code, Code::lost);
}

TEST(Heal, MoreFilesThanAProcessMayOpenAreRebuilt) {
  TemporaryFolder base;
  const std::vector<std::size_t> many(300, 50);
  SetOnDisk set(base.path(), {many, many, many});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  set.protect_all();
  std::filesystem::remove_all(set.folder(1).path);
  const auto healed = set.heal_all(false);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(healed) << healed.error().text;
  set.expect_intact();
}

TEST(RankBlocks, AFileThatCannotBeInspectedIsNotMadeAnew) {
  const TemporaryFolder folder;
  SetOnDisk set(folder.path(), {{10'000, 3'000}, {9'000}});
  set.protect_all();
  const auto posix = make_posix_files();
  bool failed = false;
  const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    const bool its = operation.name == "info" && operation.path == set.path(0, 0);
    if (!its || std::exchange(failed, true)) return {};
    return fail(Code::io, "injected: cannot inspect {}", operation.path);
  });
  const Status made = RankBlocks(*files, set.folder(0), set.record(0)).make_room();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::io);
  EXPECT_EQ(read(set.path(0, 0)), content_of(0, 0, 10'000)) << "its good blocks are not rebuilt";
}

TEST(RankBlocks, WritesAndReadsBeyondFourGigabytesAcrossFiles) {
  TemporaryFolder base;
  RankRecord record;
  record.files.resize(2);
  record.files[0].name = "first";
  record.files[0].size = (4ULL << 30) + 100;
  record.files[1].name = "second";
  record.files[1].size = 5000;
  record.encoding = {1,
                     Scheme::xor_,
                     1,
                     1,
                     block_bytes,
                     {0, 1, 2, 3},
                     {"a", "b", "c", "d"},
                     {record.data_bytes(), 0, 0, 0}};
  const auto files = make_posix_files();
  RankBlocks blocks(*files, RankFolder{base.path()}, record);
  ASSERT_TRUE(blocks.make_room());
  const std::uint64_t index = (4ULL << 30) / block_bytes;  // its last bytes are in the second file
  const Geometry geometry = SetLayout(record.encoding).geometry();
  Blob block(geometry.data_length(index, record.data_bytes()), std::byte{7});
  ASSERT_TRUE(blocks.write_data(index, block));
  Blob scratch(block_bytes);
  const auto back = blocks.data(index, scratch);
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_TRUE(std::equal(back->begin(), back->end(), block.begin(), block.end()));
  EXPECT_EQ(read(RankFolder{base.path()}.file("second")).substr(0, 1), "\a");
}

/// Every way to lose some of `members`, with `action` told which.
void each_loss(int members, const std::function<void(const std::vector<bool>&)>& action) {
  for (unsigned mask = 1; mask < 1U << members; ++mask) {
    std::vector<bool> lost;
    for (int member = 0; member < members; ++member) lost.push_back((mask >> member & 1U) != 0);
    action(lost);
  }
}

class EveryScheme : public testing::TestWithParam<Protection> {};

TEST_P(EveryScheme, EveryLossItHoldsIsRebuiltAndEveryOtherRefused) {
  const std::vector<std::vector<std::size_t>> sizes = {
      {30'000, 5}, {12'345, 40'001}, {20'000, 0}, {100'000, 1}, {17'000}};
  for (std::size_t members = 1; members <= sizes.size(); ++members) {
    TemporaryFolder base("/dev/shm");
    SetOnDisk set(base.path(),
                  {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(members)},
                  GetParam());
    Encoding encoding = set.record(0).encoding;
    encoding.member_bytes.resize(members);
    if (!is_sound(encoding)) continue;
    set.protect_all();
    set.expect_intact();
    each_loss(set.members(),
              [&](const std::vector<bool>& lost) { lose(set, lost, base.path() + "/aside"); });
  }
}

TEST_P(EveryScheme, AMemberWithoutDataCountsAsOneToo) {
  TemporaryFolder base("/dev/shm");
  SetOnDisk set(base.path(), {{30'000, 5}, {0}, {20'000}, {0, 0}, {9'000}}, GetParam());
  set.protect_all();
  for (int member = 0; member < set.members(); ++member) {
    std::filesystem::remove_all(set.folder(member).path);
    const auto healed = set.heal_all(false);
    ASSERT_TRUE(healed) << member << ": " << healed.error().text;
    set.expect_intact();
  }
}

TEST_P(EveryScheme, AFlippedByteAnywhereIsRepairedToo) {
  TemporaryFolder base("/dev/shm");
  SetOnDisk set(base.path(), unequal(), GetParam());
  set.protect_all(Team::Mode::buffered);
  for (int rank = 0; rank < set.members(); ++rank)
    for (const std::string& path : {set.path(rank, 0), set.path(rank, 1), set.parity(rank)}) {
      const auto size = std::filesystem::file_size(path);
      for (const std::uint64_t at : {std::uint64_t{0}, size / 2, size - 1}) {
        if (size == 0) continue;
        flip(path, at);
        const auto healed = set.heal_all(true);
        ASSERT_TRUE(healed) << healed.error().text;
        ASSERT_EQ(*healed, 1U) << path << " at " << at;
      }
    }
  set.expect_intact();
}

TEST_P(EveryScheme, AFlippedByteBesideALostMemberIsRepairedWhereTheStripeHoldsIt) {
  TemporaryFolder base("/dev/shm");
  SetOnDisk set(base.path(), unequal(), GetParam());
  set.protect_all(Team::Mode::buffered);
  const std::string lost = set.folder(3).path;
  const std::string aside = base.path() + "/aside";
  for (const std::string& path : {set.path(0, 0), set.parity(1), set.path(1, 1)}) {
    std::filesystem::rename(lost, aside);
    flip(path, 0);
    const auto healed = set.heal_all(false);
    ASSERT_TRUE(healed || GetParam().failures == 1) << path << ": " << healed.error().text;
    if (healed) {
      set.expect_intact();
      std::filesystem::remove_all(aside);
      continue;
    }
    EXPECT_EQ(healed.error().code, Code::lost);
    EXPECT_FALSE(std::filesystem::exists(set.path(3, 0))) << "begun, and looks like a whole file";
    EXPECT_FALSE(std::filesystem::exists(set.parity(3)));
    flip(path, 0);
    std::filesystem::remove_all(lost);
    std::filesystem::rename(aside, lost);
  }
  set.expect_intact();
}

INSTANTIATE_TEST_SUITE_P(Redundancy, EveryScheme,
                         testing::Values(Protection{Scheme::xor_, 1, 1},
                                         Protection{Scheme::partner, 1, 1},
                                         Protection{Scheme::partner, 1, 2},
                                         Protection{Scheme::partner, 2, 1},
                                         Protection{Scheme::rs, 1, 1}, Protection{Scheme::rs, 2, 1},
                                         Protection{Scheme::rs, 3, 1}));

TEST(Replicas, AreKeptWhereTheCopiesAre) {
  for (const std::uint32_t failures : {0U, 1U, 2U, 3U})
    for (const std::uint32_t hop : {1U, 3U})
      Team(4).run([&](Communicator& set) {
        Encoding encoding;
        encoding.members = {0, 1, 2, 3};
        encoding.failures = failures;
        encoding.hop = hop;
        const Blob mine(static_cast<std::size_t>(10 + set.rank()),
                        static_cast<std::byte>(set.rank()));
        const auto kept = exchange_records(set, encoding, mine);
        ASSERT_EQ(kept.size(), failures == 0 ? 0 : std::min(failures + 1, 3U));
        for (std::uint32_t i = 0; i < kept.size(); ++i) {
          const int owner = (set.rank() + 12 - static_cast<int>((i + 1) * hop)) % 4;
          EXPECT_EQ(kept[i],
                    Blob(static_cast<std::size_t>(10 + owner), static_cast<std::byte>(owner)));
        }
      });
}

}  // namespace
}  // namespace cairn
