// Copies in the background that fail for a time: when they are tried again, and what is known of
// those that are given up.
#include <atomic>
#include <filesystem>
#include <functional>
#include <string_view>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// The one rank whose copy fails in these tests.
constexpr int failing_rank = 2;

/// Two for each try: the pause before the next one is half a minute by then.
constexpr int many_failures = 20;

class CopyErrorsBed : public SafetyBed {
 public:
  CopyErrorsBed() {
    clock = std::make_unique<SkewedClock>(50);
    settings.flush_interval = 10;
  }
};

TEST(SessionCopyErrors, AWaitTriesAgainAtOnce) {
  CopyErrorsBed bed;
  std::atomic<bool> is_full = true;
  std::atomic<int> failures = 0;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (number != failing_rank || !stages(operation) || !is_full) return {};
    ++failures;
    return fail(Code::no_space, "injected");
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    while (failures < many_failures) sleep_ms(1);
    sleep_ms(50);  // the last failure has become known
    rank.comm.barrier();
    is_full = false;
    expect_reached(rank, 1, Safety::flushed, -1);
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

TEST(SessionCopyErrors, AfterAGoodStepTheNextErrorIsTheFirst) {
  CopyErrorsBed bed;
  int failures = 0;
  std::int64_t failed_us = 0;
  std::atomic<std::int64_t> paused_us = 0;
  const std::string name = bed.file(1, failing_rank);
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (number != failing_rank) return {};
    if (stages(operation) && ++failures <= many_failures) return fail(Code::io, "injected");
    if (operation.name != "rename" || operation.to != name) return {};
    if (failed_us > 0) {
      paused_us = bed.clock->steady_us() - failed_us;
      return {};
    }
    failed_us = bed.clock->steady_us();
    return fail(Code::io, "injected where the file gets its name");
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    while (paused_us == 0) sleep_ms(1);
    finalize(rank);
  });
  EXPECT_LT(paused_us, 20'000'000);
  bed.expect_own_files(1);
}

/// The copy of the second one is made by the program.
TEST(SessionCopyErrors, ACompleteThatCannotCopyReturnsWhatItHasLearntOfAnEarlierCopyToo) {
  CopyErrorsBed bed;
  bed.settings.flush_interval = 1;
  CheckpointSettings& second = bed.settings.checkpoints.emplace_back(bed.settings.checkpoints[0]);
  second.id = 1;
  second.interval = 2;
  second.flush_async = false;
  std::atomic<bool> is_full = true;
  std::atomic<int> failures = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (!is_full || !stages(operation)) return {};
    ++failures;
    return fail(Code::no_space, "injected");
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (failures <= 8) sleep_ms(1);  // by then a rank knows its first
    const Status completed = rank.write(2);
    ASSERT_FALSE(completed);
    EXPECT_EQ(completed.error().code, Code::not_copied) << completed.error().text;
    for (const char* name : {"(ckpt.1) is safe", "(ckpt.2) is safe"})
      EXPECT_NE(completed.error().text.find(name), std::string::npos) << completed.error().text;
    rank.comm.barrier();
    is_full = false;
    rank.comm.barrier();
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.2"});
}

/// What the program's own thread does while it is in a call.
thread_local bool is_program = false;

/// The other ranks publish dataset 1, and then nothing of it works for the thread of rank 0, until
/// it is given up. Meanwhile these operations fail for the program's own calls on rank 0.
void give_up_what_is_published(CopyErrorsBed& bed,
                               const std::function<bool(const FileOperation&)>& fails_in_calls) {
  std::atomic<bool> is_failing = true;
  std::atomic<int> copied_again = 0;
  const std::string datasets = PrefixFolder{bed.settings.prefix}.datasets();
  const auto is_published = [&] {
    std::error_code none;
    return std::filesystem::exists(datasets, none) && !std::filesystem::is_empty(datasets, none);
  };
  const auto fails_in_thread = [&](const FileOperation& operation) {
    const bool is_of_dataset = operation.path.find("/dataset.1.") != std::string_view::npos;
    return publishes(operation) || (is_of_dataset && is_published());
  };
  RankZeroFirst order;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    order.before(number, operation);
    if (!is_failing && stages(operation)) ++copied_again;
    if (number != 0 || !is_failing) return {};
    const bool fails = is_program ? fails_in_calls(operation) : fails_in_thread(operation);
    return fails ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    is_program = true;
    rank.expect_written(1, flag_checkpoint | flag_output);
    while (!is_published()) sleep_ms(1);
    EXPECT_TRUE(rank.session->datasets().drop("none of that name")) << "waits until it is given up";
    rank.comm.barrier();
    is_failing = false;
    rank.comm.barrier();
    finalize(rank);
  });
  bed.hook = nullptr;
  EXPECT_EQ(copied_again, 0) << "the run has looked at what is there";
  EXPECT_FALSE(bed.arrived_by_itself(1)) << bed.log_text();
}

TEST(SessionCopyErrors, WhatIsGivenUpAfterAnotherRankHasPublishedItIsNotLost) {
  CopyErrorsBed bed;
  give_up_what_is_published(bed, [](const FileOperation&) { return false; });
  bed.expect_own_files(1);
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
}

/// So it must not be missing in the listing.
TEST(SessionCopyErrors, WhatIsGivenUpAndMayBePublishedIsLookedForByTheNextRun) {
  CopyErrorsBed bed;
  std::atomic<int> unseen = 0;
  give_up_what_is_published(bed, [&](const FileOperation& operation) {
    const bool is_pending = operation.path.find("/epoch.") != std::string_view::npos &&
                            operation.path.find("/dataset.1.") != std::string_view::npos;
    if (operation.name != "info" || !is_pending) return false;
    ++unseen;
    return true;
  });
  EXPECT_GT(unseen, 0);
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
  bed.expect_own_files(1);
}

}  // namespace
}  // namespace cairn
