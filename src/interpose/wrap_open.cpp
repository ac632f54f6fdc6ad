// The wrapped calls that open files. Their descriptors are those of the real files.
#include <stdarg.h>
#include <stdio.h>

#include <new>
#include <optional>
#include <type_traits>

#include "interpose/job.hpp"
#include "interpose/next_call.hpp"
#include "interpose/opening.hpp"

// Older or fortified programs call these; libc declares them only for its own headers.
extern "C" {
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
}

namespace cairn::interpose {
namespace {

int number_of(int descriptor) { return descriptor; }
int number_of(FILE* file) { return fileno(file); }
bool has_failed(int descriptor) { return descriptor < 0; }
bool has_failed(const FILE* file) { return file == nullptr; }
void close_again(int descriptor) { kernel::close(descriptor); }
void close_again(FILE* file) { CAIRN_NEXT(fclose)(file); }

/// A file that was moved to its plain place while the call waited for it is deleted: what is
/// written to it would be lost.
bool is_deleted(int descriptor) {
  struct stat state;
  return kernel::stat_of(descriptor, state) == 0 && state.st_nlink == 0;
}

/// Makes the directories of the cache for a new file. False if the file has to stay in its plain
/// place.
bool prepare(Process& here, const Located& file) {
  int error = ENOMEM;
  try {
    error = make_parents(here.files(), file.place());
  } catch (const std::bad_alloc&) {
    // The file then stays in its plain place.
  }
  static std::atomic<bool> once{false};
  if (error != 0)
    here.say(once, file.name(), "the cache takes no new file; it is written to its plain place");
  return error == 0;
}

/// The group that a new file would have in its plain place, if not that of the process: a directory
/// can give its own.
gid_t group_of_new(const Located& file) {
  if (file.is_plain_there()) return file.plain().st_gid;
  struct stat parent;
  const bool gives_group =
      kernel::stat_at(file.parent(), ".", parent) == 0 && (parent.st_mode & S_ISGID) != 0;
  return gives_group ? parent.st_gid : static_cast<gid_t>(-1);
}

/// A new file in the cache looks like one in the plain place; a file that replaces another keeps
/// its rights.
void take_rights(const Located& file, gid_t group, int descriptor) {
  if (group != static_cast<gid_t>(-1)) syscall(SYS_fchown, descriptor, -1, group);
  if (file.is_plain_there()) syscall(SYS_fchmod, descriptor, file.plain().st_mode & 07777);
}

void report_no_room(Process& here, const Located& file) {
  if (!here.takes_new_steps()) return;  // another line has said so
  static std::atomic<bool> once{false};
  here.say(once, file.name(), "the cache is almost full; files are written to their plain places");
}

enum class Next : unsigned char { done, plain, again };

/// Whether the call changes the file, or hands out a descriptor that can.
bool may_change(int flags) {
  return (flags & O_PATH) == 0 && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
}

/// A call that the kernel refuses, as far as that can be foreseen, does not change a file.
bool changes(const Located& file, int flags) {
  const KeptErrno kept;
  const bool is_new = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  const int wanted = (flags & O_ACCMODE) == O_RDWR ? R_OK | W_OK : W_OK;
  return may_change(flags) && !is_new && !file.names_directory() && (flags & O_DIRECTORY) == 0 &&
         kernel::may_access(AT_FDCWD, file.place(), wanted);
}

/// One attempt in the cache.
template <class Result, class With>
Next open_in_cache(Process& here, Located& file, int flags, Opened opened, NewBeginning& beginning,
                   const With& with, Result& result) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const mode_t mode = file.plain().st_mode & 07777;
  if (opened == Opened::created && !prepare(here, file)) return Next::plain;
  std::optional<Change> change;
  if (opened == Opened::redirected && changes(file, flags)) {
    const Content content = NewBeginning::content_after(flags);
    change.emplace(here, file, content, beginning.once(content));
  }
  const gid_t group = group_of_new(file);
  file.close_parent();
  if (file.names_directory()) file.spell_as_directory();
  result = with(AT_FDCWD, file.place(), opened == Opened::created ? O_CREAT : 0, mode);
  if (has_failed(result)) {
    // It was moved, or an empty directory of the cache was removed.
    if (errno == ENOENT) {
      if (change) note_removed(here, file);
      return Next::again;
    }
    if (opened == Opened::redirected) return Next::done;
    static std::atomic<bool> once{false};
    if (!is_trouble_of_cache(errno)) return errno == EINVAL ? Next::plain : Next::done;
    here.say(once, file.name(), "the cache takes no new file; it is written to its plain place");
    return Next::plain;
  }
  // A file that the call has emptied has changed already: the job takes that checkpoint back.
  const bool is_outrun = change && (flags & O_TRUNC) == 0 && change->is_outrun(number_of(result));
  if (is_outrun || (writes && is_deleted(number_of(result)))) {
    close_again(result);
    return Next::again;
  }
  if (opened == Opened::created) take_rights(file, group, number_of(result));
  // A new file begins anew, also where the program has deleted the one before.
  if (writes && !change)
    note_opened(here, file, beginning.flags_once(opened == Opened::created ? O_TRUNC : flags));
  return Next::done;
}

/// `with` gets a directory, a path, flags to add, and the mode for a file that is made although the
/// program did not ask.
template <class With>
__attribute__((noinline)) auto open_checkpoint(Process& here, int directory, const char* path,
                                               const char* call, int flags, const With& with)
    -> decltype(with(0, path, 0, 0)) {
  const int saved = errno;
  NewBeginning beginning;
  for (int attempt = 0; attempt < attempts_most; ++attempt) {
    Located file(here, directory, path);
    const Opened opened = decide_open(here, file, flags);
    if (here.is_dry_run()) log_open(here, file, call, flags, opened);
    if (opened == Opened::no_room) report_no_room(here, file);
    if (here.is_dry_run() || (opened != Opened::redirected && opened != Opened::created)) break;
    decltype(with(0, path, 0, 0)) result{};
    const Next next = open_in_cache(here, file, flags, opened, beginning, with, result);
    if (next == Next::plain) break;
    if (next == Next::again) continue;
    if (!has_failed(result)) errno = saved;
    return result;
  }
  errno = saved;
  const auto result = with(directory, path, 0, 0);
  if (!has_failed(result) && (flags & O_ACCMODE) != O_RDONLY)
    note_if_plain(here, directory, path, beginning.flags_once(flags));
  return result;
}

template <class With>
auto open_with(int directory, const char* path, const char* call, int flags, const With& with)
    -> decltype(with(0, path, 0, 0)) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_plain(directory, path))
    return with(directory, path, 0, 0);
  const int saved = errno;
  try {
    return open_checkpoint(*here, directory, path, call, flags, with);
  } catch (const std::bad_alloc&) {
    errno = saved;
    return with(directory, path, 0, 0);
  }
}

bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// `next` is the open or openat of the same kind, with a directory.
template <class Open>
int open_as(int directory, const char* path, const char* call, int flags, mode_t mode,
            const Open& next) {
  // Earlier, libc's own call would have to be looked up, and the loader might allocate memory for
  // it.
  if (!has_started()) return kernel::open_at(directory, path, flags, mode);
  return open_with(
      directory, path, call, flags, [&](int at, const char* name, int added, mode_t mode_then) {
        const mode_t wanted = takes_mode(flags) ? mode : mode_then;
        const int file = next(at, name, flags | added, wanted);
        // File systems in memory have no direct input and output.
        const bool tries_again =
            file < 0 && errno == EINVAL && name != path && (flags & O_DIRECT) != 0;
        return tries_again ? next(at, name, (flags & ~O_DIRECT) | added, wanted) : file;
      });
}

int next_open(int directory, const char* path, int flags, mode_t mode) {
  return directory == AT_FDCWD ? CAIRN_NEXT(open)(path, flags, mode)
                               : CAIRN_NEXT(openat)(directory, path, flags, mode);
}

int next_open64(int directory, const char* path, int flags, mode_t mode) {
  return directory == AT_FDCWD ? CAIRN_NEXT(open64)(path, flags, mode)
                               : CAIRN_NEXT(openat64)(directory, path, flags, mode);
}

