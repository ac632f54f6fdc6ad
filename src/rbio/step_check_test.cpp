// The golden step, restored and checked; the checks themselves are tested in tools_test.
#include "rbio/step_check.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "files/posix_files.hpp"

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

}  // namespace
}  // namespace cairn::rbio
