// The checks of every communicator over real MPI, also on a communicator whose ranks are not those
// of the world, and in groups.
#include <cstdio>
#include <exception>

#include "comm/communicator_checks.hpp"
#include "comm/mpi.hpp"

namespace {

void check_in_reverse() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm reverse;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
  {
    cairn::MpiCommunicator comm(reverse);
    cairn::checks::require(comm.rank() == comm.size() - 1 - rank, "ranks are those of the parent");
    cairn::checks::all(comm);
  }
  MPI_Comm_free(&reverse);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    cairn::MpiCommunicator comm(MPI_COMM_WORLD);
    cairn::checks::all(comm);
    check_in_reverse();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
