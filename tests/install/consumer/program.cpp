// A C++ program written for SCR 3: one checkpoint, with one file per rank.
#include <mpi.h>
#include <scr.h>

#include <fstream>
#include <iostream>
#include <string>

namespace {

bool write_checkpoint(int rank) {
  if (SCR_Start_output("first", SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return false;
  char path[SCR_MAX_FILENAME];
  const std::string name = "rank." + std::to_string(rank);
  bool written = SCR_Route_file(name.c_str(), path) == SCR_SUCCESS;
  if (written) written = static_cast<bool>(std::ofstream(path) << rank << std::flush);
  return SCR_Complete_output(written) == SCR_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool good = SCR_Init() == SCR_SUCCESS && write_checkpoint(rank);
  const bool ended = SCR_Finalize() == SCR_SUCCESS;
  if (rank == 0 && good) std::cout << "checkpoint written by " << SCR_Get_version() << "\n";
  MPI_Finalize();
  return good && ended ? 0 : 1;
}
