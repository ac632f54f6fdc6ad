/* Lesson 1: a rank saves what it needs to go on, and on a new start goes on from there. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>

/* Reads (mode "rb") or writes ("wb") this rank's state at the place Cairn chose for it. */
static int move_state(const char* mode, int rank, double state[2]) {
  char name[64], path[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "state.%d", rank);
  FILE* file = SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, mode) : NULL;
  if (!file) return 0;
  size_t moved =
      mode[0] == 'r' ? fread(state, sizeof *state, 2, file) : fwrite(state, sizeof *state, 2, file);
  return (fclose(file) == 0) & (moved == 2);
}

int main(int argc, char** argv) {
  int rank, answer, found = 0;
  double state[2] = {0, 1}; /* steps done, and the result so far */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (SCR_Init() != SCR_SUCCESS && rank == 0) puts("no checkpoints in this run");
  while ((answer = SCR_Have_restart(&found, NULL)) == SCR_SUCCESS && found) {
    SCR_Start_restart(NULL);
    if (SCR_Complete_restart(move_state("rb", rank, state)) == SCR_SUCCESS) break;
    state[0] = 0, state[1] = 1; /* it could not be read: the next older one is tried */
  }
  if (answer != SCR_SUCCESS && answer != CAIRN_E_DISABLED)
    return MPI_Finalize(), 1; /* there is one that must not be passed over; why has been told */
  while (state[0] < 100) {
    state[0] += 1, state[1] *= 1.01; /* the work */
    if ((int)state[0] % 10 != 0) continue;
    if (SCR_Start_checkpoint() == SCR_SUCCESS)
      SCR_Complete_checkpoint(move_state("wb", rank, state));
  }
  if (rank == 0) printf("step %g: %.6f\n", state[0], state[1]);
  SCR_Finalize();
  return MPI_Finalize();
}
