/* Runs every wrapped call on names in every state, and prints what the program sees: results, errno, and afterwards the
 * directory by each way to list it. It is linked to no library of Cairn; test_table.py runs it with and without the
 * preloaded library, and compares the output.
 *
 * table DIRECTORY [CALL]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);

enum { untouched = 77 };
static const char* call_name;
static char case_name[256];
static int here = -1; /* the directory of the case */

/* What a call gave. errno is that of the call, or must be as before it. */
static void show(const char* what, long result) {
  const int error = errno;
  printf("%s %s: %s %ld errno %s\n", call_name, case_name, what, result, error == untouched ? "untouched" : strerror(error));
  errno = untouched;
}

static void show_text(const char* what, const char* text) {
  const int error = errno;
  printf("%s %s: %s '%s' errno %s\n", call_name, case_name, what, text ? text : "(null)",
         error == untouched ? "untouched" : strerror(error));
  errno = untouched;
}

static const char* kind_of(mode_t mode) {
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : S_ISFIFO(mode) ? "fifo" : "other";
}

static void show_stat(const char* what, int result, const struct stat* state) {
  char text[128] = "-";
  if (result == 0)
    snprintf(text, sizeof text, "%s %o size %ld links %ld", kind_of(state->st_mode), state->st_mode & 07777,
             S_ISREG(state->st_mode) ? (long)state->st_size : 0, S_ISREG(state->st_mode) ? (long)state->st_nlink : 0);
  show_text(what, text);
}

/* ---- what the program sees afterwards ---- */

static int by_name(const void* one, const void* other) { return strcmp(*(char* const*)one, *(char* const*)other); }

static void show_names(const char* how, char** names, int count) {
  qsort(names, (size_t)count, sizeof *names, by_name);
  printf("%s %s: by %s:", call_name, case_name, how);
  for (int i = 0; i < count; ++i) {
    printf(" %s", names[i]);
    free(names[i]);
  }
  printf("\n");
}

