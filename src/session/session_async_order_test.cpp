// Which datasets wait for a place among those that are copied in the background.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// Checkpoints could be made again; outputs must arrive.
TEST(SessionAsyncOrder, AnOutputThatWaitsDoesNotGiveWayToANewerCheckpoint) {
  PrefixJobBed bed;
  bed.settings.flush_async = true;
  bed.settings.flush_interval = 1;
  std::atomic<bool> is_open = false;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool stages =
          operation.name == "create" && operation.path.find("/.cairn.") != std::string::npos;
      while (stages && !is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {};
    };
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    std::thread opens;
    if (rank.number() == 0)
      opens = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        is_open = true;
      });
    rank.expect_written(3);
    EXPECT_TRUE(is_open) << "there was no place for the third";
    if (opens.joinable()) opens.join();
    EXPECT_TRUE(rank.session->finalize());
  }));
  EXPECT_FALSE(bed.logs("dataset 2 (ckpt.2) is not copied")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

class OrderBed : public AsyncBed {
 public:
  OrderBed() {
    settings.flush_interval = 1;
    settings.stores[0].count = 9;
  }
};

/// Its place is that of the checkpoint that waits; the first is on its way already.
TEST(SessionAsyncOrder, AnOutputTakesThePlaceOfACheckpointThatWaits) {
  OrderBed bed;
  bed.settings.async_bytes_per_s = std::uint64_t{1} << 30;
  bed.settings.async_percent = 50;
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    if (rank.number() == 0) gate.wait_for(1);
    rank.expect_written(2);
    std::thread opens;
    std::atomic<bool> is_over = false;
    std::atomic<bool> has_waited = false;
    if (rank.number() == 0)
      opens = std::thread([&] {
        for (int ms = 0; ms < 5000 && !is_over; ms += 10) sleep_ms(10);
        has_waited = !is_over;
        gate.open();
      });
    rank.expect_written(3, flag_output);
    is_over = true;
    if (opens.joinable()) opens.join();
    EXPECT_FALSE(has_waited);
    expect_reached(rank, 3, Safety::flushed, 30);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("dataset 2 (ckpt.2) is not copied")) << bed.log_text();
  EXPECT_TRUE(bed.logs("still under way: the prefix directory limits the speed")) << bed.log_text();
  EXPECT_TRUE(bed.arrived_by_itself(3)) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

TEST(SessionAsyncOrder, ACheckpointThatLosesItsPlaceToACopyThatFailsSaysSo) {
  OrderBed bed;
  std::atomic<int> failures = 0;
  std::atomic<bool> fails = true;
  bed.hook = [&](int, const FileOperation& operation) -> Status {
    if (!fails || !stages(operation) || operation.path.find("/ckpt.1/") == std::string::npos)
      return {};
    ++failures;
    return fail(Code::io, "injected");
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (failures < 8) sleep_ms(1);
    for (const int dataset : {2, 3}) (void)rank.write(dataset);
    fails = false;
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("still under way: it is tried again after an error")) << bed.log_text();
}

/// After each block of 3 ms a rank rests for 0.3 s, and has at least eight more to copy.
TEST(SessionAsyncOrder, ACheckpointThatLosesItsPlaceToCopiesThatRestSaysSo) {
  OrderBed bed;
  bed.settings.block_bytes = 64;
  bed.settings.async_percent = 1;
  std::array<std::atomic<int>, 8> blocks{};
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    const bool is_staged = operation.path.find("/.cairn.") != std::string::npos;
    if (operation.name != "write" || !is_staged) return {};
    sleep_ms(3);
    ++blocks.at(static_cast<std::size_t>(rank));
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (blocks.at(static_cast<std::size_t>(rank.number())) < 3) sleep_ms(1);
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("dataset 2 (ckpt.2) is not copied")) << bed.log_text();
  EXPECT_TRUE(bed.logs("still under way: SCR_FLUSH_ASYNC_PERCENT (1 %) limits the speed"))
      << bed.log_text();
}

/// The first checkpoint finds no space, so nothing moves until the user makes some.
TEST(SessionAsyncOrder, NoCheckpointOvertakesAnOutputInAFullDirectory) {
  OrderBed bed;
  std::atomic<bool> is_full = true;
  std::atomic<int> refused = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (!stages(operation) || !is_full) return {};
    ++refused;
    return fail(Code::no_space, "injected at {}", operation.path);
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (refused == 0) sleep_ms(1);
    (void)rank.write(2);
    (void)rank.write(3, flag_output);
    for (const int dataset : {4, 5}) (void)rank.write(dataset);
    rank.comm.barrier();
    is_full = false;
    expect_reached(rank, 3, Safety::flushed, 60);
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(3)) << bed.log_text();
  EXPECT_TRUE(bed.is_listed(5));
}

/// The prefix directory becomes available between the two tries of one call.
TEST(SessionAsyncOrder, NoCheckpointBeginsAfterAnOutputThatCouldNot) {
  OrderBed bed;
  std::atomic<int> refusals = 1000;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    const bool becomes_owner = operation.name == "make_new_folder";
    return becomes_owner && refusals > 0 && refusals-- > 0 ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_not_copied(1, flag_output);
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    const bool is_written = rank.write_files(2).has_value();
    rank.comm.barrier();
    refusals = 1;
    rank.comm.barrier();
    (void)rank.session->complete_output(is_written);
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_EQ(refusals, 0);
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
  EXPECT_TRUE(bed.is_listed(3));
}

/// It would have pushed out the first.
TEST(SessionAsyncOrder, ACheckpointThatGaveItsPlaceAwayPushesNothingOut) {
  OrderBed bed;
  bed.settings.prefix_size = 2;
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    if (rank.number() == 0) gate.wait_for(1);
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    rank.comm.barrier();
    gate.open();
    expect_reached(rank, 3, Safety::flushed, 30);
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.1"}));
}

/// On the first rank the copy before it is over, and its own has begun; another rank does not know
/// yet that it has done its part of the one before.
TEST(SessionAsyncOrder, ACheckpointWhoseCopyHasBegunKeepsItsPlace) {
  OrderBed bed;
  Gate gate;
  std::atomic<bool> is_settling = false;
  std::atomic<bool> is_held = false;
  std::atomic<bool> has_begun = false;
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    const bool is_of_marker = operation.path.find("/done/") != std::string_view::npos;
    if (rank == 0 && is_held && stages(operation)) has_begun = true;
    if (rank != 6 || operation.name != "remove_file" || !is_of_marker) return {};
    if (is_settling.exchange(true) && !is_held.exchange(true)) gate.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    if (rank.number() == 0) gate.wait_for(1);
    rank.expect_written(2);
    while (!has_begun) sleep_ms(1);
    rank.comm.barrier();
    std::optional<Rescue> opens;
    if (rank.number() == 0) opens.emplace(gate, 50);
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("dataset 2 (ckpt.2) is not copied")) << bed.log_text();
  EXPECT_TRUE(bed.arrived_by_itself(2)) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
