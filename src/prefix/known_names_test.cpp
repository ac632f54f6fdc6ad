#include "prefix/known_names.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"

namespace cairn {
namespace {

FileEntry file(const std::string& name, std::uint64_t size, std::optional<FilePart> part = {}) {
  FileEntry entry;
  entry.name = name;
  entry.size = size;
  entry.part = part;
  return entry;
}

/// Of six records two are rank 0's, none the last one's; record i has "r<i>", all share "shared".
std::vector<RankRecord> share_of(int rank, int ranks) {
  std::vector<RankRecord> records;
  for (int i = rank; i < 6; i += ranks - 1) {
    if (rank == ranks - 1) break;
    RankRecord& record = records.emplace_back();
    record.files = {file("r" + std::to_string(i), 1),
                    file("shared", 600, FilePart{static_cast<std::uint64_t>(i) * 100, 100})};
  }
  return records;
}

TEST(KnownNames, EveryRankKnowsTheNamesInAllRecords) {
  for (const int ranks : {2, 5, 8})
    Team(ranks).run([&](Communicator& comm) {
      const KnownNames names(comm, share_of(comm.rank(), ranks));
      for (const char* name : {"r0", "r1", "r2", "r3", "r4", "r5", "shared"})
        EXPECT_TRUE(names.has(name)) << name << " of " << ranks;
      for (const char* name : {"r6", "r", ""}) EXPECT_FALSE(names.has(name)) << name;
    });
}

TEST(KnownNames, NoneAreKnownOfNoRecords) { EXPECT_FALSE(KnownNames().has("r0")); }

}  // namespace
}  // namespace cairn
