/* Gives the redirected file that is opened first another name, LINK_TO, in the last moment before it is opened: as the job of
   another process does that makes a checkpoint of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void link_once(const char* path) {
  static int has_linked;
  const char* const to = getenv("LINK_TO");
  if (has_linked || to == NULL || strstr(path, "/files/") == NULL) return;
  has_linked = syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, to, 0) == 0;
}

#define WRAP(name)                                            \
  int name(const char* path, int flags, ...) {                \
    va_list more;                                             \
    va_start(more, flags);                                    \
    const mode_t mode = va_arg(more, mode_t);                 \
    va_end(more);                                             \
    link_once(path);                                          \
    int (*next)(const char*, int, ...);                       \
    *(void**)&next = dlsym(RTLD_NEXT, #name);                 \
    return next(path, flags, mode);                           \
  }

WRAP(open)
WRAP(open64)
