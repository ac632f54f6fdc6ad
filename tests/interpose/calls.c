/* Counts the system calls and the allocations of calls on one path: calls PATH CALL ROUNDS. CALL is one of those below. The child
 * makes the calls between two marks, and the parent traces it. It is linked to no library of Cairn. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);

static volatile unsigned long allocations;

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}

static void make_call(const char* call, const char* path) {
  struct stat state;
  if (strcmp(call, "open") == 0) {
    const int file = open(path, O_RDONLY);
    if (file >= 0) close(file);
  } else if (strcmp(call, "openat") == 0) {
    const int file = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) close(file);
  } else if (strcmp(call, "stat") == 0) {
    stat(path, &state);
  } else if (strcmp(call, "lstat") == 0) {
    lstat(path, &state);
  } else if (strcmp(call, "access") == 0) {
    access(path, R_OK);
  } else if (strcmp(call, "unlink") == 0) {
    unlink(path);
  } else if (strcmp(call, "rename") == 0) {
    rename(path, path);
  } else if (strcmp(call, "truncate") == 0) {
    truncate(path, 0);
  } else {
    fprintf(stderr, "unknown call %s\n", call);
    exit(2);
  }
}

static void run(const char* path, const char* call, int rounds) {
  make_call(call, path); /* what is cached is not counted */
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  syscall(SYS_getppid);
  allocations = 0;
  for (int i = 0; i < rounds; ++i) make_call(call, path);
  const unsigned long counted = allocations;
  syscall(SYS_getppid);
  printf("allocations %lu\n", counted);
  fflush(stdout);
  _exit(0);
}

int main(int argc, char** argv) {
  int status;
  int marks = 0;
  int is_before = 1; /* the child stops before each system call, and after it */
  unsigned long calls = 0;
  if (argc != 4) return 2;
  const pid_t child = fork();
  if (child == 0) run(argv[1], argv[2], atoi(argv[3]));
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
    fprintf(stderr, "cannot trace\n");
    return 3;
  }
  ptrace(PTRACE_SETOPTIONS, child, NULL, (void*)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
  while (ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    struct __ptrace_syscall_info info;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    if (is_before) {
      ptrace(PTRACE_GET_SYSCALL_INFO, child, (void*)sizeof info, &info);
      if (info.entry.nr == SYS_getppid) ++marks;
      else if (marks == 1) ++calls;
    }
    is_before = !is_before;
  }
  printf("calls %lu\n", calls);
  return marks == 2 && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
