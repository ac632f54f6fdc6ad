// What a program feels of a flush that goes on while it computes (SCR_FLUSH_ASYNC=1).
//
//   mpirun -np N beside_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]
//
// All ranks are of one node, with its cache in /dev/shm. In each round MIB_PER_RANK of each rank
// are copied to FOLDER (or $TMPDIR, or /tmp: a disk) at MIB_PER_S of the node.
//
// A kernel that only computes, and one that only moves memory: how much longer it takes. Slices of
// a fifth of a second alternate, in the order ABBA, while one copy is under way: in one the copy
// goes on, in the next the program's hint holds it back. What counts is the ratio of two
// neighbours, so that whatever else changes on the machine is in both. As a measure of the noise,
// the same with no copy under way.
//
// With several ranks, an Allreduce of 8 bytes after each millisecond of computing: the time that 99
// of 100 take at most. And the memory of a rank that is no file's, at its highest while it is
// copied, and the processor time of the threads that copy.
#include <fmt/format.h>
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "compute.hpp"
#include "flushed_output.hpp"
#include "measure.hpp"
#include "mpi_timing.hpp"

namespace {

using cairn::private_mib;
using cairn::quantile;
using namespace cairn::bench;

struct Options {
  std::size_t bytes = 0;  ///< of a rank
  int rounds = 0;
};

double seconds_on(clockid_t clock) {
  timespec time{};
  check(::clock_gettime(clock, &time) == 0, "clock_gettime fails");
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Of the processor, by the threads of this process other than the one that calls.
double other_threads_s() {
  return seconds_on(CLOCK_PROCESS_CPUTIME_ID) - seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

// --- the kernels ---

class Kernels {
 public:
  Kernels() : a_(doubles, 1), b_(doubles, 2), c_(doubles, 3) {
    constexpr int probe = 10'000'000;
    constexpr double slice_s = 0.2;
    compute(probe);
    computations_ = agreed(slice_s / seconds_of([] { compute(probe); }) * probe);
    sweep();
    sweeps_ = agreed(slice_s / seconds_of([this] { sweep(); }));
  }

  /// Slices of the same work each time, of the slowest rank.
  double compute_s() const {
    return seconds_of([this] { compute(computations_); });
  }
  double move_s() {
    return seconds_of([this] {
      for (int i = 0; i < sweeps_; ++i) sweep();
    });
  }

 private:
  static constexpr std::size_t doubles = std::size_t{8} << 20;  // three arrays of 64 MiB

  static double seconds_of(const std::function<void()>& kernel) {
    barrier();
    const double begin = now();
    kernel();
    return of_all(now() - begin, MPI_MAX);
  }
  static int agreed(double times) { return std::max(1, static_cast<int>(of_all(times, MPI_MIN))); }

  void sweep() {
    for (std::size_t i = 0; i < doubles; ++i) a_[i] = b_[i] + 0.5 * c_[i];
    result = result + a_[doubles / 2];
  }

  std::vector<double> a_, b_, c_;
  int computations_ = 0;
  int sweeps_ = 0;
};

// --- what is measured ---

class Bench {
 public:
  Bench(const Options& options, const std::string& prefix)
      : options_(options), flush_(prefix, options.bytes) {}

  void run() {
    const std::function<double()> computes = [this] { return kernels_.compute_s(); };
    const std::function<double()> moves = [this] { return kernels_.move_s(); };
    for (int round = -1; round < options_.rounds; ++round) {
      interleave(round, computes, computing_);
      interleave(round, moves, moving_);
      if (ranks() > 1) reduce(round);
    }
    if (rank() != 0) return;
    computing_.print("a kernel that computes, slower by");
    moving_.print("a kernel that moves memory, slower by");
    if (ranks() > 1) {
      const double alone = quantile(alone_s_, 0.99);
      const double beside = quantile(beside_s_, 0.99);
      fmt::print("  {:<40} {:7.2f} x  ({:.1f} us / {:.1f} us)\n", "p99 of an Allreduce of 8 bytes",
                 beside / alone, 1e6 * beside, 1e6 * alone);
    }
    fmt::print("  {:<40} {:7.1f} MiB\n", "memory of a rank beside its files, at most", memory_mib_);
    fmt::print("  {:<40} {:7.1f} ms  [{:.1f} to {:.1f}]\n", "processor time of its copies",
               1e3 * quantile(copy_s_, 0.5), 1e3 * quantile(copy_s_, 0.1),
               1e3 * quantile(copy_s_, 0.9));
    fmt::print("  {} of {} measurements of Allreduce ended after the copy, and do not count\n",
               late_, all_);
  }

 private:
  /// Of pairs of neighbours: how much longer one took, in percent.
  class Slowdowns {
   public:
    void add(bool is_copying, double beside_s, double alone_s) {
      (is_copying ? percent_ : noise_).push_back(100 * (beside_s / alone_s - 1));
    }
    void print(const char* what) const {
      print(what, percent_);
      print("  the same, with no copy under way", noise_);
    }

   private:
    /// The median, and where it lies with a probability of 95 %.
    static void print(const char* what, const std::vector<double>& values) {
      if (values.size() < 2) {
        fmt::print("  {:<40} not measured\n", what);
        return;
      }
      const double half = 0.98 / std::sqrt(static_cast<double>(values.size()));
      fmt::print("  {:<40} {:7.2f} %  [{:.2f} to {:.2f} with 95 %], {} pairs\n", what,
                 quantile(values, 0.5), quantile(values, std::max(0.0, 0.5 - half)),
                 quantile(values, std::min(1.0, 0.5 + half)), values.size());
    }

    std::vector<double> percent_;
    std::vector<double> noise_;
  };

  /// While one output is copied; then as many pairs without a copy.
  void interleave(int round, const std::function<double()>& kernel, Slowdowns& slowdowns) {
    flush_.write();
    flush_.complete();
    const double before_s = other_threads_s();
    int pairs = 0;
    while (measure_pair(round, pairs, true, kernel, slowdowns)) ++pairs;
    memory_mib_ = std::max(memory_mib_, of_all(private_mib() - without_mib_, MPI_MAX));
    flush_.wait();
    copy_s_.push_back(of_all(other_threads_s() - before_s, MPI_MAX));
    flush_.remove();
    for (int pair = 0; pair < pairs; ++pair)
      (void)measure_pair(round, pair, false, kernel, slowdowns);
  }

  /// False if the copy ended before the pair did on some rank.
  bool measure_pair(int round, int pair, bool is_copying, const std::function<double()>& kernel,
                    Slowdowns& slowdowns) {
    double beside_s = 0;
    double alone_s = 0;
    for (const bool goes_on : {pair % 2 == 0, pair % 2 != 0}) {
      if (goes_on)
        Cairn_Computing_begin();
      else
        Cairn_Computing_end();
      (void)kernel();  // until the copy has stopped, or has used up what it has saved of its rate
      (goes_on ? beside_s : alone_s) = kernel();
    }
    Cairn_Computing_begin();
    if (is_copying && of_all(flush_.is_under_way() ? 0 : 1, MPI_MAX) > 0) return false;
    if (round >= 0) slowdowns.add(is_copying, beside_s, alone_s);
    return true;
  }

  void reduce(int round) {
    constexpr int reductions = 400;
    std::vector<double> alone = time_reductions(reductions);
    std::vector<double> beside_it;
    bool counts = true;
    beside([&] { beside_it = time_reductions(reductions); }, counts);
    if (round < 0 || !counts) return;
    alone_s_.insert(alone_s_.end(), alone.begin(), alone.end());
    beside_s_.insert(beside_s_.end(), beside_it.begin(), beside_it.end());
  }

  void beside(const std::function<void()>& action, bool& counts) {
    flush_.write();
    flush_.complete();
    const double before_s = other_threads_s();
    action();
    memory_mib_ = std::max(memory_mib_, of_all(private_mib() - without_mib_, MPI_MAX));
    const bool is_late = of_all(flush_.is_under_way() ? 0 : 1, MPI_MAX) > 0;
    counts = !is_late;
    ++all_;
    late_ += is_late ? 1 : 0;
    flush_.wait();
    copy_s_.push_back(of_all(other_threads_s() - before_s, MPI_MAX));
    flush_.remove();
  }

  const Options options_;
  FlushedOutput flush_;
  Kernels kernels_;
  Slowdowns computing_;
  Slowdowns moving_;
  std::vector<double> alone_s_;
  std::vector<double> beside_s_;
  std::vector<double> copy_s_;
  const double without_mib_ = private_mib();  ///< of the program alone
  double memory_mib_ = 0;
  int all_ = 0;
  int late_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc >= 4, "usage: beside_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]");
  const char* temporary = std::getenv("TMPDIR");
  const FlushFolders folders(argc > 4               ? argv[4]
                             : temporary != nullptr ? temporary
                                                    : "/tmp",
                             "beside_flush");
  const Options options{static_cast<std::size_t>(std::atol(argv[1])) << 20, std::atoi(argv[2])};
  folders.make();
  configure(folders, std::strtoull(argv[3], nullptr, 10) << 20);
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init fails");
  if (rank() == 0)
    fmt::print("{} ranks on {} cores, {} MiB each, {} MiB/s of the node; {} rounds\n", ranks(),
               std::thread::hardware_concurrency(), argv[1], argv[3], options.rounds);
  Bench(options, folders.prefix()).run();
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize fails");
  folders.remove();
  MPI_Finalize();
  return EXIT_SUCCESS;
}
