/* A program that writes steps, or restores one; each rank prints the results of its calls.
 *
 *   program write DIRECTORY OPTIONS STEP...     waits for each step
 *   program uneven DIRECTORY OPTIONS STEP...    the same, but rank 0 does not test before
 *   program overlap DIRECTORY OPTIONS STEP...   waits only in rbio_close
 *   program poll DIRECTORY OPTIONS STEP...      likewise, but begins a step when the last is done
 *   program silent DIRECTORY OPTIONS STEP...    likewise, but makes no call between begin and wait
 *   program restore DIRECTORY OPTIONS STEP...   -1 is the newest
 *   program again DIRECTORY OPTIONS RANK        opens the series twice; that rank dies in between
 *
 * If OPTIONS begin with "mode=split group=N", the first of N ranks has no data.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fields.h"

static int rank, ranks;

/* The library that interferes with system calls acts between begin and wait of the step ARM_STEP,
 * and of each step for which FAIL_IN_STEP_<step> says what fails. */
static void arm(int64_t step, int on) {
  char name[64];
  snprintf(name, sizeof name, "FAIL_IN_STEP_%lld", (long long)step);
  const char* failure = getenv(name);
  const char* chosen = getenv("ARM_STEP");
  if (failure != NULL) setenv("FAIL", failure, 1);
  if (failure != NULL || (chosen != NULL && atoll(chosen) == step))
    setenv("ARMED", on ? "1" : "0", 1);
}

/* Within a minute, or what never happens. `error` receives what the last test returned. */
static int becomes_finished(rbio_series* series, rbio_ticket ticket, int* error) {
  for (int look = 0; look < 60000; ++look) {
    int finished = 0;
    *error = rbio_test(series, ticket, &finished);
    if (finished) return 1;
    if (*error != RBIO_SUCCESS) return 0;
    usleep(1000);
  }
  return 0;
}

static void write_step(rbio_series* series, int64_t step, int waits_at_once) {
  rbio_ticket ticket = -1;
  compute_fields(step);
  arm(step, 1);
  const int begun = rbio_begin(series, step, &ticket);
  forget_fields();
  int tested = 0;
  const int finished = waits_at_once || becomes_finished(series, ticket, &tested);
  const int waited = rbio_wait(series, ticket);
  arm(step, 0);
  printf("rank %d step %lld: begin %d finished %d wait %d\n", rank, (long long)step, begun,
         finished, waited);
  fflush(stdout);
}

static void overlap_step(rbio_series* series, int64_t step, int polls) {
  rbio_ticket ticket = -1;
  compute_fields(step);
  const int begun = rbio_begin(series, step, polls ? &ticket : NULL);
  forget_fields();
  int tested = 0;
  if (polls && !becomes_finished(series, ticket, &tested))
    printf("rank %d: never finished\n", rank);
  printf("rank %d step %lld: begin %d\n", rank, (long long)step, begun);
  if (polls) printf("rank %d step %lld: test %d\n", rank, (long long)step, tested);
}

static int restore_step(rbio_series* series, int64_t step) {
  int64_t restored = -7;
  forget_fields();
  const int result = rbio_restore(series, step, &restored);
  const int is_right = result != RBIO_SUCCESS || fields_hold(restored);
  printf("rank %d restored %lld: %d%s\n", rank, (long long)restored, result,
         is_right ? "" : " WRONG BYTES");
  return is_right;
}

/* For longer than `timeout=1`. */
static void write_silently(rbio_series* series, int64_t step) {
  rbio_ticket ticket = -1;
  compute_fields(step);
  const int begun = rbio_begin(series, step, &ticket);
  forget_fields();
  usleep(1200000);
  const int waited = rbio_wait(series, ticket);
  printf("rank %d step %lld: begin %d wait %d\n", rank, (long long)step, begun, waited);
}

static int run(rbio_series* series, const char* command, int steps, char** step) {
  int is_right = 1;
  for (int i = 0; i < steps; ++i) {
    if (strcmp(command, "restore") == 0)
      is_right &= restore_step(series, atoll(step[i]));
    else if (strcmp(command, "write") == 0)
      write_step(series, atoll(step[i]), 0);
    else if (strcmp(command, "uneven") == 0)
      write_step(series, atoll(step[i]), rank == 0);
    else if (strcmp(command, "silent") == 0)
      write_silently(series, atoll(step[i]));
    else
      overlap_step(series, atoll(step[i]), strcmp(command, "poll") == 0);
  }
  return is_right;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  rbio_series* series;
  int split = 0;
  if (argc >= 4) sscanf(argv[3], "mode=split group=%d", &split);
  int is_right = argc >= 4 &&
                 rbio_open(MPI_COMM_WORLD, argv[2], argv[3], &series) == RBIO_SUCCESS &&
                 add_fields(series, rank, ranks, split) == RBIO_SUCCESS;
  const int opens_again = is_right && argc == 5 && strcmp(argv[1], "again") == 0;
  if (is_right && !opens_again) is_right = run(series, argv[1], argc - 4, argv + 4);
  if (is_right) {
    printf("rank %d close: %d\n", rank, rbio_close(&series));
    is_right = series == NULL;
  }
  if (opens_again && rank == atoi(argv[4])) raise(SIGKILL);
  if (opens_again) is_right = rbio_open(MPI_COMM_WORLD, argv[2], argv[3], &series) == RBIO_SUCCESS;
  free_fields();
  MPI_Finalize();
  return is_right ? 0 : 1;
}
