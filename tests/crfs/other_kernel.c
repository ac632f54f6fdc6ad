// Preloaded into crfs: as if the kernel were another one, so far as it tells a file system of a
// user process. With OTHER_KERNEL_MINOR=38 it is Linux 6.5; from when there is a file with the name
// OTHER_KERNEL_FAILS on, it fails to hand over requests.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*Read)(int, void*, size_t);

static void change_version(char* buffer, ssize_t got) {
  const char* const minor = getenv("OTHER_KERNEL_MINOR");
  struct {
    struct fuse_in_header header;
    struct fuse_init_in first;
  } request;
  if (minor == NULL || got < (ssize_t)sizeof request) return;
  memcpy(&request, buffer, sizeof request);
  if (request.header.opcode != FUSE_INIT || request.header.len != got) return;
  request.first.minor = (unsigned)atoi(minor);
  memcpy(buffer, &request, sizeof request);
}

ssize_t read(int descriptor, void* buffer, size_t size) {
  const Read of_libc = (Read)dlsym(RTLD_NEXT, "read");  // at which threads can be cancelled
  const char* const fails = getenv("OTHER_KERNEL_FAILS");
  if (size > FUSE_MIN_READ_BUFFER && fails != NULL && access(fails, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  const ssize_t got = of_libc(descriptor, buffer, size);
  change_version(buffer, got);
  return got;
}
