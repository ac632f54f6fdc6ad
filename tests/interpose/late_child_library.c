/* Preloaded after the library of Cairn, so initialised before it: the child of a fork waits, before it does anything else, until the
   file LATE_CHILD_UNTIL exists. So does a child on a machine that has no processor for it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_in_child(void) {
  const char* const until = getenv("LATE_CHILD_UNTIL");
  while (until != NULL && access(until, F_OK) != 0) usleep(10000);
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, wait_in_child); }
