// How long a checkpoint stops a program whose ranks do nothing else:
//
//   blocked KIND FILES SYNC DIRECTORY FIELDS MIB CHECKPOINTS
//
// KIND: "coio", or options of rbio_open(). FILES and SYNC (0 or 1) are for "coio". Each rank has
// FIELDS fields of MIB mebibytes. Prints JSON. The first two checkpoints warm up.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

#include "mpi_timing.hpp"
#include "rbio/writers.hpp"

namespace cairn::bench {
namespace {

constexpr int warm_up = 2;  // as many buffers as rbIO has

double most_of_ranks(double mine) {
  double most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

/// Bytes per second of one core, while the others do nothing.
double memcpy_rate(const std::vector<double>& from) {
  constexpr int times = 5;
  std::vector<double> to(from.size());
  std::vector<double> rates;
  if (rank() == 0)
    for (int i = 0; i < times; ++i) {
      const double begin = now();
      std::memcpy(to.data(), from.data(), from.size() * sizeof(double));
      rates.push_back(static_cast<double>(from.size() * sizeof(double)) / (now() - begin));
    }
  barrier();
  if (rates.empty()) return 0;
  std::sort(rates.begin(), rates.end());
  return rates[times / 2];
}

/// A program computes between checkpoints, long enough for each of its ranks to have a core; the
/// data are new each time.
void compute(std::vector<double>& data) {
  constexpr int sweeps = 10;
  for (int i = 0; i < sweeps; ++i)
    for (double& value : data) value += 1;
}

nlohmann::json measure(const WriterOptions& options, int fields, std::int64_t field_bytes,
                       int checkpoints) {
  const std::int64_t count = field_bytes / static_cast<std::int64_t>(sizeof(double));
  std::vector<double> data(static_cast<std::size_t>(fields * count), rank());
  std::vector<FieldData> all;
  for (int i = 0; i < fields; ++i) all.push_back({data.data() + i * count, count});
  nlohmann::json result;
  result["blocked"] = nlohmann::json::array();
  result["raw"] = nlohmann::json::array();
  result["memcpy"] = memcpy_rate(data);
  result["bytes_per_rank"] = fields * field_bytes;

  const auto writer = make_writer(MPI_COMM_WORLD, options, all);
  for (int i = 0; i < warm_up + checkpoints; ++i) {
    writer->remove_older();
    compute(data);
    barrier();
    const rbio_statistics_t before = writer->statistics();
    const double begin = now();
    writer->begin(i);
    const double blocked = most_of_ranks(now() - begin);
    writer->wait();
    const rbio_statistics_t after = writer->statistics();
    if (i < warm_up) continue;
    result["blocked"].push_back(blocked);
    if (after.write_s > before.write_s)
      result["raw"].push_back(static_cast<double>(after.written_bytes - before.written_bytes) /
                              (after.write_s - before.write_s));
  }
  result["peak_buffer_bytes"] = writer->statistics().peak_buffer_bytes;
  return result;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  using namespace cairn::bench;
  WriterOptions options;
  int fields = 0, mib = 0, checkpoints = 0;
  CLI::App app("How long a checkpoint stops a program");
  app.add_option("KIND", options.kind)->required();
  app.add_option("FILES", options.files)->required();
  app.add_option("SYNC", options.syncs)->required();
  app.add_option("DIRECTORY", options.directory)->required();
  app.add_option("FIELDS", fields)->required();
  app.add_option("MIB", mib)->required();
  app.add_option("CHECKPOINTS", checkpoints)->required();
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  const auto result = measure(options, fields, std::int64_t{mib} << 20, checkpoints);
  if (rank() == 0) fmt::print("{}\n", result.dump());
  MPI_Finalize();
  return 0;
}
