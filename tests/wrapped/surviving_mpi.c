/* Preloaded: in place of an MPI that does not wait for dead ranks. With BARRIER_FAILS the barrier reports one; otherwise only
   Cairn knows. */
#include <stdlib.h>

int PMPI_Barrier(void) { return getenv("BARRIER_FAILS") != NULL; }
int PMPI_Finalize(void) { return 0; }
