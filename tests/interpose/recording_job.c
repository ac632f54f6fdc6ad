/* Both an MPI and a job of Cairn, as far as the preloaded library calls them. It records what the job hears of the program's
   calls, and what the file holds at that moment, into the file RECORD. With MOVES it moves that file to its plain place, when it
   hears of a change for the first time: a job does so with steps that were given up. With PLACES it records where the step is in
   the name. With LOST it is lost when it hears of that file, and at the end it says that a rank is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wrapped/wrapped_calls.h"

static struct cairn_wrapped_options options;

static void record(const char* call, const char* name, const char* more) {
  char line[2 * PATH_MAX], place[2 * PATH_MAX], text[64] = "";
  snprintf(place, sizeof place, "%s/%s", options.redirected, name);
  const int file = (int)syscall(SYS_openat, AT_FDCWD, place, O_RDONLY);
  const int is_there = file >= 0 && *name && read(file, text, sizeof text - 1) >= 0;
  if (file >= 0) syscall(SYS_close, file);
  const int to = (int)syscall(SYS_openat, AT_FDCWD, getenv("RECORD"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int length = *name ? snprintf(line, sizeof line, "%s %s%s: %s\n", call, name, more, is_there ? text : "-")
                           : snprintf(line, sizeof line, "%s\n", call);
  if (write(to, line, (size_t)length) != length) abort();
  syscall(SYS_close, to);
}

static void record_step(const char* call, const char* name, size_t begin, size_t length, int empties) {
  char more[PATH_MAX];
  char place[32] = "";
  if (getenv("PLACES")) snprintf(place, sizeof place, " at %zu", begin);
  snprintf(more, sizeof more, " step %.*s%s%s", (int)length, name + begin, place, empties ? " anew" : "");
  record(call, name, more);
}

static void opened(const char* name, size_t begin, size_t length, int empties) {
  record_step("opened", name, begin, length, empties);
  if (getenv("LOST") && strcmp(getenv("LOST"), name) == 0) options.job_lost();
}
static void move_once(void) {
  static int has_tried;
  if (!has_tried && getenv("MOVES")) options.move_to_plain_place(getenv("MOVES"));
  has_tried = 1;
}
static void changes(const char* name, size_t begin, size_t length, int empties) {
  record_step("changes", name, begin, length, empties);
  move_once();
}
static void changed(const char* name) { record("changed", name, ""); }
static void not_redirected(const char* name, size_t begin, size_t length, int empties) {
  record_step("not redirected", name, begin, length, empties);
}
static void removed(const char* name) { record("removed", name, ""); }
static void moved_out(const char* name) {
  record("moved out", name, "");
  move_once();
}
static int finish(void) {
  record("finish", "", "");
  return getenv("LOST") == NULL;
}
static void leave(void) { record("leave", "", ""); }
static void aborts(void) { record("aborts", "", ""); }

const struct cairn_wrapped_calls* cairn_wrapped_start(const struct cairn_wrapped_options* given) {
  static const struct cairn_wrapped_calls calls = {opened, changes, changed, not_redirected, removed, moved_out, finish, leave, aborts};
  options = *given;
  options.redirected = strdup(given->redirected);
  return &calls;
}

int PMPI_Init(int* argc, char*** argv) { return argc != NULL || argv != NULL; }
int PMPI_Finalize(void) { return 0; }
int PMPI_Abort(void* comm, int code) { return comm != NULL || code == 0; }
