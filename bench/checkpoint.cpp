// Start to Complete of a whole checkpoint, as a multiple of the floor: the same bytes written
// plainly to the same kind of folder, then a barrier. Floor and checkpoint alternate in each round.
//
//   mpirun -np N checkpoint RANKS_PER_NODE KIB_PER_RANK ROUNDS
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "scr.h"

namespace {

struct Options {
  int ranks_per_node = 1;
  std::size_t bytes = 0;
  int rounds = 0;
};

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

void check(bool good, const std::string& what) {
  if (good) return;
  fmt::print(stderr, "rank {}: {}\n", rank(), what);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/// Asks and sleeps: a blocking barrier of more ranks than cores costs tens of milliseconds, which
/// would be charged to whatever is measured.
void barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(0);
}

void write_file(const std::string& path, const std::vector<char>& data) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  check(file != nullptr, "cannot open " + path);
  check(std::fwrite(data.data(), 1, data.size(), file) == data.size(), "cannot write " + path);
  check(std::fclose(file) == 0, "cannot close " + path);
}

/// From when the first rank began to when the first one left the barrier: what a rank does after it
/// (deleting, for one) is not charged.
double span(double begin, double end) {
  double first_begin = 0;
  double first_end = 0;
  MPI_Allreduce(&begin, &first_begin, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&end, &first_end, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return first_end - first_begin;
}

double floor_once(const std::string& folder, const std::vector<char>& data) {
  const std::string path = folder + "/floor." + std::to_string(rank());
  barrier();
  const double begin = MPI_Wtime();
  write_file(path, data);
  barrier();
  const double seconds = span(begin, MPI_Wtime());
  std::filesystem::remove(path);
  return seconds;
}

double checkpoint_once(const std::vector<char>& data) {
  barrier();
  const double begin = MPI_Wtime();
  check(SCR_Start_checkpoint() == SCR_SUCCESS, "SCR_Start_checkpoint failed");
  char path[SCR_MAX_FILENAME];
  const std::string name = "state." + std::to_string(rank());
  check(SCR_Route_file(name.c_str(), path) == SCR_SUCCESS, "SCR_Route_file failed");
  write_file(path, data);
  check(SCR_Complete_checkpoint(1) == SCR_SUCCESS, "SCR_Complete_checkpoint failed");
  barrier();
  return span(begin, MPI_Wtime());
}

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

void measure(const std::string& scheme, const std::string& folder, const Options& options) {
  SCR_Configf("SCR_COPY_TYPE=%s", scheme.c_str());
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
  std::vector<char> data(options.bytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(rank()));
  std::vector<double> floors;
  std::vector<double> times;
  std::vector<double> ratios;
  for (int round = -1; round < options.rounds; ++round) {
    const double floor = floor_once(folder, data);
    const double time = checkpoint_once(data);
    if (round < 0) continue;  // the first one warms up
    floors.push_back(floor);
    times.push_back(time);
    ratios.push_back(time / floor);
  }
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize failed");
  if (rank() == 0)
    fmt::print("  {:<8} {:6.2f} x floor  [{:.2f} to {:.2f}]   {:8.2f} ms   floor {:8.2f} ms\n",
               scheme, quantile(ratios, 0.5), quantile(ratios, 0.1), quantile(ratios, 0.9),
               1e3 * quantile(times, 0.5), 1e3 * quantile(floors, 0.5));
}

/// Every group of ranks plays a node with storage of its own, under one folder in memory.
std::string simulate_nodes(const Options& options) {
  long id = static_cast<long>(getpid());
  MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  const std::string folder = fmt::format("/dev/shm/cairn-bench-{}", id);
  std::filesystem::create_directories(folder);
  const std::string node = fmt::format("n{}", rank() / options.ranks_per_node);
  setenv("SCR_NODE_NAME", node.c_str(), 1);
  setenv("SCR_CACHE_BASE", (folder + "/%n").c_str(), 1);
  setenv("SCR_CNTL_BASE", (folder + "/%n").c_str(), 1);
  setenv("SCR_PREFIX", "/", 1);
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc == 4, "usage: checkpoint RANKS_PER_NODE KIB_PER_RANK ROUNDS");
  const Options options{std::atoi(argv[1]), static_cast<std::size_t>(std::atol(argv[2])) * 1024,
                        std::atoi(argv[3])};
  check(options.ranks_per_node > 0 && options.rounds > 0, "the numbers must be positive");
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string folder = simulate_nodes(options);
  if (rank() == 0)
    fmt::print("{} ranks, {} on a node, {} KiB each; median [10 % to 90 %] of {} rounds\n", ranks,
               options.ranks_per_node, options.bytes / 1024, options.rounds);
  for (const char* scheme : {"SINGLE", "XOR"}) measure(scheme, folder, options);
  barrier();
  if (rank() == 0) std::filesystem::remove_all(folder);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
