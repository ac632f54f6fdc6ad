// What a checkpoint costs with CAIRN_PROTECT=behind, and for how long it is not protected.
//
//   mpirun -np N behind KIB_PER_RANK ROUNDS [SCHEME ...]
//
// Every rank plays a node with storage of its own, in one folder in memory. In each round there are
// the floor (the same bytes written plainly, then a barrier), checkpoints with CAIRN_PROTECT=now,
// and with behind: after a pause, back to back, and followed by computing on one rank only and on
// all. Each rank, computing or not, looks at the state of its checkpoint each millisecond. With no
// more ranks than cores, also an Allreduce of 8 bytes after each millisecond of computing: the time
// that 99 of 100 take at most. And the memory of a rank that is no file's, at its highest; of the
// first checkpoint of a session, as looking takes time.
#include <fmt/format.h>
#include <mpi.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cairn.h"
#include "compute.hpp"
#include "measure.hpp"
#include "mpi_timing.hpp"
#include "scr.h"

namespace {

using cairn::quantile;
using namespace cairn::bench;

struct Options {
  std::size_t bytes = 0;  ///< of a rank
  int rounds = 0;
  std::string folder;  ///< of all nodes
};

// --- what the program does ---

struct Checkpoint {
  std::string name;
  double written = 0;    ///< when this rank had written its last byte
  double completed = 0;  ///< when Complete had returned on this rank
};

Checkpoint write_checkpoint(const std::vector<char>& data) {
  static int number = 0;
  Checkpoint made;
  made.name = fmt::format("step.{}", ++number);
  check(SCR_Start_output(made.name.c_str(), SCR_FLAG_CHECKPOINT) == SCR_SUCCESS, "Start fails");
  char path[SCR_MAX_FILENAME];
  const std::string file = fmt::format("{}.rank{}", made.name, rank());
  check(SCR_Route_file(file.c_str(), path) == SCR_SUCCESS, "Route_file fails");
  write_file(path, data);
  made.written = now();
  check(SCR_Complete_output(1) == SCR_SUCCESS, "Complete fails");
  made.completed = now();
  return made;
}

struct Timed {
  Checkpoint checkpoint;
  double blocked_s = 0;   ///< Start to Complete, and a barrier
  double complete_s = 0;  ///< from the last byte of all ranks until Complete has returned on all
};

Timed time_checkpoint(const std::vector<char>& data) {
  barrier();
  const double begin = now();
  const Checkpoint made = write_checkpoint(data);
  barrier();
  const double blocked_s = span(begin, now());
  return {made, blocked_s, of_all(made.completed, MPI_MAX) - of_all(made.written, MPI_MAX)};
}

bool is_protected(const Checkpoint& checkpoint) {
  int state = 0;
  check(Cairn_Dataset_state(checkpoint.name.c_str(), &state) == SCR_SUCCESS, "no state");
  return state >= CAIRN_STATE_PROTECTED;
}

/// How long it was unprotected in the view of this rank.
double sleep_until_protected(const Checkpoint& checkpoint, double* most_mib = nullptr) {
  while (!is_protected(checkpoint)) {
    if (most_mib != nullptr) *most_mib = std::max(*most_mib, cairn::private_mib());
    usleep(1000);
  }
  return now() - checkpoint.completed;
}

struct Computing {
  double seconds = 0;    ///< of the slowest rank
  double exposed_s = 0;  ///< until the checkpoint was protected on all, if there is one
};

/// `slices` of about a millisecond on each rank that computes; the others sleep.
Computing compute_beside(int slices, bool on_all, const Checkpoint* checkpoint) {
  constexpr int slice = 125'000;
  const bool computes = on_all || rank() == 0;
  Computing done;
  barrier();
  const double begin = now();
  for (int i = 0; computes && i < slices; ++i) {
    compute(slice);
    if (checkpoint != nullptr && done.exposed_s == 0 && is_protected(*checkpoint))
      done.exposed_s = now() - checkpoint->completed;
  }
  const double seconds = computes ? now() - begin : 0;
  if (checkpoint != nullptr && done.exposed_s == 0)
    done.exposed_s = sleep_until_protected(*checkpoint);
  done.seconds = longest_of_all(seconds);
  done.exposed_s = longest_of_all(done.exposed_s);
  return done;
}

// --- what is measured ---

class Ratios {
 public:
  void add(double value, double base) {
    values_.push_back(value);
    ratios_.push_back(value / base);
  }
  void print(const std::string& what, const char* base) const {
    if (rank() != 0) return;
    fmt::print("  {:<58} {:6.2f} x {:<16} [{:.2f} to {:.2f}]  {:8.2f} ms\n", what,
               quantile(ratios_, 0.5), base, quantile(ratios_, 0.1), quantile(ratios_, 0.9),
               1e3 * quantile(values_, 0.5));
    std::fflush(stdout);
  }

