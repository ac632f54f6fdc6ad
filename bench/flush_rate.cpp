// How fast outputs arrive in the prefix directory while the program sleeps (SCR_FLUSH_ASYNC=1).
//
//   mpirun -np N flush_rate MIB_PER_RANK TIMES FOLDER
//
// All ranks are of one node, with its cache in /dev/shm, and FOLDER is on the device that is asked.
// Prints JSON: bytes of an output, and for each the seconds from the return of Complete until every
// rank knows that it is there, and those of Complete itself. A first output warms up.
#include <unistd.h>

#include <cstdlib>

#include "flushed_output.hpp"

namespace {

using namespace cairn::bench;

constexpr useconds_t look_us = 200;
/// Before each copy nothing is written to the device: flush_rate.py says why.
constexpr useconds_t rest_us = 700'000;

struct Times {
  std::vector<double> copied_s;
  std::vector<double> completed_s;
};

void measure(FlushedOutput& output, Times& times) {
  output.write();
  usleep(rest_us);
  barrier();
  const double begin = now();
  output.complete();
  const double complete = now();
  while (output.is_under_way()) usleep(look_us);
  const double end = of_all(now(), MPI_MAX);
  times.completed_s.push_back(of_all(complete, MPI_MIN) - of_all(begin, MPI_MIN));
  times.copied_s.push_back(end - of_all(complete, MPI_MIN));
  output.remove();
}

void print(std::size_t bytes, const Times& times) {
  fmt::print("{{\"bytes\": {}, \"copied\": [{:.6f}], \"completed\": [{:.6f}]}}\n", bytes,
             fmt::join(times.copied_s.begin() + 1, times.copied_s.end(), ", "),
             fmt::join(times.completed_s.begin() + 1, times.completed_s.end(), ", "));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check(argc == 4, "usage: flush_rate MIB_PER_RANK TIMES FOLDER");
  const std::size_t bytes = static_cast<std::size_t>(std::atol(argv[1])) << 20;
  const FlushFolders folders(argv[3], "flush_rate");
  folders.make();
  configure(folders, 0);
  check(SCR_Init() == SCR_SUCCESS, "SCR_Init fails");
  FlushedOutput output(folders.prefix(), bytes);
  Times times;
  for (int i = -1; i < std::atoi(argv[2]); ++i) measure(output, times);
  if (rank() == 0) print(bytes * static_cast<std::size_t>(ranks()), times);
  check(SCR_Finalize() == SCR_SUCCESS, "SCR_Finalize fails");
  folders.remove();
  MPI_Finalize();
  return EXIT_SUCCESS;
}
