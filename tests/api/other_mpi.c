/* Prints, on one line for each process, what SCR_Init returns and what the calls after it return.
 * It asks for a setting first: so the first call of all is made before SCR_Init. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>

static int write_own_file(void) {
  int rank;
  char name[32], path[SCR_MAX_FILENAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "state.%d", rank);
  if (SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
  FILE* file = fopen(path, "w");
  return file && fputs("state", file) >= 0 && fclose(file) == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size, found;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  SCR_Config("CAIRN_NO_SUCH_SETTING=1");
  const int early = SCR_Have_restart(&found, NULL);
  const int init = SCR_Init();
  const int start = SCR_Start_checkpoint();
  const int complete = SCR_Complete_checkpoint(write_own_file());
  const int finalize = SCR_Finalize();
  printf("%d ranks: %d %d %d %d %d\n", size, early, init, start, complete, finalize);
  fflush(stdout);
  return MPI_Finalize();
}
