/* A library to preload, which acts on the changes that a process makes below the directory WATCH
 * while ARMED is 1. Each rank has RANK from its launcher.
 *
 *   TRACE      a path; rank R appends a line "CALL PATH" for each change to TRACE.R
 *   KILL_AT    "RANK NUMBER": SIGKILL just before that change, counted from 0
 *   KILL_ALL   with it, all ranks of the simulated cluster get SIGKILL
 *   FAIL       "RANK CALL ERRNO [SKIP]": each such call but the first SKIP fails with that number;
 *              "open" is no change, but may fail: that of an existing file for writing
 *   HANG       "RANK CALL": each such call never returns
 *   HOLES      pwrite leaves holes where the data are zero: for files that are larger than the disk
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static atomic_int changes, matching_calls;

static int my_rank(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  return rank == NULL ? -1 : atoi(rank);
}

/* Each rank has a file with "PID START". */
static void kill_the_others(const char* directory) {
  DIR* all = opendir(directory);
  for (struct dirent* one; all != NULL && (one = readdir(all)) != NULL;) {
    char path[4096];
    int pid = 0;
    snprintf(path, sizeof path, "%s/%s", directory, one->d_name);
    FILE* file = one->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (file != NULL && fscanf(file, "%d", &pid) == 1 && pid > 1 && pid != getpid())
      kill(pid, SIGKILL);
    if (file != NULL) fclose(file);
  }
}

static void trace(const char* call, const char* path) {
  char name[4096];
  if (getenv("TRACE") == NULL) return;
  snprintf(name, sizeof name, "%s.%d", getenv("TRACE"), my_rank());
  FILE* file = fopen(name, "a");
  if (file == NULL) abort();
  fprintf(file, "%s %s\n", call, path);
  fclose(file);
}

static void kill_if_chosen(int change) {
  int rank = -1, at = -1;
  const char* chosen = getenv("KILL_AT");
  if (chosen == NULL || sscanf(chosen, "%d %d", &rank, &at) != 2) return;
  if (rank != my_rank() || at != change) return;
  if (getenv("KILL_ALL") != NULL) kill_the_others(getenv("CLUSTER_PIDS"));
  kill(getpid(), SIGKILL);
}

static int must_fail(const char* call) {
  int rank = -1, number = 0, skip = 0;
  char failing[32];
  const char* chosen = getenv("FAIL");
  if (chosen == NULL || sscanf(chosen, "%d %31s %d %d", &rank, failing, &number, &skip) < 3)
    return 0;
  if (rank != my_rank() || strcmp(failing, call) != 0) return 0;
  if (atomic_fetch_add(&matching_calls, 1) < skip) return 0;
  errno = number;
  return 1;
}

static void hang_if_chosen(const char* call) {
  int rank = -1;
  char hanging[32];
  const char* chosen = getenv("HANG");
  if (chosen == NULL || sscanf(chosen, "%d %31s", &rank, hanging) != 2) return;
  while (rank == my_rank() && strcmp(hanging, call) == 0) pause();
}

static int is_watched(const char* path) {
  const char* armed = getenv("ARMED");
  const char* watched = getenv("WATCH");
  if (armed == NULL || *armed != '1' || watched == NULL) return 0;
  return strncmp(path, watched, strlen(watched)) == 0;
}

/* True if the call is to fail, with errno set. */
static int interferes(const char* call, const char* path) {
  if (!is_watched(path)) return 0;
  trace(call, path);
  kill_if_chosen(atomic_fetch_add(&changes, 1));
  hang_if_chosen(call);
  return must_fail(call);
}

enum { longest_path = 4096 };

/* False if the file has no path. */
static int find_path(int file, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, longest_path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return length >= 0;
}

static int interferes_with_file(const char* call, int file) {
  char path[longest_path];
  return find_path(file, path) && interferes(call, path);
}

static int leaves_holes(int file) {
  char path[longest_path];
  return getenv("HOLES") != NULL && find_path(file, path) && is_watched(path);
}

/* The file is as long as it will be, and empty. */
static ssize_t write_all_but_zeros(int file, const char* data, size_t bytes, off_t at) {
  static const char zeros[1 << 20];
  for (size_t done = 0; done < bytes;) {
    const size_t left = bytes - done, length = left < sizeof zeros ? left : sizeof zeros;
    ssize_t written = (ssize_t)length;
    if (memcmp(data + done, zeros, length) != 0)
      written = REAL(pwrite)(file, data + done, length, at + (off_t)done);
    if (written < 0) return -1;
    done += (size_t)written;
  }
  return (ssize_t)bytes;
}

int openat(int directory, const char* name, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    const int fails = name[0] == '/' || directory == AT_FDCWD
                          ? interferes("create", name)
                          : interferes_with_file("create", directory);
    if (fails) return -1;
  } else if ((flags & O_ACCMODE) != O_RDONLY && is_watched(name) && must_fail("open")) {
    return -1;
  }
  return REAL(openat)(directory, name, flags, mode);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (!(flags & O_CREAT) && is_watched(path) && must_fail("open")) return -1;
  return REAL(open)(path, flags, mode);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t at) {
  if (interferes_with_file("pwrite", file)) return -1;
  if (leaves_holes(file)) return write_all_but_zeros(file, data, bytes, at);
  return REAL(pwrite)(file, data, bytes, at);
}

ssize_t write(int file, const void* data, size_t bytes) {
  return interferes_with_file("write", file) ? -1 : REAL(write)(file, data, bytes);
}

int ftruncate(int file, off_t bytes) {
  return interferes_with_file("ftruncate", file) ? -1 : REAL(ftruncate)(file, bytes);
}

int fdatasync(int file) {
  return interferes_with_file("fdatasync", file) ? -1 : REAL(fdatasync)(file);
}

int fsync(int file) { return interferes_with_file("fsync", file) ? -1 : REAL(fsync)(file); }

int mkdir(const char* path, mode_t mode) {
  return interferes("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

int rename(const char* from, const char* to) {
  return interferes("rename", to) ? -1 : REAL(rename)(from, to);
}

int unlink(const char* path) { return interferes("unlink", path) ? -1 : REAL(unlink)(path); }

int rmdir(const char* path) { return interferes("rmdir", path) ? -1 : REAL(rmdir)(path); }