 private:
  std::vector<double> values_, ratios_;
};

/// The most that the file system of `folder` holds beyond what it held at first. Rank 0 looks.
class PeakOfSpace {
 public:
  explicit PeakOfSpace(std::string folder) : folder_(std::move(folder)), at_first_(used()) {
    if (rank() == 0) thread_ = std::thread([this] { watch(); });
  }
  ~PeakOfSpace() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  PeakOfSpace(const PeakOfSpace&) = delete;
  PeakOfSpace& operator=(const PeakOfSpace&) = delete;

  double bytes() const { return peak_; }

 private:
  double used() const {
    struct statvfs now {};
    check(::statvfs(folder_.c_str(), &now) == 0, "statvfs fails");
    return static_cast<double>(now.f_blocks - now.f_bfree) * static_cast<double>(now.f_frsize);
  }
  void watch() {
    while (!ends_) {
      peak_ = std::max(peak_.load(), used() - at_first_);
      usleep(1000);
    }
  }

  const std::string folder_;
  const double at_first_;
  std::atomic<double> peak_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Bench {
 public:
  Bench(Options options, std::string scheme)
      : options_(std::move(options)), scheme_(std::move(scheme)), data_(options_.bytes, 'x') {}

  void run() {
    SCR_Configf("SCR_COPY_TYPE=%s", scheme_.c_str());
    for (int round = -1; round < options_.rounds; ++round) {
      counts_ = round >= 0;
      measure_now();
      measure_behind();
    }
    print();
  }

 private:
  void begin_session(const char* protect) {
    SCR_Configf("CAIRN_PROTECT=%s", protect);
    check(SCR_Init() == SCR_SUCCESS, "SCR_Init fails");
    const Checkpoint first = write_checkpoint(data_);  // it has no predecessor, or one of before
    sleep_until_protected(first, &most_mib_);
    sleep_until_all_come();
  }

  void measure_now() {
    floor_s_ = floor_s(options_.folder, data_);
    begin_session("now");
    const Timed one = time_checkpoint(data_);
    now_s_ = one.blocked_s;
    encode_s_ = one.complete_s;
    now_one_computes_s_ = cost_of_one(false).first;
    now_all_compute_s_ = cost_of_one(true).first;
    now_back_to_back_s_ =
        back_to_back_s();  // last, and first of `behind`: so the machine is the same
    check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize fails");
    if (!counts_) return;
    now_.add(now_s_, floor_s_);
    now_all_compute_.add(now_all_compute_s_, now_s_);
  }

  void measure_behind() {
    begin_session("behind");
    const double in_a_row = back_to_back_s();
    pause();
    const Timed one = time_checkpoint(data_);
    const double exposed = longest_of_all(sleep_until_protected(one.checkpoint));
    if (counts_) {
      blocked_.add(one.blocked_s, floor_s_);
      complete_.add(one.complete_s, encode_s_);
      exposed_resting_.add(exposed, encode_s_);
      back_to_back_.add(in_a_row, now_back_to_back_s_);
    }
    const auto [one_s, exposed_one_s] = cost_of_one(false);
    const auto [all_s, exposed_all_s] = cost_of_one(true);
    if (counts_) {
      cost_one_computes_.add(one_s, now_one_computes_s_);
      cost_all_compute_.add(all_s, now_all_compute_s_);
      exposed_one_computes_.add(exposed_one_s, encode_s_);
      exposed_all_compute_.add(exposed_all_s, encode_s_);
    }
    if (have_cores_) measure_reductions();
    check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize fails");
  }

  /// What a checkpoint costs, blocked and by slower computing, and for how long it was exposed. The
  /// program computes about as long as six synchronous encodes take, so that all work behind it is
  /// over by then; and the same without a checkpoint, before and after, when nothing is left to be
  /// removed.
  std::pair<double, double> cost_of_one(bool on_all) {
    pause();
    const double slice_s = compute_beside(20, on_all, nullptr).seconds / 20;
    const int slices = std::max(20, static_cast<int>(6 * encode_s_ / slice_s));
    const double before = compute_beside(slices, on_all, nullptr).seconds;
    const Timed one = time_checkpoint(data_);
    const Computing beside = compute_beside(slices, on_all, &one.checkpoint);
    pause();
    const double after = compute_beside(slices, on_all, nullptr).seconds;
    return {one.blocked_s + beside.seconds - (before + after) / 2, beside.exposed_s};
  }

  /// Until the checkpoint is protected.
  void measure_reductions() {
    constexpr int in_a_row = 10;
    std::vector<double> alone = time_reductions(20 * in_a_row);
    const Checkpoint one = write_checkpoint(data_);
    std::vector<double> beside;
    while (of_all(is_protected(one) ? 0 : 1, MPI_MAX) > 0)
      for (const double each : time_reductions(in_a_row)) beside.push_back(each);
    if (!counts_) return;
    alone_s_.insert(alone_s_.end(), alone.begin(), alone.end());
    beside_s_.insert(beside_s_.end(), beside.begin(), beside.end());
  }

  /// Of one of them, with no call of MPI between: in a barrier ranks ask for messages all the time,
  /// beside the work that is behind. One more goes before them, as the first of a row is not like
  /// the others: it finds the one before protected, with `behind`, and the one before that removed,
  /// with both.
  double back_to_back_s() {
    constexpr int in_a_row = 6;
    write_checkpoint(data_);
    barrier();
    const double begin = now();
    Checkpoint last;
    for (int i = 0; i < in_a_row; ++i) last = write_checkpoint(data_);
    barrier();
    const double seconds = span(begin, now()) / in_a_row;
    sleep_until_protected(last);
    sleep_until_all_come();
    return seconds;
  }

  void pause() const { usleep(static_cast<useconds_t>(3e6 * of_all(encode_s_, MPI_MAX))); }

  void print() const {
    const double own_mib = of_all(most_mib_ - without_mib_, MPI_MAX);
    if (rank() == 0) fmt::print("{}\n", scheme_);
    now_.print("now: Start to Complete", "floor");
    blocked_.print("behind: Start to Complete, after a pause", "floor");
    back_to_back_.print("behind: back to back", "now");
    complete_.print("behind: Complete after the last byte", "encode of now");
    exposed_resting_.print("not protected, the ranks sleep", "encode of now");
    exposed_one_computes_.print("not protected, rank 0 computes", "encode of now");
    exposed_all_compute_.print("not protected, all ranks compute", "encode of now");
    cost_one_computes_.print("blocked and slower computing, rank 0 computes", "the same of now");
    cost_all_compute_.print("blocked and slower computing, all ranks compute", "the same of now");
    now_all_compute_.print("now: blocked and slower computing, all compute", "blocked by now");
    if (rank() != 0) return;
    fmt::print("  {:<58} {:6.2f} x bytes of the program\n", "space at the peak",
               space_.bytes() / (static_cast<double>(options_.bytes) * ranks()));
    fmt::print("  {:<58} {:6.1f} MiB\n", "memory of a rank beside its data, at most", own_mib);
    fmt::print("  {:<58} {:6.2f} x bytes of the program\n", "both",
               space_.bytes() / (static_cast<double>(options_.bytes) * ranks()) +
                   own_mib * 1024 * 1024 / static_cast<double>(options_.bytes));
    if (beside_s_.empty()) return;
    const double alone = quantile(alone_s_, 0.99);
    const double beside = quantile(beside_s_, 0.99);
    fmt::print("  {:<58} {:6.2f} x  ({:.1f} us / {:.1f} us)\n", "p99 of an Allreduce of 8 bytes",
               beside / alone, 1e6 * beside, 1e6 * alone);
  }

  const Options options_;
  const std::string scheme_;
  const std::vector<char> data_;
  const PeakOfSpace space_{options_.folder};
  const double without_mib_ = cairn::private_mib();  ///< of the program alone
  double most_mib_ = 0;
  const bool have_cores_ = ranks() > 1 &&
                           ranks() <= static_cast<int>(std::thread::hardware_concurrency());
  std::vector<double> alone_s_, beside_s_;  ///< of reductions
  bool counts_ = false;
  double floor_s_ = 0, now_s_ = 0, encode_s_ = 0, now_back_to_back_s_ = 0;
  double now_one_computes_s_ = 0, now_all_compute_s_ = 0;
  Ratios now_, now_all_compute_, blocked_, back_to_back_, complete_, exposed_resting_,
      exposed_one_computes_, exposed_all_compute_, cost_one_computes_, cost_all_compute_;
};

void simulate_nodes(Options& options) {
  long id = static_cast<long>(getpid());
  MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  options.folder = fmt::format("/dev/shm/cairn-bench-{}", id);
  const std::string prefix = options.folder + "/prefix";
  std::filesystem::create_directories(prefix);
  std::filesystem::current_path(prefix);
  setenv("SCR_NODE_NAME", fmt::format("n{}", rank()).c_str(), 1);
  setenv("SCR_JOB_ID", "bench", 1);
  setenv("SCR_CACHE_BASE", (options.folder + "/%n").c_str(), 1);
  setenv("SCR_CNTL_BASE", (options.folder + "/%n").c_str(), 1);
  setenv("SCR_PREFIX", prefix.c_str(), 1);
  setenv("SCR_FLUSH", "0", 1);
  setenv("SCR_FETCH", "0", 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc >= 3, "usage: behind KIB_PER_RANK ROUNDS [SCHEME ...]");
  Options options{static_cast<std::size_t>(std::atol(argv[1])) * 1024, std::atoi(argv[2]), {}};
  check(options.rounds > 0, "ROUNDS must be positive");
  simulate_nodes(options);
  if (rank() == 0)
    fmt::print("{} ranks on {} cores, {} KiB each; median [10 % to 90 %] of {} rounds\n", ranks(),
               std::thread::hardware_concurrency(), options.bytes / 1024, options.rounds);
  std::vector<std::string> schemes(argv + 3, argv + argc);
  if (schemes.empty()) schemes = {"XOR", "RS"};
  for (const std::string& scheme : schemes) Bench(options, scheme).run();
  barrier();
  if (rank() == 0) std::filesystem::remove_all(options.folder);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
