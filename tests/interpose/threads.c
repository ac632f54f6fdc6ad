/* Threads that write, read, list, rename and delete checkpoint files at the same time, while others change the working
 * directory and fork. Prints "done" if each thread always found what it had written.
 *
 * threads DIRECTORY
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { rounds = 60, writers = 6 };
static int wrong;
static char root[4096];

static void fail(const char* what, long number) {
  fprintf(stderr, "%s %ld\n", what, number);
  __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static int is_listed(const char* wanted) {
  DIR* const directory = opendir(root);
  int found = 0;
  for (struct dirent* entry; (entry = readdir(directory));) found |= strcmp(entry->d_name, wanted) == 0;
  closedir(directory);
  return found;
}

static void* write_files(void* argument) {
  const long number = (long)argument;
  char name[64], path[5000], next[5000];
  for (int round = 0; round < rounds; ++round) {
    snprintf(name, sizeof name, "ckpt.%ld", number * 1000 + round);
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(next, sizeof next, "%s/ckpt.%ld", root, number * 1000 + 500 + round);
    FILE* file = fopen(path, "w");
    if (!file) { fail("not opened", number); continue; }
    fprintf(file, "%ld of %d", number, round);
    fclose(file);
    if (!is_listed(name)) fail("not listed", number);
    if (rename(path, next) != 0) fail("not renamed", number);
    file = fopen(next, "r");
    int of = -1;
    long by = -1;
    if (!file || fscanf(file, "%ld of %d", &by, &of) != 2 || by != number || of != round) fail("not read", number);
    if (file) fclose(file);
    if (round % 2 && unlink(next) != 0) fail("not deleted", number);
  }
  return NULL;
}

static void* change_directory(void* argument) {
  for (int round = 0; round < rounds * 5; ++round)
    if (chdir(round % 2 ? "/" : root) != 0) fail("chdir", (long)argument);
  return NULL;
}

#ifdef __SANITIZE_THREAD__
/* The sanitizer's own allocator cannot be used in a forked child. */
static void* fork_children(void* argument) { return argument; }
#else
static void* fork_children(void* argument) {
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      char path[5000];
      snprintf(path, sizeof path, "%s/ckpt.%d", root, 900000 + round);
      const int file = open(path, O_WRONLY | O_CREAT, 0600);
      _exit(file >= 0 && is_listed(strrchr(path, '/') + 1) && unlink(path) == 0 ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) fail("child", (long)argument);
  }
  return NULL;
}
#endif

int main(int argc, char** argv) {
  pthread_t threads[writers + 2];
  if (argc < 2 || !realpath(argv[1], root)) return 2;
  for (long i = 0; i < writers; ++i) pthread_create(&threads[i], NULL, write_files, (void*)i);
  pthread_create(&threads[writers], NULL, change_directory, NULL);
  pthread_create(&threads[writers + 1], NULL, fork_children, NULL);
  for (int i = 0; i < writers + 2; ++i) pthread_join(threads[i], NULL);
  if (!wrong) puts("done");
  return wrong != 0;
}
