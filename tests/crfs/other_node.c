// Preloaded into crfs: as if another node were always the quicker one. Whenever crfs is about to
// make a file, the file that OTHER_NODE_BRINGS names is moved to where the new one would be.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>

typedef int (*OpenAt)(int, const char*, int, ...);
typedef int (*FStatFs)(int, struct statfs*);

int openat(int folder, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  const char* const brought = getenv("OTHER_NODE_BRINGS");
  if (brought != NULL && (flags & O_EXCL) != 0) (void)renameat(AT_FDCWD, brought, folder, name);
  return ((OpenAt)dlsym(RTLD_NEXT, "openat"))(folder, name, flags, mode);
}

int fstatfs(int file, struct statfs* status) {
  const char* const type = getenv("OTHER_NODE_SERVES");
  const int result = ((FStatFs)dlsym(RTLD_NEXT, "fstatfs"))(file, status);
  if (type != NULL) status->f_type = strtol(type, NULL, 0);
  return result;
}