static int is_dots(const char* name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static void list_by_readdir(DIR* directory, const char* how) {
  char* names[64];
  int count = 0;
  if (!directory) return;
  for (struct dirent* entry; (entry = readdir(directory));)
    if (!is_dots(entry->d_name) && asprintf(&names[count], "%s/%d", entry->d_name, entry->d_type) > 0) ++count;
  show_names(how, names, count);
}

static void list_by_readdir64(void) {
  char* names[64];
  int count = 0;
  DIR* const directory = opendir(".");
  for (struct dirent64* entry; (entry = readdir64(directory));)
    if (!is_dots(entry->d_name)) names[count++] = strdup(entry->d_name);
  closedir(directory);
  show_names("readdir64", names, count);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void list_by_readdir_r(void) {
  char* names[64];
  int count = 0;
  struct dirent space, *entry;
  DIR* const directory = opendir(".");
  while (readdir_r(directory, &space, &entry) == 0 && entry)
    if (!is_dots(entry->d_name)) names[count++] = strdup(entry->d_name);
  closedir(directory);
  show_names("readdir_r", names, count);
}

static int is_no_dot(const struct dirent* entry) { return !is_dots(entry->d_name); }

static void list_by_scandir(void) {
  struct dirent** found = NULL;
  const int count = scandir(".", &found, is_no_dot, alphasort);
  char* names[64];
  for (int i = 0; i < count; ++i) {
    names[i] = strdup(found[i]->d_name);
    free(found[i]);
  }
  free(found);
  show_names("scandir", names, count);
}

static void list_by_glob(void) {
  glob_t found;
  char* names[64];
  int count = 0;
  if (glob("*", 0, NULL, &found) == 0)
    for (; count < (int)found.gl_pathc; ++count) names[count] = strdup(found.gl_pathv[count]);
  globfree(&found);
  show_names("glob", names, count);
}

/* Reads some entries, then the others twice. */
static int goes_back_after(DIR* directory, int count) {
  char first[4096] = "", second[4096] = "";
  rewinddir(directory);
  for (int i = 0; i < count; ++i) readdir(directory);
  const long position = telldir(directory);
  for (struct dirent* entry; (entry = readdir(directory));) strcat(strcat(first, entry->d_name), " ");
  seekdir(directory, position);
  for (struct dirent* entry; (entry = readdir(directory));) strcat(strcat(second, entry->d_name), " ");
  return strcmp(first, second) == 0;
}

static void check_positions(void) {
  DIR* const directory = opendir(".");
  for (int count = 0; count < 6; ++count)
    if (!goes_back_after(directory, count)) printf("%s %s: seekdir goes elsewhere after %d\n", call_name, case_name, count);
  rewinddir(directory);
  list_by_readdir(directory, "readdir after rewinddir");
  closedir(directory);
}

static void show_content(const char* name) {
  char text[256] = "";
  const int file = open(name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return;
  const ssize_t size = read(file, text, sizeof text - 1);
  if (size >= 0) printf("%s %s: %s has '%s'\n", call_name, case_name, name, text);
  close(file);
}

static void show_directory(void) {
  DIR* directory = opendir(".");
  list_by_readdir(directory, "readdir");
  closedir(directory);
  directory = fdopendir(openat(here, ".", O_RDONLY | O_DIRECTORY));
  list_by_readdir(directory, "fdopendir");
  closedir(directory);
  list_by_readdir64();
  list_by_readdir_r();
  list_by_scandir();
  list_by_glob();
  check_positions();
  struct dirent** found = NULL;
  const int count = scandir(".", &found, is_no_dot, alphasort);
  for (int i = 0; i < count; ++i) {
    struct stat state;
    errno = untouched;
    const int result = lstat(found[i]->d_name, &state);
    show_stat(found[i]->d_name, result, &state);
    show_content(found[i]->d_name);
    free(found[i]);
  }
  free(found);
}

/* ---- states of a name ---- */

enum State { ABSENT, WRITTEN, BEFORE, BOTH, DIRECTORY, FULL, LINK, DANGLING, NO_PARENT, STATES };
static const char* const state_names[] = {"absent", "written", "before", "both", "directory", "full", "link", "dangling", "no_parent"};

/* Past every wrapper: as another program, or an earlier run, would have written it. */
static void write_plainly(const char* name, const char* text) {
  const long file = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, 0640);
  if (file < 0 || write((int)file, text, strlen(text)) < 0) abort();
  close((int)file);
}

static void write_as_program(const char* name, const char* text) {
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, text, strlen(text)) < 0) abort();
  close(file);
}

static void make_state(const char* name, enum State state) {
  char below[PATH_MAX];
  switch (state) {
    case WRITTEN: write_as_program(name, "written"); break;
    case BEFORE: write_plainly(name, "before it"); break;
    case BOTH:
      write_plainly(name, "from before");
      write_as_program(name, "both");
      break;
    case DIRECTORY:
    case FULL:
      if (mkdir(name, 0755) != 0) abort();
      snprintf(below, sizeof below, "%s/ckpt.7", name);
      if (state == FULL) write_as_program(below, "below");
      break;
    case LINK:
      write_plainly("target", "target's");
      if (symlink("target", name) != 0) abort();
      break;
    case DANGLING:
      if (symlink("nowhere", name) != 0) abort();
      break;
    default: break;
  }
}

/* ---- the calls with one path ---- */

static void use_descriptor(const char* what, int file) {
  show(what, file);
  if (file < 0) return;
  struct stat state;
  char text[64] = "";
  const ssize_t written = write(file, "new", 3);
  show("write", written);
  lseek(file, 0, SEEK_SET);
  const ssize_t got = read(file, text, sizeof text - 1);
  show("read", got);
  show_text("text", got >= 0 ? text : "");
  show_stat("fstat", fstat(file, &state), &state);
  errno = untouched;
  show("close", close(file));
}

