/* Lesson 5: a program that computes while its results are copied, and ends only when they are safe.
 * Run it with SCR_FLUSH_ASYNC=1. */
#include <cairn.h>
#include <mpi.h>
#include <scr.h>
#include <stdio.h>

static int rank;
static const char* const safety[] = {"lost", "being written", "safe from the death of processes",
                                     "safe from the loss of nodes",
                                     "safe from the loss of all caches"};

/* Writes the result of a step as an output. */
static int save(const char* name, double result) {
  char file_name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
  if (SCR_Start_output(name, SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT) != SCR_SUCCESS) return 0;
  snprintf(file_name, sizeof file_name, "%s/rank.%d", name, rank);
  FILE* file = SCR_Route_file(file_name, path) == SCR_SUCCESS ? fopen(path, "w") : NULL;
  int valid = file && fprintf(file, "%.17g\n", result) > 0;
  if (file) valid = fclose(file) == 0 && valid;
  return SCR_Complete_output(valid) == SCR_SUCCESS;
}

/* The work between two messages. */
static double compute(double value) {
  Cairn_Computing_begin(); /* no messages from here: copies disturb no other rank */
  for (int i = 0; i < 1000000; ++i) value = value * 0.999999 + 0.000002;
  Cairn_Computing_end();
  return value;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  SCR_Init();
  double mine = rank, sum = 0;
  char name[32] = "";
  int state = CAIRN_STATE_NONE, saved = 1;
  for (int step = 1; step <= 20 && saved; ++step) {
    mine = compute(mine);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (step % 10 != 0) continue;
    snprintf(name, sizeof name, "result.%d", step);
    saved = save(name, mine);
    Cairn_Dataset_state(name, &state);
    if (rank == 0) printf("%s: %s\n", name, safety[state]);
  }
  /* The result must be in the prefix directory before this program says that it is done. */
  const int waited = saved ? Cairn_Wait(name, CAIRN_STATE_FLUSHED, 60.0) : CAIRN_TIMEOUT;
  Cairn_Dataset_state(name, &state);
  if (rank == 0) printf("%s: %s, sum %.6f\n", name, safety[state], sum);
  SCR_Finalize();
  MPI_Finalize();
  return waited == SCR_SUCCESS ? 0 : 1;
}
