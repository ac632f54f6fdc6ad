/* Preloaded: in place of an MPI that does not wait for dead ranks, but says that it would. With BARRIER_FAILS the barrier reports
   one; otherwise only Cairn knows. With DIES_IN_BARRIER=rank that rank dies in it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int dies(void) {
  const char* const dying = getenv("DIES_IN_BARRIER");
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
  return dying != NULL && rank != NULL && strcmp(dying, rank) == 0;
}

int PMPI_Barrier(void) {
  static const char text[] = "the barrier waits for all ranks\n";
  if (dies()) raise(SIGKILL);
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) abort();
  return getenv("BARRIER_FAILS") != NULL;
}
int PMPI_Finalize(void) { return 0; }
