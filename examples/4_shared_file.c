/* Lesson 4: all ranks write one shared file per step, and any number of ranks restores it. */
#include <mpi.h>
#include <rbio.h>
#include <stdio.h>
#include <stdlib.h>

enum { all_cells = 100000, last_step = 60, interval = 10 };

static int rank, ranks;
/* This rank's part of a ring of cells, with a copy of the left neighbour's last cell before it. */
static double* wave;
static int64_t cells;

/* The ring may be divided differently in each run: a restore only needs the order of the cells. */
static void divide(void) {
  const int64_t first = (int64_t)all_cells * rank / ranks;
  cells = (int64_t)all_cells * (rank + 1) / ranks - first;
  wave = malloc((size_t)(cells + 1) * sizeof *wave);
  if (!wave) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int64_t i = 1; i <= cells; ++i) wave[i] = (double)((first + i) % 100);
}

static void advance(void) {
  MPI_Sendrecv(&wave[cells], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &wave[0], 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int64_t i = cells; i > 0; --i) wave[i] += 0.4 * (wave[i - 1] - wave[i]);
}

/* Restores the newest step, if there is one. Returns 0 if there is one that cannot be read: a
 * program that began anew would replace it. */
static int restart(rbio_series* series, int64_t* step) {
  const int result = rbio_restore(series, RBIO_NEWEST, step);
  if (result == CAIRN_E_NOT_FOUND) return 1; /* the first run */
  if (result == RBIO_SUCCESS && rank == 0) printf("restored step %lld\n", (long long)*step);
  return result == RBIO_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  divide();
  rbio_series* series;
  int64_t step = 0;
  int ready =
      rbio_open(MPI_COMM_WORLD, "shared", "files=1 keep=2", &series) == RBIO_SUCCESS &&
      rbio_add_field(series, "wave", RBIO_FLOAT64, 1, wave + 1, cells, NULL) == RBIO_SUCCESS &&
      restart(series, &step);
  while (ready && step < last_step) {
    advance();
    /* The wave may change as soon as rbio_begin returns. After an error, which rank 0 prints, the
     * program continues, and the steps before are still there. The error is that of an earlier
     * step, so the second call begins this one. */
    if (++step % interval == 0 && rbio_begin(series, step, NULL) != RBIO_SUCCESS)
      rbio_begin(series, step, NULL);
  }
  if (ready && rank == 0) printf("step %lld: %.6f\n", (long long)step, wave[1]);
  /* Waits until all steps are durable. */
  if (series && rbio_close(&series) != RBIO_SUCCESS) ready = 0;
  free(wave);
  MPI_Finalize();
  return ready ? 0 : 1;
}
