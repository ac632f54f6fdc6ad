// A C++ program writes a step through a sub-communicator and restores it: program_cpp DIRECTORY.
#include <rbio.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  int level = 0;  // the C program of these tests asks for no threads at all
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Two series at once, each of every second rank.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  const std::string directory = std::string(argv[1]) + (rank % 2 == 0 ? "/even" : "/odd");
  rbio_series* series = nullptr;
  std::vector<std::complex<double>> field(100);
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = {1000.0 * rank, static_cast<double>(i)};
  const auto written = field;
  rbio_ticket ticket = RBIO_NO_TICKET;
  std::int64_t step = -1;
  const bool is_good =
      rbio_open(half, directory.c_str(), nullptr, &series) == RBIO_SUCCESS &&
      rbio_add_field(series, "field", RBIO_COMPLEX128, 1, field.data(),
                     static_cast<std::int64_t>(field.size()), nullptr) == RBIO_SUCCESS &&
      rbio_begin(series, 4, &ticket) == RBIO_SUCCESS && rbio_wait(series, ticket) == RBIO_SUCCESS;
  std::fill(field.begin(), field.end(), 0);
  const bool is_restored =
      is_good && rbio_restore(series, RBIO_NEWEST, &step) == RBIO_SUCCESS && step == 4;
  const bool is_closed = rbio_close(&series) == RBIO_SUCCESS;
  const bool is_right = is_restored && is_closed && field == written;
  std::printf("rank %d: %s\n", rank, is_right ? "restored" : "WRONG");
  MPI_Comm_free(&half);
  MPI_Finalize();
  return is_right ? 0 : 1;
}