static const int open_flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_CREAT, O_RDONLY | O_CREAT, O_WRONLY | O_CREAT | O_EXCL,
    O_WRONLY | O_TRUNC, O_RDWR | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_TRUNC | O_EXCL, O_WRONLY | O_APPEND,
    O_RDWR | O_CREAT | O_APPEND, O_RDONLY | O_DIRECTORY, O_PATH, O_RDONLY | O_NOFOLLOW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
    O_RDONLY | O_CLOEXEC | O_NOATIME};
enum { flag_count = sizeof open_flags / sizeof *open_flags };

/* A call with all flags, each on a fresh name. */
#define OPEN_ALL(expression)                                                   \
  for (int i = 0; i < flag_count; ++i) {                                       \
    const int flags = open_flags[i];                                           \
    char what[64];                                                             \
    snprintf(what, sizeof what, "flags %o", (unsigned)flags);                  \
    if (i > 0) again(name, state);                                             \
    errno = untouched;                                                         \
    use_descriptor(what, expression);                                          \
  }

static void remove_all(const char* name) {
  char below[PATH_MAX];
  snprintf(below, sizeof below, "%s/ckpt.7", name);
  unlink(below);
  unlink(name);
  rmdir(name);
  unlink("target");
  unlink("nowhere");
}

static void again(const char* name, enum State state) {
  remove_all(name);
  make_state(name, state);
}

#define CALL(name_of_call) static void call_##name_of_call(const char* name, enum State state)
#define UNUSED (void)state

CALL(open) { OPEN_ALL(open(name, flags, 0640)) }
CALL(open64) { OPEN_ALL(open64(name, flags, 0640)) }
CALL(openat) { OPEN_ALL(openat(here, name, flags, 0640)) }
CALL(openat64) { OPEN_ALL(openat64(AT_FDCWD, name, flags, 0640)) }
CALL(openat2) {
  int (*const call)(int, const char*, void*, size_t) = (int (*)(int, const char*, void*, size_t))dlsym(RTLD_DEFAULT, "openat2");
  OPEN_ALL(({
    unsigned long long how[3] = {(unsigned)flags, flags & O_CREAT ? 0640 : 0, 0};
    call ? call(here, name, how, sizeof how) : (int)syscall(SYS_openat2, here, name, how, sizeof how);
  }))
}
CALL(fortified_open) { OPEN_ALL(flags & O_CREAT ? -2 : __open_2(name, flags)) }
CALL(fortified_open64) { OPEN_ALL(flags & O_CREAT ? -2 : __open64_2(name, flags)) }
CALL(fortified_openat) { OPEN_ALL(flags & O_CREAT ? -2 : __openat_2(here, name, flags)) }
CALL(fortified_openat64) { OPEN_ALL(flags & O_CREAT ? -2 : __openat64_2(here, name, flags)) }
CALL(old_open) { int (*const call)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_DEFAULT, "__open"); OPEN_ALL(call ? call(name, flags, 0640) : -2) }
CALL(old_open64) { int (*const call)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_DEFAULT, "__open64"); OPEN_ALL(call ? call(name, flags, 0640) : -2) }
CALL(creat) { UNUSED; use_descriptor("creat", creat(name, 0604)); }
CALL(creat64) { UNUSED; use_descriptor("creat64", creat64(name, 0604)); }
CALL(open_with_dots) { OPEN_ALL(({ char path[PATH_MAX]; snprintf(path, sizeof path, ".//./../%s/%s", strrchr(case_name, ' ') + 1, name); open(path, flags, 0640); })) }
CALL(open_absolute) { OPEN_ALL(({ char path[2 * PATH_MAX], cwd[PATH_MAX]; snprintf(path, sizeof path, "%s/%s", getcwd(cwd, sizeof cwd), name); errno = untouched; open(path, flags, 0640); })) }
CALL(open_with_slash) { OPEN_ALL(({ char path[PATH_MAX]; snprintf(path, sizeof path, "%s/", name); open(path, flags & ~O_CREAT, 0640); })) }

static const char* const modes[] = {"r", "r+", "w", "w+", "a", "a+", "wx", "rb", "wb+", "we", "a,ccs=UTF-8", "q", ""};

