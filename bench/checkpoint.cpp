// Start to Complete of a whole checkpoint, and SCR_Init with nodes lost, as multiples of the floor:
// the same bytes written plainly to the same kind of folder, then a barrier. Floor and what is
// measured alternate in each round.
//
//   mpirun -np N checkpoint RANKS_PER_NODE KIB_PER_RANK ROUNDS [SCHEME ...]
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.hpp"
#include "base/heap_meter.hpp"
#include "codec/xor.hpp"
#include "measure.hpp"
#include "scr.h"

namespace {

using cairn::quantile;

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

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

std::string Options::node() const { return fmt::format("n{}", rank() / ranks_per_node); }

void check(bool good, const std::string& what) {
  if (good) return;
  fmt::print(stderr, "rank {}: {}\n", rank(), what);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/// Asks and sleeps: a blocking barrier of more ranks than cores costs tens of milliseconds, which
/// would be charged to whatever is measured.
void finish(MPI_Request request) {
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(0);
}

void barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(request);
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

/// One pass of checksums over a file that was just written and is mapped anew: what SINGLE does
/// beside the floor.
double checksum_once(const std::string& folder, const std::vector<char>& data) {
  const std::string path = folder + "/checksum." + std::to_string(rank());
  write_file(path, data);
  const int file = open(path.c_str(), O_RDONLY);
  barrier();
  const double begin = MPI_Wtime();
  void* view = mmap(nullptr, data.size(), PROT_READ, MAP_SHARED, file, 0);
  check(view != MAP_FAILED, "cannot map " + path);
  volatile std::uint32_t keep =
      cairn::crc32c(cairn::Bytes(static_cast<const std::byte*>(view), data.size()));
  (void)keep;
  munmap(view, data.size());
  barrier();
  const double seconds = span(begin, MPI_Wtime());
  close(file);
  std::filesystem::remove(path);
  return seconds;
}

double removal_once(const std::string& folder, const std::vector<char>& data) {
  const std::string path = folder + "/removal." + std::to_string(rank());
  write_file(path, data);
  barrier();
  const double begin = MPI_Wtime();
  std::filesystem::remove(path);
  barrier();
  return span(begin, MPI_Wtime());
}

/// As many as a checkpoint makes, and nothing between them.
double agreements_once() {
  constexpr int agreements = 6;
  barrier();
  const double begin = MPI_Wtime();
  for (int i = 0; i < agreements; ++i) {
    std::int64_t sum = 1;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) sched_yield();
  }
  barrier();
  return span(begin, MPI_Wtime());
}

/// Where a process has a file's bytes.
struct Place {
  std::int64_t process = 0;
  std::uint64_t address = 0;
};

/// Of the next rank; all ranks have come here when one returns.
Place place_of_next(Place mine) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<Place> all(static_cast<std::size_t>(ranks));
  MPI_Request request;
  MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD,
                 &request);
  finish(request);
  return all[static_cast<std::size_t>((rank() + 1) % ranks)];
}

/// The sums of each `blocks_in_sum` blocks, written over pages that are there.
void sum_into(int file, Place place, std::size_t bytes, std::size_t blocks_in_sum) {
  constexpr std::size_t block_bytes = 256 << 10;
  struct alignas(cairn::codec_alignment) Block {
    std::array<std::byte, block_bytes> bytes{};
  };
  const auto two = std::make_unique<std::array<Block, 2>>();
  const std::span sum = (*two)[0].bytes;
  const std::span block = (*two)[1].bytes;
  off_t written = 0;
  for (std::size_t at = 0; at < bytes; at += block_bytes) {
    const std::size_t length = std::min(block_bytes, bytes - at);
    const iovec here{block.data(), length};
    const iovec there{reinterpret_cast<void*>(place.address + at), length};
    check(process_vm_readv(static_cast<pid_t>(place.process), &here, 1, &there, 1, 0) ==
              static_cast<ssize_t>(length),
          "cannot read the next rank's memory");
    cairn::xor_into(sum, block.first(length));
    const bool last = at + length == bytes;
    if (!last && (at / block_bytes + 1) % blocks_in_sum != 0) continue;
    check(pwrite(file, sum.data(), block_bytes, written) == static_cast<ssize_t>(block_bytes),
          "cannot write a sum");
    written += static_cast<off_t>(block_bytes);
  }
}

