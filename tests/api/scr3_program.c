/* A program as users of SCR 3 write it, with nothing of Cairn's own: a counter that is saved every
 * few steps and taken up again on restart. Compiles as C and as C++.
 *
 *   scr3_program STEPS
 *
 * Rank 0 prints where it began and the sum over all ranks at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "scr.h"

struct state {
  int step;
  double value;
};

static int rank;

static void name_of_file(const char* dataset, char* name, size_t size) {
  snprintf(name, size, "%s/state.%d.dat", dataset, rank);
}

static int read_state(const char* dataset, struct state* state) {
  char name[256], path[SCR_MAX_FILENAME];
  FILE* file;
  int valid;
  name_of_file(dataset, name, sizeof name);
  if (SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
  file = fopen(path, "r");
  if (file == NULL) return 0;
  valid = fscanf(file, "%d %lf", &state->step, &state->value) == 2;
  fclose(file);
  return valid;
}

static int write_state(const char* dataset, const struct state* state) {
  char name[256], path[SCR_MAX_FILENAME];
  FILE* file;
  int valid;
  name_of_file(dataset, name, sizeof name);
  if (SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
  file = fopen(path, "w");
  if (file == NULL) return 0;
  valid = fprintf(file, "%d %.17g\n", state->step, state->value) > 0;
  return fclose(file) == 0 && valid;
}

static void restart(struct state* state) {
  int have = 0, restarted = 0;
  char dataset[SCR_MAX_FILENAME];
  do {
    struct state read = {0, 0};
    SCR_Have_restart(&have, dataset);
    if (!have) break;
    SCR_Start_restart(dataset);
    restarted = SCR_Complete_restart(read_state(dataset, &read)) == SCR_SUCCESS;
    if (restarted) *state = read;
  } while (!restarted);
}

static void checkpoint(const struct state* state) {
  char dataset[64];
  int flags = SCR_FLAG_CHECKPOINT;
  if (state->step % 8 == 0) flags |= SCR_FLAG_OUTPUT;
  snprintf(dataset, sizeof dataset, "timestep.%d", state->step);
  SCR_Start_output(dataset, flags);
  mkdir(dataset, 0700); /* SCR asks for it where the cache is bypassed */
  SCR_Complete_output(write_state(dataset, state));
}

int main(int argc, char* argv[]) {
  struct state state = {0, 1.0};
  double sum = 0;
  int steps, need = 0, stop = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  steps = argc > 1 ? atoi(argv[1]) : 10;

  SCR_Config("SCR_CHECKPOINT_INTERVAL=4");
  SCR_Configf("SCR_DEBUG=%d", 0);
  if (SCR_Init() != SCR_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  restart(&state);
  if (rank == 0) printf("SCR %s began at step %d\n", SCR_Get_version(), state.step);
  while (state.step < steps && !stop) {
    state.step++;
    state.value += (rank + 1) * 0.5;
    SCR_Need_checkpoint(&need);
    if (need) checkpoint(&state);
    SCR_Should_exit(&stop);
  }
  MPI_Reduce(&state.value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %g\n", sum);
  SCR_Finalize();
  MPI_Finalize();
  return 0;
}