/// A call of a fortified program ends it, if it needs a mode and has none; that is left to libc.
template <class Fortified, class Open>
int open_fortified(int directory, const char* path, const char* call, int flags,
                   const Fortified& fortified, const Open& next) {
  return takes_mode(flags) ? fortified() : open_as(directory, path, call, flags, 0, next);
}

template <class Open>
FILE* open_file(const char* path, const char* mode, const char* call, const Open& next) {
  const int flags = flags_of_mode(mode);
  if (flags < 0) return next(path);
  return open_with(AT_FDCWD, path, call, flags,
                   [&](int, const char* name, int, mode_t) { return next(name); });
}

/// freopen closes the stream also if it fails, so that there is no second attempt: the file is made
/// before.
template <class Open>
FILE* reopen_file(const char* path, const char* mode, const char* call, const Open& next) {
  const int flags = flags_of_mode(mode);
  Process* const here = process();
  if (here == nullptr || path == nullptr || flags < 0 || here->is_plain(AT_FDCWD, path))
    return next(path);
  const int saved = errno;
  Located file(*here, AT_FDCWD, path);
  Opened opened = decide_open(*here, file, flags);
  if (here->is_dry_run()) log_open(*here, file, call, flags, opened);
  if (!here->is_dry_run() && opened == Opened::created && (flags & O_EXCL) == 0) {
    const Descriptor made(
        prepare(*here, file)
            ? kernel::open_at(AT_FDCWD, file.place(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)
            : -1);
    if (!made.is_open()) opened = Opened::no_room;
    if (made.is_open()) take_rights(file, group_of_new(file), made.number());
  }
  std::optional<Change> change;
  if (opened == Opened::redirected && changes(file, flags)) {
    const Content content = NewBeginning::content_after(flags);
    change.emplace(*here, file, content, content);
  }
  file.close_parent();
  if (file.is_redirected() && file.names_directory()) file.spell_as_directory();
  errno = saved;
  const bool is_in_cache =
      !here->is_dry_run() && (opened == Opened::redirected || opened == Opened::created);
  FILE* const result = next(is_in_cache ? file.place() : path);
  if (result == nullptr || change || (flags & O_ACCMODE) == O_RDONLY) return result;
  if (is_in_cache)
    note_opened(*here, file, opened == Opened::created ? O_TRUNC : flags);
  else
    note_if_plain(*here, AT_FDCWD, path, flags);
  return result;
}

/// The mode is there only if the flags say so; to read it otherwise is harmless, as all arguments
/// are in registers.
mode_t mode_of(int flags, va_list& arguments) {
  return takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

void resolve_first_calls() {
  CAIRN_NEXT(open);
  CAIRN_NEXT(open64);
  CAIRN_NEXT(openat);
  CAIRN_NEXT(openat64);
  CAIRN_NEXT(chdir);
  CAIRN_NEXT(fchdir);
  CAIRN_NEXT(stat);
  CAIRN_NEXT(access);
  CAIRN_NEXT(unlink);
}

}  // namespace cairn::interpose

using namespace cairn::interpose;  // NOLINT: the calls below are C's

CAIRN_WRAPPED int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as(AT_FDCWD, path, "open", flags, mode, next_open);
}

CAIRN_WRAPPED int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as(AT_FDCWD, path, "open64", flags, mode, next_open64);
}

CAIRN_WRAPPED int __open(const char* path, int flags, ...)
    __attribute__((alias("open"), nonnull(1)));
