// A job whose copies do not move, or move slowly, and a prefix directory that does not answer.
#pragma once

#include <atomic>
#include <fstream>
#include <functional>

#include "support/safety_bed.hpp"

namespace cairn {

class StuckBed : public SafetyBed {
 public:
  StuckBed() { settings.flush_interval = 10; }

  /// So that the copy of a part takes minutes.
  void copy_very_slowly() {
    settings.async_bytes_per_s = 100;
    settings.flush_at_end = FlushAtEnd::leave;
  }

  /// Each rank of a node with two, with the files of write_long_part_of_rank_4().
  void copy_a_block_in_ten_seconds() {
    settings.block_bytes = 64;
    settings.async_bytes_per_s = 12;
  }
  /// By all ranks: output 1, of ten blocks of rank 4, and a small one of each other rank.
  static void write_long_part_of_rank_4(JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_output));
    const std::string content(rank.number() == 4 ? 640 : 8, 'a');
    std::ofstream(*rank.session->route_file(rank.file_name(0, 1))) << content;
    ASSERT_TRUE(rank.session->complete_output(true));
  }

  /// Rank 5 hangs where it makes its first file, and rank 2 finds no room.
  void hang_and_fail(Gate& gate, std::atomic<bool>& is_full) {
    hook = [&](int number, const FileOperation& operation) -> Status {
      if (!stages(operation)) return {};
      if (number == 5) gate.pass();
      return number == 2 && is_full ? fail(Code::no_space, "injected") : Status{};
    };
  }
  /// By all ranks. A command owns the directory for a moment.
  void lose_directory(JobRank& rank) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      OwnerRecord command = **read_owner(*rank.posix, {settings.prefix});
      command.run = {command.run.time_us + 1, 7};
      auto keeper =
          Keeper::take_over(*rank.posix, rank.clock, {settings.prefix}, command, Claim::forced);
      ASSERT_TRUE(keeper) << keeper.error().text;
      ASSERT_TRUE(keeper->resign());
    }
    rank.comm.barrier();
  }
  /// By all ranks, after a call: it has not waited, and dataset 1 arrives when both go on.
  void expect_to_arrive_after(Rescue& rescue, JobRank& rank, std::atomic<bool>& is_full) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "the call waited for the rank that hangs";
      is_full = false;
      EXPECT_TRUE(comes_to_be_listed(1));
    }
    rank.comm.barrier();
    finalize(rank);
  }
};

inline double seconds_of(JobRank& rank, const std::function<void()>& call) {
  const std::int64_t from_us = rank.clock.steady_us();
  call();
  return static_cast<double>(rank.clock.steady_us() - from_us) * 1e-6;
}

/// What the program's own thread does while it is in a call.
inline thread_local bool is_programs_thread = false;

/// It copies: to know that its rights are gone, it looks at the owner too.
inline thread_local bool is_copying_thread = false;

/// From some moment on the program's own thread, and one that looks there for it, would hang.
class HangingAfterErrorsBed : public StuckBed {
 public:
  HangingAfterErrorsBed() {
    clock = std::make_unique<SkewedClock>(20);
    settings.log_json = true;
    hook = [this](int number, const FileOperation& operation) -> Status {
      if (stages(operation)) is_copying_thread = true;
      if (beside) beside(number, operation);
      const bool is_there = operation.path.starts_with(settings.prefix);
      const bool is_look =
          operation.path == PrefixFolder{settings.prefix}.owner() && !is_copying_thread;
      if (hangs_from_now_ && ((is_programs_thread && is_there) || is_look)) gate_.pass();
      return number == 2 && is_full && stages(operation) ? fail(Code::no_space, "injected")
                                                         : Status{};
    };
  }

  /// By all ranks.
  void hang(JobRank& rank) {
    rank.comm.barrier();
    hangs_from_now_ = true;
    rank.comm.barrier();
  }
  void answer() { gate_.open(); }
  /// By all ranks, after calls: none of them has waited for the directory. It answers now.
  void expect_no_wait(JobRank& rank) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue_.end()) << "a call waited for the directory";
    }
    is_full = false;
    rank.comm.barrier();
  }

  std::atomic<bool> is_full = true;
  /// Called first, by any thread of the rank. Set before a run.
  std::function<void(int rank, const FileOperation&)> beside;

 private:
  std::atomic<bool> hangs_from_now_ = false;
  Gate gate_;
  Rescue rescue_{gate_, 15'000};
};

}  // namespace cairn
