/* A wave travels around a ring of cells. Each rank computes one part of the ring. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>
#include <unistd.h>

enum { cells = 10000, last_step = 60 };

static int rank, ranks;

/* Everything that a rank needs to continue: the step, and its part of the ring. */
static struct {
  int step;
  double wave[cells + 1]; /* wave[0] is a copy of the left neighbour's last cell */
} state;

static void begin(void) {
  state.step = 0;
  for (int i = 1; i <= cells; ++i) state.wave[i] = (rank + i) % 100;
}

static void advance(void) {
  double* wave = state.wave;
  MPI_Sendrecv(&wave[cells], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &wave[0], 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = cells; i > 0; --i) wave[i] += 0.4 * (wave[i - 1] - wave[i]);
  ++state.step;
  usleep(50000); /* in place of a longer computation */
}

static void report(void) {
  if (rank == 0) printf("step %d: %.6f\n", state.step, state.wave[1]);
  fflush(stdout);
}

/* Opens this rank's file of the checkpoint: to write it in mode "wb", to read it in mode "rb". */
static FILE* open_file(const char* checkpoint, const char* mode) {
  char name[SCR_MAX_FILENAME + 32], path[SCR_MAX_FILENAME];
  snprintf(name, sizeof name, "%s/rank.%d", checkpoint, rank);
  return SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, mode) : NULL;
}

static int save(const char* checkpoint) {
  FILE* file = open_file(checkpoint, "wb");
  if (!file) return 0;
  const int written = fwrite(&state, sizeof state, 1, file) == 1;
  return fclose(file) == 0 && written;
}

static void write_checkpoint(void) {
  char name[32];
  snprintf(name, sizeof name, "step.%d", state.step);
  if (SCR_Start_output(name, SCR_FLAG_CHECKPOINT) == SCR_SUCCESS) SCR_Complete_output(save(name));
}

static int load(const char* checkpoint) {
  FILE* file = open_file(checkpoint, "rb");
  if (!file) return 0;
  const int complete = fread(&state, sizeof state, 1, file) == 1;
  fclose(file);
  return complete;
}

/* Restores the newest checkpoint that all ranks can load. Without one, begins at step 0. Returns 0
 * if there is a checkpoint that Cairn cannot read now. */
static int restart(void) {
  char name[SCR_MAX_FILENAME];
  int found = 0, error;
  while ((error = SCR_Have_restart(&found, name)) == SCR_SUCCESS && found) {
    if (SCR_Start_restart(name) != SCR_SUCCESS) continue;
    if (SCR_Complete_restart(load(name)) == SCR_SUCCESS) return 1;
  }
  begin();
  return error == SCR_SUCCESS || error == CAIRN_E_DISABLED;
}

static void compute(void) {
  report();
  while (state.step < last_step) {
    advance();
    if (state.step % 10 == 0) {
      write_checkpoint();
      report();
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  SCR_Init(); /* if it fails, it prints why, and the program runs without checkpoints */
  const int ready = restart();
  if (ready) compute();
  SCR_Finalize();
  MPI_Finalize();
  return ready ? 0 : 1;
}
