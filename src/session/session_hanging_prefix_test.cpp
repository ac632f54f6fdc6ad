// No call of the program waits for a prefix directory that does not answer: neither for a copy, nor
// for the halt file or the log.
#include "prefix/halt_file.hpp"
#include "support/async_bed.hpp"

namespace cairn {
namespace {

TEST(SessionHangingPrefix, CallsGoOnAndNothingOfTheLogIsLost) {
  AsyncBed bed;
  bed.settings.log = bed.settings.log_json = true;
  bed.settings.log_syslog = false;
  Gate gate;
  std::atomic<bool> is_shut = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_shut && operation.path.starts_with(bed.settings.prefix)) gate.pass();
    return {};
  };
  const auto files = make_posix_files();
  HaltFile halt(*files, *bed.clock, PrefixFolder{bed.settings.prefix});
  ASSERT_TRUE(halt.update([](HaltRecord& record) { record.checkpoints_left = 5; }));
  bed.run_async([&](JobRank& rank) {
    rank.comm.barrier();
    is_shut = true;
    rank.comm.barrier();
    const std::int64_t from_us = rank.clock.steady_us();
    for (int dataset = 1; dataset <= 5; ++dataset) {
      EXPECT_FALSE(rank.session->schedule().should_exit().value_or(true));
      rank.expect_written(dataset);
    }
    EXPECT_TRUE(rank.session->schedule().should_exit().value_or(false))
        << "it counts, though not in the file";
    EXPECT_LT(rank.clock.steady_us() - from_us, 10'000'000);
    rank.comm.barrier();
    if (rank.number() == 0) {
      is_shut = false;
      gate.open();
    }
    finalize(rank);
  });
  EXPECT_EQ(halt.read()->checkpoints_left, 0);
  EXPECT_EQ(halt.read()->reason, halt_reason::no_checkpoints_left);
  for (const std::string& path : {PrefixFolder{bed.settings.prefix}.job().json_log(),
                                  PrefixFolder{bed.settings.prefix}.job().log()}) {
    const std::string log = read_all(path);
    std::size_t ends = 0;
    for (std::size_t at = 0; (at = log.find("CHECKPOINT_END", at)) != std::string::npos; ++at)
      ++ends;
    EXPECT_EQ(ends, 5U) << log;
    EXPECT_LT(log.find("CHECKPOINT_END"), log.find("FINALIZE")) << log;
  }
}

/// Two copies hang, and no later dataset finds room.
TEST(SessionHangingPrefix, TheSameFailureIsLoggedOnce) {
  AsyncBed bed;
  bed.settings.stores[0].count = 9;
  bed.clock = std::make_unique<SkewedClock>(40);
  Gate gate;
  bed.hold_copies_at(gate);
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    for (const int dataset : {3, 4, 5}) (void)rank.write(dataset, flag_output);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "a call waited for the directory";
      EXPECT_TRUE(bed.comes_to_be_listed(2));
    }
    rank.comm.barrier();
    finalize(rank);
  });
  const std::string& said = bed.log_text();
  const auto first = said.find("stays in the cache");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("stays in the cache", first + 1), std::string::npos) << said;
}

/// No copy is under way, and no line of the log waits. Only the threads of rank 0 that give signs
/// of life and read the halt file wait for the directory.
TEST(SessionHangingPrefix, AProcessThatEndsWithoutFinalizeIsNotHeldBack) {
  AsyncBed bed;
  Gate gate;
  std::atomic<bool> is_shut = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_shut && operation.path.starts_with(bed.settings.prefix)) gate.pass();
    return {};
  };
  const Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    rank.comm.barrier();
    is_shut = true;
    if (rank.number() == 0) gate.wait_for(1);
    rank.comm.barrier();
    const std::int64_t from_us = rank.clock.steady_us();
    EXPECT_EQ(rank.session->leave(), rank.number() != 0);
    EXPECT_LT(rank.clock.steady_us() - from_us, 10'000'000);
    rank.comm.barrier();
    is_shut = false;
    gate.open();
  });
}

}  // namespace
}  // namespace cairn
