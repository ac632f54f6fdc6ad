// What copies in the background take of main memory, against docs/reference/space-and-memory.md.
// Not under sanitizers, which have an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <fstream>

#include "base/heap_meter.hpp"
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
const Nodes two_nodes = {"n0", "n1"};

/// What all ranks take at most, from the moment when the file of each is about to be staged until
/// the end of the run. Both threads of a rank that may copy do so, as SCR_Finalize waits for them.
std::int64_t peak_of_copy(std::int64_t bytes_of_rank) {
  SafetyBed bed;
  bed.settings.block_bytes = 256 << 10;
  bed.settings.encode_bytes = mebibyte;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  Gate gate;
  EXPECT_TRUE(bed.run(two_nodes, [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (stages(operation)) gate.pass();
      return {};
    };
    ASSERT_TRUE(rank.init());
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_output));
    std::ofstream(*rank.session->route_file(rank.file_name(0, 1)))
        << std::string(static_cast<std::size_t>(bytes_of_rank), 'a');
    ASSERT_TRUE(rank.session->complete_output(true));
    gate.wait_for(static_cast<int>(two_nodes.size()));
    rank.comm.barrier();
    if (rank.number() == 0) {
      heap::begin_peak();
      gate.open();
    }
    finalize(rank);
  }));
  const std::int64_t peak = heap::peak_since_begin();
  for (int rank = 0; rank < static_cast<int>(two_nodes.size()); ++rank)
    EXPECT_EQ(std::filesystem::file_size(bed.file(1, rank)), bytes_of_rank);
  return peak;
}

/// A rank is to need 32 MiB at most; the larger files exceed that. Both are copied in several
/// pieces, which take memory only after the files are made.
TEST(SessionCopyMemory, ACopyTakesTwoMebibytesOfARankHoweverMuchDataThereAre) {
  for (const std::int64_t bytes_of_rank : {12 * mebibyte, 40 * mebibyte}) {
    const std::int64_t peak = peak_of_copy(bytes_of_rank);
    EXPECT_LE(peak, 2 * mebibyte * static_cast<std::int64_t>(two_nodes.size())) << bytes_of_rank;
    EXPECT_GE(peak, 256 << 10) << "nothing was measured";
  }
}

}  // namespace
}  // namespace cairn

#endif