CAIRN_WRAPPED int __open64(const char* path, int flags, ...)
    __attribute__((alias("open64"), nonnull(1)));

CAIRN_WRAPPED int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as(directory, path, "openat", flags, mode, next_open);
}

CAIRN_WRAPPED int openat64(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as(directory, path, "openat64", flags, mode, next_open64);
}

CAIRN_WRAPPED int creat(const char* path, mode_t mode) {
  return open_as(AT_FDCWD, path, "creat", O_CREAT | O_WRONLY | O_TRUNC, mode, next_open);
}

CAIRN_WRAPPED int creat64(const char* path, mode_t mode) {
  return open_as(AT_FDCWD, path, "creat64", O_CREAT | O_WRONLY | O_TRUNC, mode, next_open64);
}

CAIRN_WRAPPED int __open_2(const char* path, int flags) {
  return open_fortified(
      AT_FDCWD, path, "open", flags, [&] { return CAIRN_NEXT(__open_2)(path, flags); }, next_open);
}

CAIRN_WRAPPED int __open64_2(const char* path, int flags) {
  return open_fortified(
      AT_FDCWD, path, "open64", flags, [&] { return CAIRN_NEXT(__open64_2)(path, flags); },
      next_open64);
}

CAIRN_WRAPPED int __openat_2(int directory, const char* path, int flags) {
  return open_fortified(
      directory, path, "openat", flags,
      [&] { return CAIRN_NEXT(__openat_2)(directory, path, flags); }, next_open);
}

CAIRN_WRAPPED int __openat64_2(int directory, const char* path, int flags) {
  return open_fortified(
      directory, path, "openat64", flags,
      [&] { return CAIRN_NEXT(__openat64_2)(directory, path, flags); }, next_open64);
}

CAIRN_WRAPPED FILE* fopen(const char* path, const char* mode) {
  return open_file(path, mode, "fopen",
                   [&](const char* name) { return CAIRN_NEXT(fopen)(name, mode); });
}

CAIRN_WRAPPED FILE* fopen64(const char* path, const char* mode) {
  return open_file(path, mode, "fopen64",
                   [&](const char* name) { return CAIRN_NEXT(fopen64)(name, mode); });
}

CAIRN_WRAPPED FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return reopen_file(path, mode, "freopen",
                     [&](const char* name) { return CAIRN_NEXT(freopen)(name, mode, stream); });
}

CAIRN_WRAPPED FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return reopen_file(path, mode, "freopen64",
                     [&](const char* name) { return CAIRN_NEXT(freopen64)(name, mode, stream); });
}

namespace {

/// As the kernel declares it; older headers do not.
struct OpenHow {
  unsigned long long flags;
  unsigned long long mode;
  unsigned long long resolve;
};

using OpenAt2 = int(int, const char*, const OpenHow*, std::size_t);

}  // namespace

// libc has it from 2.43 on. A program that makes the system call itself is not seen.
CAIRN_WRAPPED int openat2(int directory, const char* path, const OpenHow* how, std::size_t size) {
  const auto next = [&](int at, const char* name, const OpenHow& with) {
    if (OpenAt2* const of_libc = next_call<OpenAt2, "openat2">())
      return of_libc(at, name, &with, size);
    return static_cast<int>(syscall(SYS_openat2, at, name, &with, size));
  };
  // A lookup that must stay below the directory cannot be served elsewhere.
  if (how == nullptr || size < sizeof(OpenHow) || how->resolve != 0)
    return static_cast<int>(syscall(SYS_openat2, directory, path, how, size));
  const int flags = static_cast<int>(how->flags);
  return open_with(directory, path, "openat2", flags,
                   [&](int at, const char* name, int added, mode_t mode_then) {
                     OpenHow with = *how;
                     with.flags |= static_cast<unsigned>(added);
                     if (added != 0 && !takes_mode(flags)) with.mode = mode_then;
                     return next(at, name, with);
                   });
}
