// Start to Complete of a whole checkpoint, and SCR_Init with nodes lost, as multiples of the floor:
// the same bytes written plainly to the same kind of folder, then a barrier. In each round there is
// a floor, what is measured, and where there is one, a program that does nothing else.
//
//   mpirun -np N checkpoint RANKS_PER_NODE KIB_PER_RANK ROUNDS [SCHEME ...]
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bare.hpp"
#include "base/heap_meter.hpp"
#include "measure.hpp"
#include "mpi_timing.hpp"
#include "scr.h"

namespace {

using cairn::quantile;
using namespace cairn::bench;

struct Options {
  int ranks_per_node = 1;
  std::size_t bytes = 0;
  int rounds = 0;
  std::string folder;  ///< of all nodes

  std::string node() const;
};

struct SchemeCase {
  std::string name;
  int lost_nodes = 0;  ///< of the rebuild that is measured; what the scheme survives
};

std::string Options::node() const { return fmt::format("n{}", rank() / ranks_per_node); }

/// Of this rank's checkpoints; the older one is removed in the background.
std::size_t checkpoints_kept(const Options& options) {
  namespace fs = std::filesystem;
  std::size_t kept = 0;
  std::error_code gone;  // what is listed may be removed at this moment
  const std::string own = "rank." + std::to_string(rank());
  for (const auto& user : fs::directory_iterator(options.folder + "/" + options.node()))
    for (const auto& dataset : fs::directory_iterator(user.path() / "cairn.bench", gone))
      kept += fs::exists(dataset.path() / own / "files", gone) ? 1 : 0;
  return kept;
}

struct Times {
  double complete = 0;  ///< until Complete has returned
  double evicted = 0;   ///< until the older checkpoint is gone too
};

/// What the program does next would compute; here it waits for the removal, so that the next floor
/// is not charged with it.
Times checkpoint_once(const Options& options, const std::vector<char>& data) {
  barrier();
  const double begin = now();
  check(SCR_Start_checkpoint() == SCR_SUCCESS, "SCR_Start_checkpoint failed");
  char path[SCR_MAX_FILENAME];
  const std::string name = "state." + std::to_string(rank());
  check(SCR_Route_file(name.c_str(), path) == SCR_SUCCESS, "SCR_Route_file failed");
  write_file(path, data);
  check(SCR_Complete_checkpoint(1) == SCR_SUCCESS, "SCR_Complete_checkpoint failed");
  barrier();
  const double end = now();
  while (checkpoints_kept(options) > 1) usleep(100);
  barrier();
  const double gone = now();
  return {span(begin, end), span(begin, gone)};
}

/// Of a run that begins when `lost_nodes` are gone. Every other node is lost, so that no two of
/// them are neighbours.
double restart_once(const Options& options, int lost_nodes) {
  const int node = rank() / options.ranks_per_node;
  const bool lost = node % 2 == 0 && node / 2 < lost_nodes;
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize failed");
  if (lost && rank() % options.ranks_per_node == 0)
    std::filesystem::remove_all(options.folder + "/" + options.node());
  barrier();
  const double begin = now();
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
  barrier();
  const double seconds = span(begin, now());
  int found = 0;
  check(SCR_Have_restart(&found, nullptr) == SCR_SUCCESS && found != 0, "nothing was rebuilt");
  return seconds;
}

/// Seconds, each with the floor of its round.
class Series {
 public:
  void add(double seconds, double floor) {
    seconds_.push_back(seconds);
    floors_.push_back(floor);
    ratios_.push_back(seconds / floor);
  }

  void print(const std::string& what) const {
    if (rank() != 0) return;
    fmt::print("  {:<28} {:6.2f} x floor  [{:.2f} to {:.2f}]   {:8.2f} ms   floor {:8.2f} ms\n",
               what, quantile(ratios_, 0.5), quantile(ratios_, 0.1), quantile(ratios_, 0.9),
               1e3 * quantile(seconds_, 0.5), 1e3 * quantile(floors_, 0.5));
    std::fflush(stdout);
  }

 private:
  std::vector<double> seconds_;
  std::vector<double> floors_;
  std::vector<double> ratios_;
};

/// Calls `measured` with the floor of each round; the first round warms up.
template <class Measured>
void repeat(const Options& options, const std::vector<char>& data, Measured measured) {
  for (int round = -1; round < options.rounds; ++round)
    measured(floor_s(options.folder, data), round >= 0);
}

/// Heap in use beyond what there was at the last begin_peak(), at its highest, of all ranks.
double peak_mib() {
  auto mine = static_cast<double>(cairn::heap::peak_since_begin());
  double most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most / (1 << 20);
}

void print_memory(const std::string& what) {
  const double mib = peak_mib();
  if (rank() == 0) fmt::print("  {:<28} {:6.1f} MiB of memory at most, of any rank\n", what, mib);
}

void measure_restarts(const SchemeCase& scheme, const Options& options,
                      const std::vector<char>& data, int lost) {
  Series restarts;
  Series bare;
  BareProgram program(options.folder, data);
  const bool has_bare = scheme.name == "XOR" && lost == 1;
  cairn::heap::begin_peak();
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = restart_once(options, lost);
    const double without = has_bare ? program.rebuild() : 0;
    if (!counts) return;
    restarts.add(seconds, floor);
    bare.add(without, floor);
  });
  const std::string what = fmt::format("{} Init, {} lost", scheme.name, lost);
  restarts.print(what);
  if (has_bare) bare.print("(rebuild without Cairn)");
  print_memory(what);
}

