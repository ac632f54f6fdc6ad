// What a checkpoint of VELOC costs, beside `behind`: synchronous or asynchronous, as CONFIG says.
//
//   mpirun -np N veloc CONFIG FOLDER KIB_PER_RANK ROUNDS
//
// CONFIG is a configuration of VELOC. FOLDER is for the floor, on the file system of its `scratch`.
// In each round there are the floor (the same bytes written plainly, then a barrier) and
// checkpoints: after a pause, back to back, and followed by computing on one rank only and on all.
// With `mode = async` only `threaded = true` protects checkpoints by other ranks; without it VELOC
// starts a process of its own, without erasure codes. VELOC takes all ranks of a machine for one
// node: simulated nodes need a namespace each.
#include <fmt/format.h>
#include <mpi.h>
#include <veloc.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "compute.hpp"
#include "measure.hpp"
#include "mpi_timing.hpp"

namespace {

using cairn::quantile;
using namespace cairn::bench;

struct Options {
  std::string config;
  std::string folder;
  std::size_t bytes = 0;  ///< of a rank
  int rounds = 0;
};

void check_call(int result, const char* call) {
  check(result == VELOC_SUCCESS, std::string(call) + " fails");
}

/// Of all ranks, and how many of the rounds' floors that is.
class Row {
 public:
  void add(double seconds, double floor) {
    seconds_.push_back(seconds);
    ratios_.push_back(seconds / floor);
  }
  void print(const char* what) const {
    if (rank() != 0) return;
    fmt::print("  {:<58} {:6.2f} x floor [{:.2f} to {:.2f}]  {:8.2f} ms\n", what,
               quantile(ratios_, 0.5), quantile(ratios_, 0.1), quantile(ratios_, 0.9),
               1e3 * quantile(seconds_, 0.5));
  }

 private:
  std::vector<double> seconds_, ratios_;
};

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)), data_(options_.bytes, 'x') {
    check_call(VELOC_Mem_protect(0, data_.data(), data_.size(), 1), "VELOC_Mem_protect");
  }

  void run() {
    checkpoint_s();
    wait_s();
    for (int round = 0; round < options_.rounds; ++round) {
      const double floor = floor_s(options_.folder, data_);
      blocked_.add(checkpoint_s(), floor);
      until_done_.add(wait_s(), floor);
      back_to_back_.add(back_to_back_s(), floor);
      one_computes_.add(cost_s(false), floor);
      all_compute_.add(cost_s(true), floor);
    }
    blocked_.print("begin to end, after a pause");
    until_done_.print("from there until VELOC_Checkpoint_wait has returned");
    back_to_back_.print("back to back");
    one_computes_.print("blocked and slower computing, rank 0 computes");
    all_compute_.print("blocked and slower computing, all ranks compute");
  }

 private:
  void checkpoint() {
    check_call(VELOC_Checkpoint_wait(), "VELOC_Checkpoint_wait");
    check_call(VELOC_Checkpoint_begin("bench", ++version_), "VELOC_Checkpoint_begin");
    check_call(VELOC_Checkpoint_mem(), "VELOC_Checkpoint_mem");
    check_call(VELOC_Checkpoint_end(1), "VELOC_Checkpoint_end");
  }

  double checkpoint_s() {
    barrier();
    const double begin = now();
    checkpoint();
    barrier();
    return span(begin, now());
  }

  /// Of the slowest rank.
  static double wait_s() {
    const double begin = now();
    check_call(VELOC_Checkpoint_wait(), "VELOC_Checkpoint_wait");
    return longest_of_all(now() - begin);
  }

  /// Of one of them; the second and later ones wait for the one before.
  double back_to_back_s() {
    constexpr int in_a_row = 3;
    checkpoint();
    barrier();
    const double begin = now();
    for (int i = 0; i < in_a_row; ++i) checkpoint();
    barrier();
    const double seconds = span(begin, now()) / in_a_row;
    wait_s();
    return seconds;
  }

  static double compute_s(int slices, bool on_all) {
    constexpr int slice = 125'000;  // about a millisecond
    const bool computes = on_all || rank() == 0;
    barrier();
    const double begin = now();
    for (int i = 0; computes && i < slices; ++i) compute(slice);
    return longest_of_all(computes ? now() - begin : 0);
  }

  /// The program computes about three times as long as a checkpoint takes in all.
  double cost_s(bool on_all) {
    const double whole = checkpoint_s() + wait_s();
    const double slice = compute_s(20, on_all) / 20;
    const int slices = std::max(20, static_cast<int>(3 * whole / slice));
    const double alone = compute_s(slices, on_all);
    const double blocked = checkpoint_s();
    const double beside = compute_s(slices, on_all);
    wait_s();
    return blocked + beside - alone;
  }

  const Options options_;
  std::vector<char> data_;
  int version_ = 0;
  Row blocked_, until_done_, back_to_back_, one_computes_, all_compute_;
};

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  check(argc == 5, "usage: veloc CONFIG FOLDER KIB_PER_RANK ROUNDS");
  Options options{argv[1], argv[2], static_cast<std::size_t>(std::atol(argv[3])) * 1024,
                  std::atoi(argv[4])};
  check(options.rounds > 0, "ROUNDS must be positive");
  check_call(VELOC_Init(MPI_COMM_WORLD, options.config.c_str()), "VELOC_Init");
  if (rank() == 0)
    fmt::print("{} ranks, {} KiB each; median [10 % to 90 %] of {} rounds\n", ranks(),
               options.bytes / 1024, options.rounds);
  Bench(std::move(options)).run();
  check_call(VELOC_Finalize(1), "VELOC_Finalize");
  MPI_Finalize();
  return EXIT_SUCCESS;
}