static void use_stream(const char* mode, FILE* stream) {
  char what[32], text[64] = "";
  snprintf(what, sizeof what, "mode %s", mode);
  show(what, stream != NULL);
  if (!stream) return;
  errno = untouched;
  show("descriptor", fileno(stream));
  fputs("new", stream);
  rewind(stream);
  show_text("text", fgets(text, sizeof text, stream));
  errno = untouched;
  fclose(stream);
  errno = untouched;
}

#define FOPEN_ALL(expression)                                  \
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {  \
    const char* const mode = modes[i];                         \
    if (i > 0) again(name, state);                             \
    errno = untouched;                                         \
    use_stream(mode, expression);                              \
  }

static FILE* other_stream(void) {
  FILE* const stream = fopen("other", "w");
  if (!stream) abort();
  errno = untouched;
  return stream;
}

CALL(fopen) { FOPEN_ALL(fopen(name, mode)) }
CALL(fopen64) { FOPEN_ALL(fopen64(name, mode)) }
CALL(freopen) { FOPEN_ALL(freopen(name, mode, other_stream())) }
CALL(freopen64) { FOPEN_ALL(freopen64(name, mode, other_stream())) }

CALL(stat) { UNUSED; struct stat s; const int r = stat(name, &s); show_stat("stat", r, &s); }
CALL(stat64) { UNUSED; struct stat64 s; const int r = stat64(name, &s); show_stat("stat64", r, (struct stat*)&s); }
CALL(lstat) { UNUSED; struct stat s; const int r = lstat(name, &s); show_stat("lstat", r, &s); }
CALL(lstat64) { UNUSED; struct stat64 s; const int r = lstat64(name, &s); show_stat("lstat64", r, (struct stat*)&s); }
CALL(fstatat) {
  UNUSED; struct stat s;
  int r = fstatat(here, name, &s, 0); show_stat("fstatat", r, &s);
  r = fstatat(here, name, &s, AT_SYMLINK_NOFOLLOW); show_stat("of link", r, &s);
  r = fstatat(here, "", &s, AT_EMPTY_PATH); show_stat("empty", r, &s);
  r = fstatat(-1, name, &s, 0); show_stat("wrong directory", r, &s);
}
CALL(fstatat64) { UNUSED; struct stat64 s; const int r = fstatat64(AT_FDCWD, name, &s, 0); show_stat("fstatat64", r, (struct stat*)&s); }
CALL(statx) {
  UNUSED; struct statx s;
  const int r = statx(here, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &s);
  show("statx", r);
  if (r == 0) show(kind_of(s.stx_mode), S_ISREG(s.stx_mode) ? (long)s.stx_size : 0);
}
CALL(old_stat) {
  UNUSED; struct stat s;
  int (*const x)(int, const char*, struct stat*) = (int (*)(int, const char*, struct stat*))dlsym(RTLD_DEFAULT, "__xstat");
  int (*const l)(int, const char*, struct stat*) = (int (*)(int, const char*, struct stat*))dlsym(RTLD_DEFAULT, "__lxstat64");
  int (*const f)(int, int, const char*, struct stat*, int) = (int (*)(int, int, const char*, struct stat*, int))dlsym(RTLD_DEFAULT, "__fxstatat");
  errno = untouched;
  if (x) { const int r = x(1, name, &s); show_stat("__xstat", r, &s); }
  if (l) { const int r = l(1, name, &s); show_stat("__lxstat64", r, &s); }
  if (f) { const int r = f(1, here, name, &s, 0); show_stat("__fxstatat", r, &s); }
}
CALL(access) {
  UNUSED;
  show("exists", access(name, F_OK)); show("read", access(name, R_OK)); show("write", access(name, W_OK)); show("run", access(name, X_OK));
  show("effective", euidaccess(name, R_OK)); show("eaccess", eaccess(name, X_OK)); show("at", faccessat(here, name, W_OK, 0));
  show("at link", faccessat(here, name, F_OK, AT_SYMLINK_NOFOLLOW));
}
CALL(truncate) { UNUSED; show("truncate", truncate(name, 2)); show("longer", truncate64(name, 5)); show("negative", truncate(name, -1)); }
CALL(unlink) { UNUSED; show("unlink", unlink(name)); show("twice", unlink(name)); }
CALL(unlinkat) { UNUSED; show("unlinkat", unlinkat(here, name, 0)); show("directory", unlinkat(here, name, AT_REMOVEDIR)); }
CALL(remove) { UNUSED; show("remove", remove(name)); show("twice", remove(name)); }
CALL(rmdir) { UNUSED; show("rmdir", rmdir(name)); }
CALL(unlink_and_create) { UNUSED; show("unlink", unlink(name)); use_descriptor("new", open(name, O_RDWR | O_CREAT | O_EXCL, 0600)); }
CALL(mkdir) { UNUSED; show("mkdir", mkdir(name, 0750)); show("twice", mkdir(name, 0750)); }
CALL(mkdirat) { UNUSED; show("mkdirat", mkdirat(here, name, 0750)); }
CALL(mkfifo) { UNUSED; show("mkfifo", mkfifo(name, 0600)); show("mknod", mknod(name, S_IFREG | 0600, 0)); }
CALL(mkfifoat) { UNUSED; show("mkfifoat", mkfifoat(here, name, 0600)); show("mknodat", mknodat(here, name, S_IFREG | 0600, 0)); }
CALL(mknod) { UNUSED; show("mknod", mknod(name, S_IFREG | 0600, 0)); show("mkfifoat", mkfifoat(AT_FDCWD, name, 0600)); }
CALL(mknodat) { UNUSED; show("mknodat", mknodat(here, name, S_IFIFO | 0600, 0)); }
CALL(old_mknod) {
  UNUSED; dev_t device = 0;
  int (*const plain)(int, const char*, mode_t, dev_t*) = (int (*)(int, const char*, mode_t, dev_t*))dlsym(RTLD_DEFAULT, "__xmknod");
  int (*const at)(int, int, const char*, mode_t, dev_t*) = (int (*)(int, int, const char*, mode_t, dev_t*))dlsym(RTLD_DEFAULT, "__xmknodat");
  errno = untouched;
  if (plain) show("__xmknod", plain(0, name, S_IFREG | 0600, &device));
  unlink(name);
  errno = untouched;
  if (at) show("__xmknodat", at(0, here, name, S_IFIFO | 0600, &device));
}
CALL(chmod) { UNUSED; show("chmod", chmod(name, 0600)); show("at", fchmodat(here, name, 0604, 0)); show("of link", lchmod(name, 0620)); }
CALL(chown) {
  UNUSED;
  show("chown", chown(name, getuid(), getgid())); show("lchown", lchown(name, (uid_t)-1, (gid_t)-1));
  show("at", fchownat(here, name, getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
}
CALL(times) {
  UNUSED; struct stat s;
  const struct timespec n[2] = {{1000, 1}, {2000, 2}};
  const struct timeval u[2] = {{3000, 0}, {4000, 0}};
  const struct utimbuf b = {5000, 6000};
  show("utimensat", utimensat(here, name, n, 0)); if (stat(name, &s) == 0) show("time", s.st_mtim.tv_sec);
  errno = untouched;
  show("utimes", utimes(name, u)); if (stat(name, &s) == 0) show("time", s.st_mtim.tv_sec);
  errno = untouched;
  show("utime", utime(name, &b)); if (stat(name, &s) == 0) show("time", s.st_mtim.tv_sec);
  errno = untouched;
  show("lutimes", lutimes(name, u));
  show("futimesat", futimesat(here, name, u)); if (stat(name, &s) == 0) show("time", s.st_mtim.tv_sec);
}
CALL(readlink) {
  UNUSED; char text[64] = "";
  show("readlink", readlink(name, text, sizeof text - 1)); show_text("text", text);
  show("at", readlinkat(here, name, text, 3)); show_text("text", text);
}
CALL(symlink) { UNUSED; show("symlink", symlink("other", name)); show("at", symlinkat("other", here, name)); }
CALL(link_to_it) {
  UNUSED;
  show("symlink", symlink(name, "to_it"));
  use_descriptor("through it", open("to_it", O_RDONLY));
}
CALL(realpath) {
  UNUSED; char out[PATH_MAX];
  char* const got = realpath(name, out);
  errno = untouched; show_text("realpath", got ? strrchr(got, '/') : NULL);
  char* const made = realpath(name, NULL);
  errno = untouched; show_text("allocated", made ? strrchr(made, '/') : NULL);
  free(made);
  char* const canonical = canonicalize_file_name(name);
  errno = untouched; show_text("canonicalize", canonical ? strrchr(canonical, '/') : NULL);
  free(canonical);
}
CALL(opendir) {
  UNUSED;
  DIR* const directory = opendir(name);
  show("opendir", directory != NULL);
  if (directory) { list_by_readdir(directory, "readdir of it"); errno = untouched; show("closedir", closedir(directory)); }
  struct dirent** found = NULL;
  const int count = scandirat(here, name, &found, is_no_dot, alphasort);
  show("scandirat", count);
  for (int i = 0; i < count; ++i) { show_text("has", found[i]->d_name); free(found[i]); }
  free(found);
  struct dirent64** wide = NULL;
  const int wide_count = scandirat64(here, name, &wide, NULL, alphasort64);
  show("scandirat64", wide_count);
  for (int i = 0; i < wide_count; ++i) { show_text("has", wide[i]->d_name); free(wide[i]); }
  free(wide);
}
CALL(glob_below) {
  UNUSED; glob_t found; char pattern[PATH_MAX];
  snprintf(pattern, sizeof pattern, "%s*/ck*", name);
  const int r = glob(pattern, 0, NULL, &found);
  errno = untouched;
  show("glob", r);
  for (size_t i = 0; r == 0 && i < found.gl_pathc; ++i) show_text("found", found.gl_pathv[i]);
  globfree(&found);
}
static char* walked[64];
static int walked_count, walked_answer;
static int note_walk(const char* path, const struct stat* state, int type, int base, int level) {
  if (walked_count < 64 && asprintf(&walked[walked_count], "%s:%d:%d:%d:%ld", path, type, base, level, type == FTW_F ? (long)state->st_size : 0) > 0)
    ++walked_count;
  return strstr(path, "ckpt.7") ? walked_answer : 0;
}
static int on_nftw(const char* path, const struct stat* state, int type, struct FTW* where) {
  return note_walk(path, state, type, where->base, where->level);
}
static int on_ftw(const char* path, const struct stat* state, int type) { return note_walk(path, state, type, 0, 0); }
static void show_walk(const char* how, long result) {
  if (result >= 0) errno = untouched; /* libc leaves what its own calls have set */
  show(how, result);
  show_names(how, walked, walked_count);
  walked_count = 0;
  errno = untouched;
}
CALL(walk) {
  UNUSED;
  for (walked_answer = 0; walked_answer < 6; walked_answer += 5) {
    show_walk("nftw", nftw(name, on_nftw, 8, 0));
    show_walk("physical", nftw(name, on_nftw, 8, FTW_PHYS | FTW_MOUNT));
    show_walk("depth", nftw(name, on_nftw, 8, FTW_PHYS | FTW_DEPTH));
    show_walk("all", nftw("./", on_nftw, 8, FTW_PHYS));
    show_walk("following", nftw64(".", (__nftw64_func_t)on_nftw, 8, FTW_DEPTH));
    show_walk("ftw", ftw(name, on_ftw, 8));
    show_walk("ftw64", ftw64(".", (__ftw64_func_t)on_ftw, 8));
  }
  walked_answer = FTW_STOP;
  show_walk("stop", nftw(".", on_nftw, 8, FTW_PHYS | FTW_ACTIONRETVAL));
  walked_answer = FTW_SKIP_SUBTREE;
  show_walk("skip", nftw(".", on_nftw, 8, FTW_PHYS | FTW_ACTIONRETVAL));
}
CALL(chdir) {
  UNUSED;
  const int changed = chdir(name);
  show("chdir", changed);
  if (changed == 0) { use_descriptor("below", open("ckpt.7", O_RDWR)); use_descriptor("new", open("ckpt.8", O_RDWR | O_CREAT, 0600)); unlink("ckpt.8"); }
  errno = untouched;
  show("fchdir", fchdir(here));
  use_descriptor("back", open(name, O_RDONLY));
}
CALL(statvfs) { UNUSED; struct statvfs s; show("statvfs", statvfs(name, &s)); show("pathconf", pathconf(name, _PC_NAME_MAX)); }
CALL(dup) {
  UNUSED;
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  show("open", file);
  if (file < 0) return;
  const int copy = dup2(file, 50);
  close(file);
  errno = untouched;
  show("write", write(copy, "copy", 4));
  show("close", close(copy));
}
CALL(fork) {
  UNUSED;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    _exit(file >= 0 && write(file, "child", 5) == 5 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  errno = untouched;
  show("child", WEXITSTATUS(status));
}
CALL(exec) {
  UNUSED; char command[PATH_MAX];
  snprintf(command, sizeof command, "cat %s 2>/dev/null; echo more 2>/dev/null >>%s; ls", name, name);
  fflush(stdout);
  const int status = system(command);
  errno = untouched;
  show("system", status);
}
CALL(read_after_unlink) {
  UNUSED; char text[32] = "";
  const int file = open(name, O_RDONLY);
  unlink(name);
  errno = untouched;
  show("read", file < 0 ? -1 : read(file, text, sizeof text - 1));
  show_text("text", text);
  if (file >= 0) close(file);
}
CALL(tmpfile_linked) {
  UNUSED; char path[64];
  const int file = open(".", O_TMPFILE | O_RDWR, 0600);
  if (file < 0) return;
  if (write(file, "anonymous", 9) != 9) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  errno = untouched;
  show("linkat", linkat(AT_FDCWD, path, here, name, AT_SYMLINK_FOLLOW));
  close(file);
}
CALL(mkstemp) {
  UNUSED; char path[] = "ckpt.XXXXXX";
  const int file = mkstemp(path);
  errno = untouched;
  show("mkstemp", file);
  show("rename", rename(path, name));
  show("write", write(file, "after", 5));
  close(file);
  unlink(path);
}
CALL(write_and_rename) {
  UNUSED;
  write_as_program("temporary", "temporary's");
  errno = untouched;
  show("rename", rename("temporary", name));
}

/* ---- the calls with two paths ---- */

#define PAIR(name_of_call) static void call_##name_of_call(const char* name, const char* other)
PAIR(rename) { show("rename", rename(name, other)); }
PAIR(renameat) { show("renameat", renameat(here, name, AT_FDCWD, other)); }
PAIR(renameat2) { show("renameat2", renameat2(here, name, here, other, 0)); }
PAIR(rename_noreplace) { show("noreplace", renameat2(AT_FDCWD, name, AT_FDCWD, other, RENAME_NOREPLACE)); }
PAIR(rename_exchange) { show("exchange", renameat2(AT_FDCWD, name, AT_FDCWD, other, RENAME_EXCHANGE)); }
PAIR(link) { show("link", link(name, other)); }
PAIR(linkat) { show("linkat", linkat(here, name, AT_FDCWD, other, AT_SYMLINK_FOLLOW)); }

/* ---- the tables ---- */

#define ROW(name) {#name, call_##name}
static const struct { const char* name; void (*run)(const char*, enum State); } singles[] = {
    ROW(open), ROW(open64), ROW(openat), ROW(openat64), ROW(openat2), ROW(fortified_open), ROW(fortified_open64),
    ROW(fortified_openat), ROW(fortified_openat64), ROW(old_open), ROW(old_open64), ROW(creat), ROW(creat64), ROW(open_with_dots), ROW(open_absolute),
    ROW(open_with_slash), ROW(fopen), ROW(fopen64), ROW(freopen), ROW(freopen64), ROW(stat), ROW(stat64), ROW(lstat),
    ROW(lstat64), ROW(fstatat), ROW(fstatat64), ROW(statx), ROW(old_stat), ROW(access), ROW(truncate), ROW(unlink),
    ROW(unlinkat), ROW(remove), ROW(rmdir), ROW(unlink_and_create), ROW(mkdir), ROW(mkdirat), ROW(mkfifo), ROW(mkfifoat), ROW(mknod), ROW(mknodat), ROW(old_mknod), ROW(chmod),
    ROW(chown), ROW(times), ROW(readlink), ROW(symlink), ROW(link_to_it), ROW(realpath), ROW(opendir), ROW(glob_below), ROW(walk),
    ROW(chdir), ROW(statvfs), ROW(dup), ROW(fork), ROW(exec), ROW(read_after_unlink), ROW(tmpfile_linked), ROW(mkstemp),
    ROW(write_and_rename)};
static const struct { const char* name; void (*run)(const char*, const char*); } pairs[] = {
    ROW(rename), ROW(renameat), ROW(renameat2), ROW(rename_noreplace), ROW(rename_exchange), ROW(link), ROW(linkat)};
static const char* const names[] = {"ckpt.1", "plain.1"};
static const char* const others[] = {"ckpt.2", "plain.2"};

static void in_new_directory(const char* root, int number) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%d", root, number);
  if (mkdir(path, 0755) != 0 || chdir(path) != 0) abort();
  here = open(".", O_RDONLY | O_DIRECTORY);
  if (here != 3) abort();
}

static void name_case(const char* name, enum State state, const char* other, enum State other_state, int number) {
  if (other)
    snprintf(case_name, sizeof case_name, "%s (%s) %s (%s) %d", name, state_names[state], other, state_names[other_state], number);
  else
    snprintf(case_name, sizeof case_name, "%s (%s) %d", name, state_names[state], number);
}

static void finish_case(const char* root) {
  show_directory();
  close(here);
  if (chdir(root) != 0) abort();
}

static void run_single(const char* root, size_t call, const char* name, enum State state, int number) {
  in_new_directory(root, number);
  call_name = singles[call].name;
  name_case(name, state, NULL, ABSENT, number);
  char below[64];
  snprintf(below, sizeof below, "missing/%s", name);
  make_state(name, state);
  errno = untouched;
  singles[call].run(state == NO_PARENT ? below : name, state);
  finish_case(root);
}

static void run_pair(const char* root, size_t call, int kinds, enum State state, enum State other_state, int number) {
  const char* const name = names[kinds % 2];
  const char* const other = others[kinds / 2];
  char below[64];
  snprintf(below, sizeof below, "missing/%s", other);
  in_new_directory(root, number);
  call_name = pairs[call].name;
  name_case(name, state, other, other_state, number);
  make_state(name, state);
  make_state(other, other_state);
  errno = untouched;
  pairs[call].run(name, other_state == NO_PARENT ? below : other);
  finish_case(root);
}

int main(int argc, char** argv) {
  const char* const only = argc > 2 ? argv[2] : "";
  int number = 0;
  umask(022);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  for (size_t call = 0; call < sizeof singles / sizeof *singles; ++call) {
    if (*only && strcmp(only, singles[call].name) != 0) continue;
    for (int kind = 0; kind < 2; ++kind)
      for (int state = 0; state < STATES; ++state) run_single(argv[1], call, names[kind], (enum State)state, ++number);
  }
  for (size_t call = 0; call < sizeof pairs / sizeof *pairs; ++call) {
    if (*only && strcmp(only, pairs[call].name) != 0) continue;
    for (int kinds = 0; kinds < 4; ++kinds)
      for (int state = 0; state < NO_PARENT; ++state)
        for (int other = 0; other < STATES; ++other)
          run_pair(argv[1], call, kinds, (enum State)state, (enum State)other, ++number);
  }
  return 0;
}
