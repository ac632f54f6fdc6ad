/* Lesson 1: each rank saves its state in checkpoints, and a new run continues from the newest. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>

static int rank;
static struct {
  int step;
  double result;
} state;

/* Writes (mode "wb") or reads (mode "rb") the state in this rank's file of the checkpoint. */
static int transfer(const char* mode, const char* checkpoint) {
  char name[SCR_MAX_FILENAME + 32], path[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "%s/rank.%d", checkpoint, rank);
  FILE* file = SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, mode) : NULL;
  if (!file) return 0;
  const size_t size = sizeof state;
  const size_t done = mode[0] == 'w' ? fwrite(&state, size, 1, file) : fread(&state, size, 1, file);
  return fclose(file) == 0 && done == 1;
}

/* Loads the newest checkpoint that all ranks can read, or begins. Returns 0 after an error. */
static int restart(void) {
  char name[SCR_MAX_FILENAME];
  int found = 0, error;
  while ((error = SCR_Have_restart(&found, name)) == SCR_SUCCESS && found) {
    if (SCR_Start_restart(name) != SCR_SUCCESS) continue;
    if (SCR_Complete_restart(transfer("rb", name)) == SCR_SUCCESS) return 1;
  }
  state.step = 0;
  state.result = 1;
  return error == SCR_SUCCESS || error == CAIRN_E_DISABLED;
}

static void save(void) {
  char name[32];
  snprintf(name, sizeof name, "step.%d", state.step);
  if (SCR_Start_output(name, SCR_FLAG_CHECKPOINT) == SCR_SUCCESS)
    SCR_Complete_output(transfer("wb", name));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  SCR_Init(); /* if it fails, it prints why, and the program runs without checkpoints */
  const int ready = restart();
  while (ready && state.step < 100) {
    state.result *= 1.01; /* the work */
    if (++state.step % 10 == 0) save();
  }
  if (ready && rank == 0) printf("step %d: %.6f\n", state.step, state.result);
  SCR_Finalize();
  MPI_Finalize();
  return ready ? 0 : 1;
}
