// A run that dies while it gives up copies in the background.
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// The markers of the ranks that had copied their parts are still there then, and the staged files
/// of these ranks are not.
TEST(SessionAsyncDeath, WhatWasBeingGivenUpIsNotTakenForDone) {
  PrefixJobBed bed;
  bed.settings.flush_async = true;
  bed.clock = std::make_unique<SkewedClock>(40);
  std::atomic<bool> is_given_up = false;
  const bool ended_well = bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_staged = operation.path.find("/.cairn.0") != std::string::npos;
      const bool stages = operation.name == "create" && is_staged;
      if (rank.number() == 2 && stages) return fail(Code::no_space, "injected");
      if (operation.name == "rename" && operation.to.ends_with("/withdrawn")) is_given_up = true;
      const bool abandons =
          operation.name == "remove_file" && operation.path.find("/done/0.") != std::string::npos;
      if (rank.number() == 0 && abandons) throw Crash{};
      return {};
    };
    ASSERT_TRUE(rank.init());
    for (const int dataset : {1, 2}) (void)rank.write(dataset, flag_output);
    (void)rank.session->datasets().drop("none of that name");  // waits until both are given up
  });
  EXPECT_FALSE(ended_well);
  EXPECT_TRUE(is_given_up);
  (void)bed.restart(four_nodes());
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2}) bed.expect_own_files(dataset);
}

/// No file says that they were to be copied.
TEST(SessionAsyncDeath, WhatWasDueAndHasNoPlanIsCopiedByTheNextRun) {
  SafetyBed bed;
  bed.settings.flush_interval = 2;
  bed.run_well(four_nodes(), [](JobRank& rank) {  // without a thread, no copy begins
    rank.expect_written(1, flag_output);
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
  });
  EXPECT_EQ(bed.listed(), Names{});
  bed.run_async([](JobRank& rank) {
    for (const int dataset : {1, 3}) expect_reached(rank, dataset, Safety::flushed);
    EXPECT_EQ(safety(rank, 2), Safety::protected_) << "the newest takes its place";
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.1"}));
  for (const int dataset : {1, 3}) bed.expect_own_files(dataset);
}

}  // namespace
}  // namespace cairn
