// What a program feels of a flush that goes on while it computes (SCR_FLUSH_ASYNC=1).
//
//   mpirun -np N beside_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]
//
// All ranks are of one node, with its cache in /dev/shm. In each round each of the following is
// done twice, in changing order: while MIB_PER_RANK of each rank are copied to FOLDER (or $TMPDIR,
// or /tmp: a disk) at MIB_PER_S of the node, and while nothing is copied. A kernel that only
// computes, and one that only moves memory: how much longer it takes. With several ranks, an
// Allreduce of 8 bytes after each millisecond of computing: the time that 99 of 100 take at most.
// And the memory of a rank that is no file's, at its highest while it is copied, and the processor
// time of the threads that copy.
#include <fmt/format.h>
#include <mpi.h>
#include <time.h>

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
  Kernels() : a_(doubles, 1), b_(doubles, 2), c_(doubles, 3) {}

  static constexpr int computations = 300'000'000;  // about a second
  static constexpr int sweeps = 40;

  double compute_s() const {
    return seconds_of([] { compute(computations); });
  }
  double move_s() {
    return seconds_of([this] {
      for (int sweep = 0; sweep < sweeps; ++sweep)
        for (std::size_t i = 0; i < doubles; ++i) a_[i] = b_[i] + 0.5 * c_[i];
      result = result + a_[doubles / 2];
    });
  }

 private:
  static constexpr std::size_t doubles = std::size_t{4} << 20;

  /// Of the slowest rank.
  static double seconds_of(const std::function<void()>& kernel) {
    barrier();
    const double begin = now();
    kernel();
    return of_all(now() - begin, MPI_MAX);
  }

  std::vector<double> a_, b_, c_;
};

// --- what is measured ---

class Bench {
 public:
  Bench(const Options& options, const std::string& prefix)
      : options_(options), flush_(prefix, options.bytes) {}

  void run() {
    for (int round = -1; round < options_.rounds; ++round) {
      computing_.add(round, compare(round, [this] { return kernels_.compute_s(); }));
      moving_.add(round, compare(round, [this] { return kernels_.move_s(); }));
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
    fmt::print("  {} of {} measurements ended after the copy, and do not count\n", late_, all_);
  }

 private:
  struct Pair {
    double alone = 0;
    double beside = 0;
    bool counts = true;
  };

  class Slowdowns {
   public:
    void add(int round, const Pair& pair) {
      if (round >= 0 && pair.counts) percent_.push_back(100 * (pair.beside / pair.alone - 1));
    }
    void print(const char* what) const {
      if (percent_.empty())
        fmt::print("  {:<40} not measured\n", what);
      else
        fmt::print("  {:<40} {:7.2f} %  [{:.2f} to {:.2f}]\n", what, quantile(percent_, 0.5),
                   quantile(percent_, 0.1), quantile(percent_, 0.9));
    }

   private:
    std::vector<double> percent_;
  };

  Pair compare(int round, const std::function<double()>& kernel) {
    Pair pair;
    if (round % 2 == 0) pair.alone = kernel();
    beside([&] { pair.beside = kernel(); }, pair.counts);
    if (round % 2 != 0) pair.alone = kernel();
    return pair;
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
