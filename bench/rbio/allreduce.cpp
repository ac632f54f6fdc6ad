// What an Allreduce of one number takes on all ranks, and on those that are left if the first rank
// of each group writes and does not compute:
//
//   allreduce GROUP TIMES
//
// Prints JSON: medians in seconds on MPI_COMM_WORLD, on a duplicate, and on the part.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "mpi_timing.hpp"

namespace cairn::bench {
namespace {

double median_allreduce_s(MPI_Comm comm, int times) {
  std::vector<double> took;
  for (int i = 0; i < times; ++i) {
    double value = 1;
    const double begin = now();
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, comm);
    took.push_back(now() - begin);
  }
  std::sort(took.begin(), took.end());
  return took[took.size() / 2];
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  using namespace cairn::bench;
  MPI_Init(&argc, &argv);
  check(argc == 3, "usage: allreduce GROUP TIMES");
  const int group = std::atoi(argv[1]), times = std::atoi(argv[2]);
  MPI_Comm same = MPI_COMM_NULL, part = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  const bool is_writer = rank() % group == 0;
  MPI_Comm_split(MPI_COMM_WORLD, is_writer ? 1 : 0, rank(), &part);
  nlohmann::json result;
  result["world"] = median_allreduce_s(MPI_COMM_WORLD, times);
  result["duplicate"] = median_allreduce_s(same, times);
  // The writers wait, as they would for data.
  double of_part = is_writer ? 0 : median_allreduce_s(part, times);
  MPI_Allreduce(MPI_IN_PLACE, &of_part, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  result["split"] = of_part;
  if (rank() == 0) fmt::print("{}\n", result.dump());
  MPI_Comm_free(&part);
  MPI_Comm_free(&same);
  MPI_Finalize();
  return 0;
}