/// What SINGLE and XOR cannot do without, by a program that neither plans, records nor commits
/// anything: the bytes written, a pass of checksums, for XOR as many bytes copied from the next
/// rank and summed up, the sums written, and meanwhile the file of the round before removed.
double checkpoint_alone_once(const Options& options, const std::vector<char>& data, int round,
                             bool with_xor) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string base = fmt::format("{}/alone.{}", options.folder, rank());
  const std::string path = fmt::format("{}.{}", base, round);
  const int sums = open((base + ".sums").c_str(), O_RDWR | O_CREAT, 0600);  // of the round before
  barrier();
  const double begin = MPI_Wtime();
  write_file(path, data);
  const int file = open(path.c_str(), O_RDONLY);
  void* view = mmap(nullptr, data.size(), PROT_READ, MAP_SHARED, file, 0);
  check(view != MAP_FAILED && sums >= 0, "cannot map " + path);
  volatile std::uint32_t keep =
      cairn::crc32c(cairn::Bytes(static_cast<const std::byte*>(view), data.size()));
  (void)keep;
  if (with_xor) {
    const Place next = place_of_next({getpid(), reinterpret_cast<std::uint64_t>(view)});
    sum_into(sums, next, data.size(), static_cast<std::size_t>(std::max(ranks - 1, 1)));
    barrier();  // others read this rank's mapping
  }
  munmap(view, data.size());
  std::thread removal(
      [older = fmt::format("{}.{}", base, round - 1)] { std::filesystem::remove(older); });
  barrier();
  const double seconds = span(begin, MPI_Wtime());
  removal.join();
  close(file);
  close(sums);
  return seconds;
}

/// What a rebuild of one rank of an XOR set cannot do without, by such a program: the others take
/// checksums of their files, copy as many bytes and sum them up, and meanwhile one rank copies as
/// many and its parity, takes their checksums and writes them.
double rebuild_alone_once(const Options& options, const std::vector<char>& data) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string base = fmt::format("{}/alone.{}", options.folder, rank());
  write_file(base + ".kept", data);
  const int sums = open((base + ".sums").c_str(), O_RDWR | O_CREAT, 0600);
  const int lost = open((base + ".lost").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int lost_parity = open((base + ".parity").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int file = open((base + ".kept").c_str(), O_RDONLY);
  check(sums >= 0 && lost >= 0 && lost_parity >= 0 && file >= 0,
        "cannot open files in " + options.folder);
  barrier();
  const double begin = MPI_Wtime();
  void* view = mmap(nullptr, data.size(), PROT_READ, MAP_SHARED, file, 0);
  check(view != MAP_FAILED, "cannot map a file in " + options.folder);
  const Place next = place_of_next({getpid(), reinterpret_cast<std::uint64_t>(view)});
  volatile std::uint32_t keep = 0;
  if (rank() == 0) {
    const std::size_t parity = data.size() / static_cast<std::size_t>(std::max(ranks - 1, 1));
    sum_into(lost, next, data.size(), 1);
    sum_into(lost_parity, next, parity, 1);
    keep = keep + cairn::crc32c(std::as_bytes(std::span(data)));
    keep = keep + cairn::crc32c(std::as_bytes(std::span(data)).first(parity));
  } else {
    keep = cairn::crc32c(cairn::Bytes(static_cast<const std::byte*>(view), data.size()));
    sum_into(sums, next, data.size(), static_cast<std::size_t>(std::max(ranks - 1, 1)));
  }
  barrier();
  munmap(view, data.size());
  const double seconds = span(begin, MPI_Wtime());
  for (const int open_file : {sums, lost, lost_parity, file}) close(open_file);
  std::filesystem::remove(base + ".lost");
  std::filesystem::remove(base + ".parity");
  return seconds;
}

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
  const double begin = MPI_Wtime();
  check(SCR_Start_checkpoint() == SCR_SUCCESS, "SCR_Start_checkpoint failed");
  char path[SCR_MAX_FILENAME];
  const std::string name = "state." + std::to_string(rank());
  check(SCR_Route_file(name.c_str(), path) == SCR_SUCCESS, "SCR_Route_file failed");
  write_file(path, data);
  check(SCR_Complete_checkpoint(1) == SCR_SUCCESS, "SCR_Complete_checkpoint failed");
  barrier();
  const double end = MPI_Wtime();
  while (checkpoints_kept(options) > 1) usleep(100);
  barrier();
  const double gone = MPI_Wtime();
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
  const double begin = MPI_Wtime();
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
  barrier();
  const double seconds = span(begin, MPI_Wtime());
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
    measured(floor_once(options.folder, data), round >= 0);
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
  cairn::heap::begin_peak();
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = restart_once(options, lost);
    if (counts) restarts.add(seconds, floor);
  });
  const std::string what = fmt::format("{} Init, {} lost", scheme.name, lost);
  restarts.print(what);
  print_memory(what);
}

