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
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cairn.h"
#include "compute.hpp"
#include "measure.hpp"
#include "mpi_timing.hpp"
#include "scr.h"

namespace {

using cairn::private_mib;
using cairn::quantile;
using namespace cairn::bench;

struct Options {
  std::size_t bytes = 0;  ///< of a rank
  int rounds = 0;
  std::uint64_t bytes_per_s = 0;
  std::string folder;  ///< of the prefix directory and the cache
  std::string memory;
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

// --- the flush ---

class Flush {
 public:
  explicit Flush(const Options& options) : options_(options), data_(options.bytes, 'x') {}

  /// When this returns it is under way.
  void begin() {
    name_ = fmt::format("output.{}", ++number_);
    check(SCR_Start_output(name_.c_str(), SCR_FLAG_OUTPUT) == SCR_SUCCESS, "Start fails");
    char path[SCR_MAX_FILENAME];
    const std::string file = fmt::format("{}/{}/{}", options_.folder, name_, rank());
    check(SCR_Route_file(file.c_str(), path) == SCR_SUCCESS, "Route_file fails");
    write_file(path, data_);
    check(SCR_Complete_output(1) == SCR_SUCCESS, "Complete fails");
  }
  bool is_under_way() const {
    int state = 0;
    check(Cairn_Dataset_state(name_.c_str(), &state) == SCR_SUCCESS, "Dataset_state fails");
    return state < CAIRN_STATE_FLUSHED;
  }
  void wait() const {
    check(Cairn_Wait(name_.c_str(), CAIRN_STATE_FLUSHED, -1) == SCR_SUCCESS, "Wait fails");
  }
  void end() const { check(SCR_Delete(name_.c_str()) == SCR_SUCCESS, "Delete fails"); }

 private:
  const Options options_;
  const std::vector<char> data_;
  std::string name_;
  int number_ = 0;
};

// --- what is measured ---

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), flush_(options) {}

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
    flush_.begin();
    const double before_s = other_threads_s();
    action();
    memory_mib_ = std::max(memory_mib_, of_all(private_mib() - without_mib_, MPI_MAX));
    const bool is_late = of_all(flush_.is_under_way() ? 0 : 1, MPI_MAX) > 0;
    counts = !is_late;
    ++all_;
    late_ += is_late ? 1 : 0;
    flush_.wait();
    copy_s_.push_back(of_all(other_threads_s() - before_s, MPI_MAX));
    flush_.end();
  }

  const Options options_;
  Flush flush_;
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

void set(const std::string& key, const std::string& value) {
  (void)SCR_Config((key + "=" + value).c_str());
}

void configure(const Options& options) {
  set("SCR_PREFIX", options.folder);
  set("SCR_CNTL_BASE", options.memory);
  set("SCR_CACHE_BASE", options.memory);
  set("SCR_USER_NAME", "bench");
  set("SCR_JOB_ID", "bench");
  set("SCR_COPY_TYPE", "SINGLE");
  set("SCR_FLUSH", "0");
  set("SCR_FLUSH_ASYNC", "1");
  set("SCR_FLUSH_ASYNC_BW", std::to_string(options.bytes_per_s));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc >= 4, "usage: beside_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]");
  const char* temporary = std::getenv("TMPDIR");
  const std::string below = argc > 4 ? argv[4] : temporary != nullptr ? temporary : "/tmp";
  Options options{static_cast<std::size_t>(std::atol(argv[1])) << 20, std::atoi(argv[2]),
                  std::strtoull(argv[3], nullptr, 10) << 20, below + "/cairn.beside_flush",
                  "/dev/shm/cairn.beside_flush"};
  const auto remove_all = [&] {
    if (rank() == 0)
      for (const std::string& folder : {options.folder, options.memory})
        std::filesystem::remove_all(folder);
    barrier();
  };
  remove_all();
  if (rank() == 0)
    for (const std::string& folder : {options.folder, options.memory})
      std::filesystem::create_directories(folder);
  barrier();
  configure(options);
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init fails");
  if (rank() == 0)
    fmt::print("{} ranks on {} cores, {} MiB each, {} MiB/s of the node; {} rounds\n", ranks(),
               std::thread::hardware_concurrency(), argv[1], argv[3], options.rounds);
  Bench(options).run();
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize fails");
  remove_all();
  MPI_Finalize();
  return EXIT_SUCCESS;
}
