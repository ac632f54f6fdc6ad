// The golden step, restored and checked; the checks themselves are tested in tools_test.
#include "rbio/step_check.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn::rbio {
namespace {

const std::string golden = CAIRN_GOLDEN "/rbio/v1/step.42";
constexpr std::uint64_t elements = 300007;

TEST(Golden, AStepOfVersionOneIsWhole) {
  const auto files = make_posix_files();
  const StepCheck check = check_step(*files, golden);
  EXPECT_TRUE(check.troubles.empty()) << check.troubles[0].error.text;
  EXPECT_EQ(check.parts, 2U);
}

TEST(Golden, AStepOfVersionOneIsRestoredOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 5}) {
    Team(ranks).run([&](Communicator& comm) {
      const auto files = make_posix_files();
      const auto index = StepIndex::load(comm, *files, golden);
      ASSERT_TRUE(index) << index.error().text;
      const std::uint64_t first =
          elements * static_cast<std::uint64_t>(comm.rank()) / static_cast<std::uint64_t>(ranks);
      const std::uint64_t end = elements * static_cast<std::uint64_t>(comm.rank() + 1) /
                                static_cast<std::uint64_t>(ranks);
      Blob data(end - first);
      const Status restored =
          restore_step(comm, *files, golden, *index,
                       {{{"two_blocks", ElementType::uint8, 1}, data.data(), data.size()}});
      ASSERT_TRUE(restored) << restored.error().text;
      for (std::size_t i = 0; i < data.size(); ++i)
        ASSERT_EQ(data[i], static_cast<std::byte>((first + i) % 251)) << i;
    });
  }
}

TEST(PartFormat, TheTableFollowsTheHeader) {
  const auto files = make_posix_files();
  const auto index = read_part_index(*files, golden + "/part.0.rbio");
  ASSERT_TRUE(index) << index.error().text;
  const Blob header = encode_header(index->header);
  EXPECT_TRUE(decode_header(header));
  EXPECT_EQ(header.size(), index->header.table_offset);
}

/// A part without fields: an entry for each of `ranks`.
void write_part_of(Files& files, const std::string& step_path, PartHeader part,
                   const std::vector<std::uint32_t>& ranks) {
  const std::uint64_t table_bytes = ranks.size() * entry_bytes({});
  PartHeader header = lay_out({}, {}, table_bytes);
  header.step = 1;
  header.attempt = {1, 1};
  header.part = part.part;
  header.parts = part.parts;
  header.ranks = part.ranks;
  Blob content = encode_header(header);
  for (const std::uint32_t rank : ranks) {
    const Blob entry = encode_entry({rank, {}});
    content.insert(content.end(), entry.begin(), entry.end());
  }
  ASSERT_TRUE(write_file_atomically(files, step_path + "/" + part_name(part.part), content, false));
}

TEST(StepIndex, EachRankThatWroteIsInExactlyOnePart) {
  using Ranks = std::vector<std::uint32_t>;
  struct Parts {
    Ranks first, second;
    bool is_whole;
  };
  for (const Parts& parts : {Parts{{0, 2}, {1}, true}, Parts{{0}, {1}, false},
                             Parts{{0, 1}, {1}, false}, Parts{{0, 1}, {1, 2}, false}}) {
    const TemporaryFolder folder;
    const auto files = make_posix_files();
    PartHeader part;
    part.parts = 2;
    part.ranks = 3;
    write_part_of(*files, folder.path(), part, parts.first);
    part.part = 1;
    write_part_of(*files, folder.path(), part, parts.second);
    const auto index = read_step_index(*files, folder.path());
    EXPECT_EQ(index.has_value(), parts.is_whole);
    if (!index) {
      EXPECT_EQ(index.error().code, Code::corrupt);
    }
  }
}

}  // namespace
}  // namespace cairn::rbio
