// The real encode and rebuild over simulated MPI: one rank on each of many nodes, set size 8.
//
//   smpirun -np NODES ... encode MIB_PER_NODE CHECKSUM COMBINE WRITE      the last three in GB/s
//
// Prints a line for each scheme: NODES SCHEME CHECKPOINT_SECONDS REBUILD_SECONDS, simulated. A
// checkpoint is the program's own write, protection, the records that members keep for each other,
// and as many collectives of all ranks as a session makes; the rebuild brings back one lost node,
// all blocks of its set compared, those that it gets back too.
#include <fmt/format.h>
#include <mpi.h>
#include <smpi/smpi.h>

#include <cstdlib>
#include <numeric>

#include "comm/group.hpp"
#include "comm/mpi.hpp"
#include "config/settings.hpp"
#include "redundancy/protect.hpp"
#include "redundancy/repair.hpp"
#include "redundancy/replicas.hpp"
#include "topology/sets.hpp"
#include "zero_files.hpp"

/// What SimGrid has not: it takes the place of MPI_Comm_idup (bench/CMakeLists.txt).
extern "C" int dup_at_once(MPI_Comm parent, MPI_Comm* made, MPI_Request* request) {
  MPI_Comm_dup(parent, made);
  return MPI_Ibarrier(*made, request);
}

namespace cairn {
namespace {

constexpr int set_size = 8;
constexpr int lost_rank = 1;
/// Of all ranks, before the data are encoded and after (tests/scale counts them): at Start, of what
/// is valid, of the files; prepared, committed, and the sums that are told.
constexpr int collectives_before = 3;
constexpr int collectives_after = 3;
constexpr std::uint64_t encode_bytes = 32 << 20;
constexpr std::uint32_t block_bytes = 256 << 10;

/// Bytes, and bytes per second of one node.
struct Options {
  std::uint64_t bytes;
  double checksum;
  double combine;
  double write;
};

/// Each block that is read has its checksum taken and is added to so many parity blocks, on this
/// node or on the one that it is sent to; all of it is charged to the reader. A block that is
/// written may have to match its checksum first.
std::unique_ptr<Files> node_files(const Options& options, int combinations, bool checks_writes) {
  const double read = 1 / options.checksum + combinations / options.combine;
  const double write = 1 / options.write + (checks_writes ? 1 / options.checksum : 0);
  return make_zero_files({1 / read, 1 / write}, [](double seconds) { smpi_execute(seconds); });
}

int combinations_of(const CheckpointSettings& settings) {
  if (settings.scheme == Scheme::rs) return settings.set_failures;
  return settings.scheme == Scheme::xor_ ? 1 : 0;
}

std::vector<int> my_set(Communicator& comm, Scheme scheme) {
  if (scheme == Scheme::single) return {comm.rank()};
  std::vector<std::uint64_t> groups(static_cast<std::size_t>(comm.size()));
  std::iota(groups.begin(), groups.end(), 0U);
  return set_of(form_sets(groups, set_size), comm.rank());
}

RankRecord record_of(Communicator& comm, const CheckpointSettings& settings, std::uint64_t bytes) {
  RankRecord record;
  record.rank = comm.rank();
  record.files.resize(1);
  record.files[0].name = "state";
  record.files[0].size = bytes;
  record.files[0].mode = 0600;
  record.encoding = make_encoding(settings, my_set(comm, settings.scheme), block_bytes);
  for (const int member : record.encoding.members)
    record.encoding.member_nodes.push_back(fmt::format("n{}", member));
  return record;
}

void check(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", status.error().text);
  std::exit(EXIT_FAILURE);
}

void write_state(Files& files, const std::string& path, std::uint64_t bytes) {
  const auto file = *files.create(path, 0600);
  const Blob piece(block_bytes);
  for (std::uint64_t at = 0; at < bytes; at += piece.size()) check(file->write_at(at, piece));
}

/// From when the last rank was ready until the last one is done.
template <class Work>
double seconds_of(Communicator& comm, Work work) {
  comm.barrier();
  const double begin = MPI_Wtime();
  work();
  comm.barrier();
  return MPI_Wtime() - begin;
}

void measure(Communicator& comm, const std::string& name, const CheckpointSettings& settings,
             const Options& options) {
  auto files = node_files(options, combinations_of(settings), false);
  const RankFolder folder{"/cache/rank"};
  RankRecord record = record_of(comm, settings, options.bytes);
  Group set(comm, record.encoding.members);
  const double checkpoint = seconds_of(comm, [&] {
    write_state(*files, folder.file("state"), options.bytes);
    for (int i = 0; i < collectives_before; ++i) check(agree(comm, {}));
    const Status encoded = protect(set, *files, folder, record, encode_bytes);
    exchange_records(set, record.encoding, encode(record));
    check(agree(comm, encoded));
    for (int i = 1; i < collectives_after; ++i) check(agree(comm, {}));
  });
  if (comm.rank() == lost_rank) files = node_files(options, combinations_of(settings), true);
  HealOptions heal_options;
  heal_options.encode_bytes = encode_bytes;
  const double rebuild = settings.scheme == Scheme::single ? 0 : seconds_of(comm, [&] {
    const auto healed = heal(set, *files, folder, record, heal_options);
    check(agree(comm, healed ? Status{} : Status(tl::unexpected(healed.error()))));
  });
  if (comm.rank() == 0) fmt::print("{} {} {:.6f} {:.6f}\n", comm.size(), name, checkpoint, rebuild);
}

void measure_all(const Options& options) {
  MpiCommunicator world(MPI_COMM_WORLD);
  // SimGrid's nonblocking collectives go from the root to every rank in turn; those of a Group are
  // trees, as in any MPI.
  std::vector<int> everybody(static_cast<std::size_t>(world.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  Group comm(world, everybody);
  CheckpointSettings settings;
  settings.set_size = set_size;
  settings.scheme = Scheme::single;
  measure(comm, "SINGLE", settings, options);
  settings.scheme = Scheme::partner;
  measure(comm, "PARTNER", settings, options);
  settings.scheme = Scheme::xor_;
  measure(comm, "XOR", settings, options);
  settings.scheme = Scheme::rs;
  settings.set_failures = 2;
  measure(comm, "RS(2)", settings, options);
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) {
    fmt::print(stderr, "usage: encode MIB_PER_NODE CHECKSUM COMBINE WRITE\n");
    return EXIT_FAILURE;
  }
  cairn::measure_all({static_cast<std::uint64_t>(std::atol(argv[1])) << 20,
                      1e9 * std::atof(argv[2]), 1e9 * std::atof(argv[3]),
                      1e9 * std::atof(argv[4])});
  MPI_Finalize();
  return EXIT_SUCCESS;
}
