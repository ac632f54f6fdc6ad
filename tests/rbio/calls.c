/* What each call of rbio.h does, in order, on a new directory: calls DIRECTORY. Two or more ranks.
 */
#include <rbio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int rank, ranks;
static rbio_series* series;
static double values[8];

static void fill(double start) {
  for (int i = 0; i < 8; ++i) values[i] = start + 100 * rank + i;
}

/* Rank r has r elements. */
static void open_and_register(const char* directory) {
  int field = -1;
  EXPECT(rbio_open(MPI_COMM_WORLD, directory, "", &series), RBIO_SUCCESS);
  EXPECT(rbio_add_field(series, "values", RBIO_FLOAT64, 1, values, rank, &field), RBIO_SUCCESS);
  EXPECT(field, 0);
}

static void finds_nothing_in_a_new_series(void) {
  int64_t step = -7;
  int count = -7, some_ranks = -7;
  EXPECT(rbio_restore(series, RBIO_NEWEST, &step), CAIRN_E_NOT_FOUND);
  EXPECT(step, -7);
  EXPECT(rbio_steps(series, NULL, 0, &count), RBIO_SUCCESS);
  EXPECT(count, 0);
  EXPECT(rbio_stored_ranks(series, RBIO_NEWEST, &some_ranks), CAIRN_E_NOT_FOUND);
  EXPECT(some_ranks, -7);
}

static void waits_in_any_order(void) {
  rbio_ticket tickets[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    fill(1000 * (i + 1));
    EXPECT(rbio_begin(series, 10 * (i + 1), &tickets[i]), RBIO_SUCCESS);
    EXPECT(tickets[i] > (i > 0 ? tickets[i - 1] : 0), 1);
    EXPECT(rbio_progress(series), RBIO_SUCCESS);
  }
  fill(0);
  for (int i = 2; i >= 0; --i) EXPECT(rbio_wait(series, tickets[i]), RBIO_SUCCESS);
  EXPECT(rbio_wait(series, tickets[1]), RBIO_SUCCESS);
  int finished = 0;
  EXPECT(rbio_test(series, tickets[1], &finished), RBIO_SUCCESS);
  EXPECT(finished, 1);
  EXPECT(rbio_wait(series, RBIO_NO_TICKET), RBIO_SUCCESS);
  finished = 0;
  EXPECT(rbio_test(series, RBIO_NO_TICKET, &finished), RBIO_SUCCESS);
  EXPECT(finished, 1);
}

static void lists_the_newest_step_first(void) {
  int64_t steps[3] = {-1, -1, -1};
  int count = 0;
  EXPECT(rbio_steps(series, steps, 2, &count), RBIO_SUCCESS);
  EXPECT(count, 3);
  EXPECT(steps[0], 30);
  EXPECT(steps[1], 20);
  EXPECT(steps[2], -1);
  /* A step written again is the newest. */
  fill(1000);
  EXPECT(rbio_begin(series, 10, NULL), RBIO_SUCCESS);
  EXPECT(rbio_steps(series, steps, 3, &count), RBIO_SUCCESS);
  EXPECT(count, 3);
  EXPECT(steps[0], 10);
}

static void knows_who_wrote_how_much(void) {
  int64_t count = -1;
  int some_ranks = -1;
  EXPECT(rbio_stored_ranks(series, 20, &some_ranks), RBIO_SUCCESS);
  EXPECT(some_ranks, ranks);
  EXPECT(rbio_stored_count(series, RBIO_NEWEST, "values", rank, &count), RBIO_SUCCESS);
  EXPECT(count, rank);
  EXPECT(rbio_stored_count(series, 20, "values", RBIO_ALL_RANKS, &count), RBIO_SUCCESS);
  EXPECT(count, ranks * (ranks - 1) / 2);
}

static void restores_a_chosen_step(void) {
  int64_t step = -1;
  fill(0);
  EXPECT(rbio_restore(series, 20, &step), RBIO_SUCCESS);
  EXPECT(step, 20);
  for (int i = 0; i < rank; ++i) EXPECT(values[i], 2000 + 100 * rank + i);
  EXPECT(values[rank], 100 * rank + rank); /* not written to */
  EXPECT(rbio_restore(series, 25, NULL), CAIRN_E_NOT_FOUND);
}

/* Rank 0 takes all; the elements are in rank order. */
static void restores_with_other_counts(void) {
  const int64_t all = ranks * (ranks - 1) / 2;
  double* everything = malloc((size_t)all * sizeof *everything);
  EXPECT(rbio_set_field(series, 0, everything, rank == 0 ? all : 0), RBIO_SUCCESS);
  EXPECT(rbio_restore(series, RBIO_NEWEST, NULL), RBIO_SUCCESS);
  for (int64_t r = 0, at = 0; rank == 0 && r < ranks; ++r)
    for (int64_t i = 0; i < r; ++i) EXPECT(everything[at++], 1000 + 100 * r + i);
  EXPECT(rbio_set_field(series, 0, values, rank), RBIO_SUCCESS);
  free(everything);
}

static void counts_what_it_did(void) {
  rbio_statistics_t now;
  memset(&now, 0xFF, sizeof now);
  EXPECT(rbio_statistics(series, &now), RBIO_SUCCESS);
  EXPECT(now.steps_begun, 4);
  EXPECT(now.steps_published, 4);
  EXPECT(now.steps_failed, 0);
  EXPECT(now.bytes, 4 * 8 * rank);
  EXPECT(now.begin_s > 0 && now.begin_s < 60, 1);
  EXPECT(now.buffer_wait_s >= 0 && now.buffer_wait_s <= now.begin_s, 1);
  EXPECT(now.reserved[0], 0);
  EXPECT(now.write_s > 0, now.written_bytes > 0);
  EXPECT(now.write_s < 60, 1);
  int64_t mine[2] = {now.written_bytes, now.peak_buffer_bytes}, all[2];
  MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const int64_t data = 8 * ranks * (ranks - 1) / 2;
  EXPECT(all[0] >= 4 * data, 1);
  EXPECT(all[1] >= data, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  open_and_register(argc > 1 ? argv[1] : "series");
  finds_nothing_in_a_new_series();
  waits_in_any_order();
  lists_the_newest_step_first();
  knows_who_wrote_how_much();
  restores_a_chosen_step();
  restores_with_other_counts();
  counts_what_it_did();
  EXPECT(rbio_close(&series), RBIO_SUCCESS);
  EXPECT(series == NULL, 1);
  MPI_Finalize();
  return failed_checks > 0;
}
