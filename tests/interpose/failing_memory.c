/* Calls of a program that gets no memory meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

void* __libc_malloc(size_t size);

/* Of this thread. The other kinds of such variables may need memory. */
static __thread int is_lacking __attribute__((tls_model("initial-exec")));

void* malloc(size_t size) {
  if (!is_lacking) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}

#define WITHOUT_MEMORY(call) \
  is_lacking = 1;            \
  const int result = call;   \
  is_lacking = 0;            \
  return result

int symlink_without_memory(const char* target, const char* path) { WITHOUT_MEMORY(symlink(target, path)); }
int open_without_memory(const char* path, int flags) { WITHOUT_MEMORY(open(path, flags, 0666)); }