void measure(const SchemeCase& scheme, const Options& options) {
  SCR_Configf("SCR_COPY_TYPE=%s", scheme.name.c_str());
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
  std::vector<char> data(options.bytes);
  const int me = rank();
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(me));
  Series complete;
  Series evicted;
  cairn::heap::begin_peak();
  repeat(options, data, [&](double floor, bool counts) {
    const Times times = checkpoint_once(options, data);
    if (!counts) return;
    complete.add(times.complete, floor);
    evicted.add(times.evicted, floor);
  });
  complete.print(scheme.name);
  evicted.print(scheme.name + ", older one removed");
  print_memory(scheme.name);
  // Of these, 0 is what a restart costs when nothing was lost: every block is read and compared.
  for (int lost = 0; lost <= scheme.lost_nodes; ++lost)
    measure_restarts(scheme, options, data, lost);
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize failed");
}

void measure_parts(const Options& options) {
  const std::vector<char> data(options.bytes, 'x');
  Series checksum;
  Series removal;
  Series agreements;
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = checksum_once(options.folder, data);
    if (counts) checksum.add(seconds, floor);
  });
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = removal_once(options.folder, data);
    if (counts) removal.add(seconds, floor);
  });
  int round = 0;
  const auto checkpoint_alone = [&](bool with_xor) {
    Series alone;
    repeat(options, data, [&](double floor, bool counts) {
      const double seconds = checkpoint_alone_once(options, data, ++round, with_xor);
      if (counts) alone.add(seconds, floor);
    });
    return alone;
  };
  const Series single_alone = checkpoint_alone(false);
  const Series xor_alone = checkpoint_alone(true);
  Series rebuild;
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = rebuild_alone_once(options, data);
    if (counts) rebuild.add(seconds, floor);
  });
  std::filesystem::remove(fmt::format("{}/alone.{}.kept", options.folder, rank()));
  repeat(options, data, [&](double floor, bool counts) {
    const double seconds = agreements_once();
    if (counts) agreements.add(seconds, floor);
  });
  std::filesystem::remove(fmt::format("{}/alone.{}.{}", options.folder, rank(), round));
  agreements.print("(six agreements)");
  checksum.print("(a pass of checksums)");
  removal.print("(removing the file)");
  single_alone.print("(SINGLE without Cairn)");
  xor_alone.print("(XOR without Cairn)");
  rebuild.print("(rebuild without Cairn)");
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
