/* Preloaded: in place of an MPI that does not wait for dead ranks, but says that it would. With
   BARRIER_FAILS the barrier reports one; otherwise only Cairn knows. With DIES_IN_BARRIER=rank that
   rank dies in it, once all four are there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ranks = 4, rank_digits = 12, look_us = 1000 };

static const char* own_rank(void) {
  return getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("OMPI_COMM_WORLD_RANK")
                                                : getenv("PMI_RANK");
}

static int open_mark(const char* rank, int flags) {
  char name[4096];
  snprintf(name, sizeof name, "%s/in-barrier.%s", getenv("TMPDIR"), rank);
  const int mark = open(name, flags, 0600);
  if (mark >= 0) close(mark);
  return mark >= 0;
}

static void wait_for_all(void) {
  for (int rank = 0; rank < ranks; ++rank) {
    char text[rank_digits];
    snprintf(text, sizeof text, "%d", rank);
    while (!open_mark(text, O_RDONLY)) usleep(look_us);
  }
}

static void meet_and_die(const char* dying) {
  if (!open_mark(own_rank(), O_WRONLY | O_CREAT)) abort();
  if (strcmp(dying, own_rank()) != 0) return;
  wait_for_all();
  raise(SIGKILL);
}

int PMPI_Barrier(void) {
  static const char text[] = "the barrier waits for all ranks\n";
  if (getenv("DIES_IN_BARRIER") != NULL) meet_and_die(getenv("DIES_IN_BARRIER"));
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) abort();
  return getenv("BARRIER_FAILS") != NULL;
}
int PMPI_Finalize(void) { return 0; }