void measure_checkpoints(const SchemeCase& scheme, const Options& options,
                         const std::vector<char>& data) {
  Series complete;
  Series evicted;
  Series bare;
  BareProgram program(options.folder, data);
  cairn::heap::begin_peak();
  repeat(options, data, [&](double floor, bool counts) {
    const Times times = checkpoint_once(options, data);
    const double without = program.checkpoint(scheme.name);
    if (!counts) return;
    complete.add(times.complete, floor);
    evicted.add(times.evicted, floor);
    bare.add(without, floor);
  });
  complete.print(scheme.name);
  evicted.print(scheme.name + ", older one removed");
  bare.print(fmt::format("({} without Cairn)", scheme.name));
  print_memory(scheme.name);
}

void measure(const SchemeCase& scheme, const Options& options) {
  SCR_Configf("SCR_COPY_TYPE=%s", scheme.name.c_str());
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
  std::vector<char> data(options.bytes);
  const int me = rank();
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(me));
  measure_checkpoints(scheme, options, data);
  // Of these, 0 is what a restart costs when nothing was lost: every block is read and compared.
  for (int lost = 0; lost <= scheme.lost_nodes; ++lost)
    measure_restarts(scheme, options, data, lost);
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize failed");
}

void measure_parts(const Options& options) {
  const std::vector<char> data(options.bytes, 'x');
  BareProgram program(options.folder, data);
  const auto part = [&](const std::string& what, const std::function<double()>& once) {
    Series series;
    repeat(options, data, [&](double floor, bool counts) {
      const double seconds = once();
      if (counts) series.add(seconds, floor);
    });
    series.print(what);
  };
  part("(six agreements)", [&] { return program.agreements(); });
  part("(a pass of checksums)", [&] { return program.checksums(); });
  part("(removing the file)", [&] { return program.removal(); });
}

/// Every group of ranks plays a node with storage of its own, under one folder in memory. Nothing
/// goes to a prefix directory.
void simulate_nodes(Options& options) {
  long id = static_cast<long>(getpid());
  MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  options.folder = fmt::format("/dev/shm/cairn-bench-{}", id);
  const std::string& folder = options.folder;
  const std::string prefix = folder + "/prefix";
  std::filesystem::create_directories(prefix);
  std::filesystem::current_path(prefix);
  setenv("SCR_NODE_NAME", options.node().c_str(), 1);
  setenv("SCR_JOB_ID", "bench", 1);
  setenv("SCR_CACHE_BASE", (folder + "/%n").c_str(), 1);
  setenv("SCR_CNTL_BASE", (folder + "/%n").c_str(), 1);
  setenv("SCR_PREFIX", prefix.c_str(), 1);
  setenv("SCR_FLUSH", "0", 1);
  setenv("SCR_FETCH", "0", 1);
}

std::vector<SchemeCase> chosen(int count, char** names) {
  const std::vector<SchemeCase> all = {{"SINGLE", 0}, {"PARTNER", 1}, {"XOR", 1}, {"RS", 2}};
  std::vector<SchemeCase> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const SchemeCase& scheme) {
    return count == 0 || std::find(names, names + count, scheme.name) != names + count;
  });
  return some;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc >= 4, "usage: checkpoint RANKS_PER_NODE KIB_PER_RANK ROUNDS [SCHEME ...]");
  Options options{std::atoi(argv[1]),
                  static_cast<std::size_t>(std::atol(argv[2])) * 1024,
                  std::atoi(argv[3]),
                  {}};
  check(options.ranks_per_node > 0 && options.rounds > 0, "the numbers must be positive");
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  simulate_nodes(options);
  if (rank() == 0)
    fmt::print("{} ranks, {} on a node, {} KiB each; median [10 % to 90 %] of {} rounds\n", ranks,
               options.ranks_per_node, options.bytes / 1024, options.rounds);
  measure_parts(options);
  for (const SchemeCase& scheme : chosen(argc - 4, argv + 4)) measure(scheme, options);
  barrier();
  if (rank() == 0) std::filesystem::remove_all(options.folder);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
