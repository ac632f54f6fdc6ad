// The wrapped calls that give and take names: rename, unlink, mkdir, rmdir, link, symlink.
#include <stdio.h>

#include <new>
#include <optional>
#include <utility>

#include "interpose/job.hpp"
#include "interpose/located.hpp"
#include "interpose/moving.hpp"
#include "interpose/next_call.hpp"
#include "interpose/opening.hpp"

// mknod of programs that were built with older versions of libc.
extern "C" {
int __xmknod(int version, const char* path, mode_t mode, dev_t* device);
int __xmknodat(int version, int directory, const char* path, mode_t mode, dev_t* device);
}

namespace cairn::interpose {
namespace {

int failed(int error) {
  errno = error;
  return -1;
}

/// A call that could not get memory fails as libc's calls do; no exception reaches the program.
template <class Call>
int without_exception(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM);
  }
}

/// Makes a call again that returns nothing: the job has moved the file to its plain place between
/// the look at it and the call.
template <class Call>
int until_it_stays(const Call& call) {
  const int saved = errno;
  return without_exception([&] {
    for (int attempt = 0; attempt < attempts_most; ++attempt) {
      errno = saved;
      if (const std::optional<int> result = call()) return *result;
    }
    return failed(ENOENT);
  });
}

bool has_left_cache(const Located& file) {
  const KeptErrno kept;
  struct stat state;
  return errno == ENOENT && kernel::stat_at(AT_FDCWD, file.place(), state) != 0;
}

/// After the file has another name, or none, an older version of it in the plain place must not
/// come to light.
void forget_plain(const Located& file) {
  if (file.is_plain_there()) kernel::unlink_at(file.parent(), file.name());
}

void forget_redirected(const Located& file) {
  if (file.is_redirected()) kernel::unlink_at(AT_FDCWD, file.place());
}

/// What rename says of the target, before anything is done. 0 or an errno.
int check_target(const Located& to, unsigned flags) {
  if (to.parent() < 0) return ENOENT;
  if (!to.can_change_parent()) return EACCES;
  if (to.is_directory()) return (flags & RENAME_NOREPLACE) != 0 ? EEXIST : EISDIR;
  return (flags & RENAME_NOREPLACE) != 0 && (to.is_redirected() || to.is_plain_there()) ? EEXIST
                                                                                        : 0;
}

/// Of a file that is in the cache.
int rename_redirected(Process& here, const Located& from, const Located& to, unsigned flags,
                      NewBeginning& target) {
  if (from.names_directory() || (to.names_directory() && !to.is_directory()))
    return failed(ENOTDIR);
  if (!from.can_change_parent()) return failed(EACCES);
  if (const int error = check_target(to, flags); error != 0) return failed(error);
  if (to.is_ours()) {
    if (std::string_view(from.place()) == to.place()) return 0;
    if (const int error = make_parents(here.files(), to.place()); error != 0) return failed(error);
    // First of all: a job that links this name later must not take the new file for the old one.
    const Announcement announced(here, to, target.once(Content::emptied));
    if (kernel::rename_at(AT_FDCWD, from.place(), AT_FDCWD, to.place()) != 0) return failed(errno);
    note_removed(here, from);
  } else {
    const int error = move_file(from.place(), to.parent(), to.name(), Durability::synced);
    static std::atomic<bool> once{false};
    if (error == EBUSY)
      here.say(once, from.name(),
               "cannot be renamed to a name that no pattern matches while it is open");
    if (error != 0) return failed(error);
    note_moved_out(here, from.relative());
  }
  forget_plain(from);
  return 0;
}

/// The file gets the name of a checkpoint: its bytes go to the cache. False if it has to stay.
bool rename_into_cache(Process& here, const Located& from, const Located& to, unsigned flags,
                       NewBeginning& target) {
  const struct stat& state = from.plain();
  if (!from.is_plain_there() || !S_ISREG(state.st_mode) || state.st_nlink > 1) return false;
  if (!from.can_change_parent() || check_target(to, flags) != 0) return false;
  if (!here.has_room_for(to.match().step)) return false;
  if (to.is_plain_there() && (!S_ISREG(to.plain().st_mode) || to.plain().st_nlink > 1))
    return false;
  PathBuffer<PATH_MAX> memory;
  PathText path = memory.text();
  if (!from.canonical(path) || make_parents(here.files(), to.place()) != 0) return false;
  const std::string place = to.place();
  const std::size_t slash = place.rfind('/');
  const Descriptor directory(kernel::open_at(AT_FDCWD, place.substr(0, slash).c_str(),
                                             O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Announcement announced(here, to, target.once(Content::emptied));
  return directory.is_open() && move_file(path.text, directory.number(), place.c_str() + slash + 1,
                                          Durability::not_synced) == 0;
}

/// After a directory has another name: what the cache has of it follows, but for files whose names
/// do not match any more.
void follow_directory(Process& here, const Located& from, const Located& to) {
  if (!from.has_place() || !holds_files(from.place())) return;
  PathBuffer<PATH_MAX> memory;
  PathText plain = memory.text();
  if (!to.canonical(plain)) return;
  std::string place = from.place();
  std::string below;
  // A job knows its files by their names, so they leave it.
  if (here.job() == nullptr && to.has_place() && make_parents(here.files(), to.place()) == 0 &&
      kernel::rename_at(AT_FDCWD, from.place(), AT_FDCWD, to.place()) == 0) {
    place = to.place();
    below = std::string(to.relative()) + "/";
  }
  const auto is_lost = [&](std::string_view name) {
    note_moved_out(here, std::string(from.relative()) + "/" + std::string(name));
    return below.empty() || !here.rules().patterns.find(below + std::string(name));
  };
  const Moved moved = settle(place, plain.text, is_lost);
  static std::atomic<bool> once{false};
  if (moved.failed + moved.busy > 0)
    here.say(once, plain.text,
             ("some files of this renamed directory stay in the cache, in " + place).c_str());
}

template <class With>
int rename_plain(Process& here, const Located& from, const Located& to, unsigned flags,
                 const With& with) {
  const int saved = errno;
  if (flags == 0 && from.is_directory() && to.has_place() && to.is_directory() &&
      holds_files(to.place()))
    return failed(ENOTEMPTY);
  errno = saved;
  const int result = with();
  if (result != 0) return result;
  const KeptErrno kept;
  if (from.is_directory()) {
    follow_directory(here, from, to);
  } else {
    forget_redirected(to);
  }
  return result;
}

template <class With>
__attribute__((noinline)) std::optional<int> rename_checkpoint(
    Process& here, int from_directory, const char* from_path, int to_directory, const char* to_path,
    unsigned flags, NewBeginning& target, const char* call, const With& with) {
  const int saved = errno;
  const Located from(here, from_directory, from_path);
  const Located to(here, to_directory, to_path);
  errno = saved;
  const auto rename_plainly = [&] {
    const int result = with();
    // It may be the working directory, or one above it.
    if (result == 0 && (from.is_directory() || to.is_directory()))
      here.working_directory().forget();
    return result;
  };
  if (here.is_dry_run()) {
    const int result = rename_plainly();
    if (result == 0) log_change(here, from, call, &to);
    return result;
  }
  if (from.kind() == Kind::outside && to.kind() == Kind::outside) return with();
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0) {
    if (from.is_redirected()) settle_file(here, from);
    if (to.is_redirected()) settle_file(here, to);
    settle_directory(here, from);
    settle_directory(here, to);
    errno = saved;
    return rename_plainly();
  }
  if (from.is_redirected()) {
    const int result = rename_redirected(here, from, to, flags, target);
    if (result != 0 && has_left_cache(from)) return std::nullopt;
    if (result == 0) errno = saved;
    return result;
  }
  if (to.is_redirected() && (flags & RENAME_NOREPLACE) != 0 && from.is_plain_there())
    return failed(EEXIST);
  if (to.is_redirected() && from.is_directory()) return failed(ENOTDIR);
  if (to.is_ours() && rename_into_cache(here, from, to, flags, target)) {
    errno = saved;
    return 0;
  }
  errno = saved;
  const int result = rename_plain(here, from, to, flags, rename_plainly);
  if (result == 0 && to.kind() == Kind::matched)
    note_if_plain(here, to_directory, to_path, target.flags_once(O_TRUNC));
  return result;
}

template <class With>
int rename_as(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags, const char* call, const With& with) {
  Process* const here = process();
  if (here == nullptr || from == nullptr || to == nullptr) return with();
  NewBeginning target;
  return until_it_stays([&] {
    return rename_checkpoint(*here, from_directory, from, to_directory, to, flags, target, call,
                             with);
  });
}

template <class With>
__attribute__((noinline)) std::optional<int> unlink_checkpoint(Process& here, int directory,
                                                               const char* path, const char* call,
                                                               const With& with) {
  const int saved = errno;
  const Located file(here, directory, path);
  errno = saved;
  if (here.is_dry_run()) log_change(here, file, call, nullptr);
  if (!file.is_redirected()) return with();
  if (file.names_directory()) return failed(ENOTDIR);
  if (!file.can_change_parent()) return failed(EACCES);
  // The plain one first: if that fails, both stay.
  if (file.is_plain_there() && with() != 0) return -1;
  if (kernel::unlink_at(AT_FDCWD, file.place()) != 0)
    return has_left_cache(file) ? std::nullopt : std::optional(-1);
  note_removed(here, file);
  errno = saved;
  return 0;
}

template <class With>
int unlink_as(int directory, const char* path, const char* call, const With& with) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_plain(directory, path)) return with();
  return until_it_stays([&] { return unlink_checkpoint(*here, directory, path, call, with); });
}

template <class With>
int remove_directory_as(int directory, const char* path, const With& with) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_dry_run()) return with();
  return without_exception([&] {
    const int saved = errno;
    const Located file(*here, directory, path);
    errno = saved;
    if (!file.has_place() || !file.is_directory())
      return file.is_redirected() ? failed(ENOTDIR) : with();
    if (holds_files(file.place())) return failed(ENOTEMPTY);
    errno = saved;
    const int result = with();
    const KeptErrno kept;
    if (result == 0) remove_empty_directories(file.place(), true);
    return result;
  });
}

/// A directory, node or link takes no name that a redirected file has.
template <class With>
int make_as(int directory, const char* path, const With& with) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_dry_run() || here->is_plain(directory, path))
    return with();
  const int saved = errno;
  const Located file(*here, directory, path);
  errno = saved;
  if (file.is_redirected()) return failed(EEXIST);
  const int result = with();
  if (result == 0) note_if_plain(*here, directory, path, O_TRUNC);
  return result;
}

/// Calls `use` with the target of a symbolic link.
template <class Use>
void with_target(Process& here, const char* target, int directory, const char* path,
                 const Use& use) {
  const KeptErrno kept;
  PathBuffer<PATH_MAX> memory;
  PathText whole = memory.text();
  const std::string_view link(path);
  const std::size_t slash = link.rfind('/');
  const bool is_absolute = target[0] == '/';
  if (!is_absolute && slash != std::string_view::npos && !whole.assign(link.substr(0, slash + 1)))
    return;
  if (!whole.append(target)) return;
  use(Located(here, is_absolute ? AT_FDCWD : directory, whole.text));
}

/// A symbolic link has to find its target without this library: so the target gets its plain place.
void settle_target(Process& here, const Located& target) {
  if (target.is_redirected()) settle_file(here, target);
  settle_directory(here, target);
}

template <class With>
int make_symbolic_link_as(const char* target, int directory, const char* path, const With& with) {
  return make_as(directory, path, [&] {
    const int result = with();
    Process* const here = process();
    if (result != 0 || here == nullptr || target == nullptr || target[0] == '\0') return result;
    try {
      with_target(*here, target, directory, path, [&](const Located& file) {
        if (!here->is_dry_run()) return settle_target(*here, file);
        const Located link(*here, directory, path);
        log_change(*here, file, "symlink", &link);
      });
    } catch (const std::bad_alloc&) {
      // The link finds its target when that is moved.
    }
    return result;
  });
}

/// The source of linkat, by its flags.
bool exists(int directory, const char* path, int flags) {
  const KeptErrno kept;
  struct stat state;
  const int follow = (flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW;
  return kernel::stat_at(directory, path, state, follow | (flags & AT_EMPTY_PATH)) == 0;
}

template <class With>
__attribute__((noinline)) int link_checkpoint(Process& here, int from_directory,
                                              const char* from_path, int to_directory,
                                              const char* to_path, int flags, const With& with) {
  const int saved = errno;
  const Located from(here, from_directory, from_path);
  const Located to(here, to_directory, to_path);
  errno = saved;
  if (to.is_redirected() && (from.is_redirected() || exists(from_directory, from_path, flags)))
    return failed(EEXIST);
  if (from.is_redirected() && from.names_directory()) return failed(ENOTDIR);
  const auto link_plainly = [&] {
    const int result = with();
    if (result == 0 && to.kind() == Kind::matched)
      note_if_plain(here, to_directory, to_path, O_TRUNC);
    return result;
  };
  if (!from.is_redirected()) return link_plainly();
  // A second name means to a job that the file is a part of a checkpoint.
  if (to.is_ours() && !to.is_plain_there() && !here.keeps_checkpoints()) {
    if (!to.can_change_parent()) return failed(EACCES);
    int error = make_parents(here.files(), to.place());
    if (error == 0 && kernel::link_at(AT_FDCWD, from.place(), AT_FDCWD, to.place()) != 0)
      error = errno;
    errno = saved;
    if (error == 0) return 0;
  }
  if (const int error = settle_file(here, from); error != 0) return failed(error);
  errno = saved;
  return link_plainly();
}

template <class With>
int link_in_dry_run(Process& here, int from_directory, const char* from_path, int to_directory,
                    const char* to_path, const With& with) {
  const int result = with();
  if (result != 0) return result;
  const Located from(here, from_directory, from_path);
  const Located to(here, to_directory, to_path);
  return without_exception([&] {
    log_change(here, from, "link", &to);
    return result;
  });
}

template <class With>
int link_as(int from_directory, const char* from, int to_directory, const char* to, int flags,
            const With& with) {
  Process* const here = process();
  if (here == nullptr || from == nullptr || to == nullptr) return with();
  if (here->is_dry_run())
    return link_in_dry_run(*here, from_directory, from, to_directory, to, with);
  if (here->is_plain(from_directory, from) && here->is_plain(to_directory, to)) return with();
  return without_exception(
      [&] { return link_checkpoint(*here, from_directory, from, to_directory, to, flags, with); });
}

bool is_directory(const char* path) {
  const KeptErrno kept;
  struct stat state;
  return path != nullptr && kernel::stat_at(AT_FDCWD, path, state) == 0 && S_ISDIR(state.st_mode);
}

}  // namespace
}  // namespace cairn::interpose

using namespace cairn::interpose;  // NOLINT: the calls below are C's

CAIRN_WRAPPED int rename(const char* from, const char* to) noexcept {
  return rename_as(AT_FDCWD, from, AT_FDCWD, to, 0, "rename",
                   [&] { return CAIRN_NEXT(rename)(from, to); });
}

CAIRN_WRAPPED int renameat(int from_directory, const char* from, int to_directory,
                           const char* to) noexcept {
  return rename_as(from_directory, from, to_directory, to, 0, "renameat",
                   [&] { return CAIRN_NEXT(renameat)(from_directory, from, to_directory, to); });
}

CAIRN_WRAPPED int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                            unsigned flags) noexcept {
  return rename_as(from_directory, from, to_directory, to, flags, "renameat2", [&] {
    return CAIRN_NEXT(renameat2)(from_directory, from, to_directory, to, flags);
  });
}

CAIRN_WRAPPED int unlink(const char* path) noexcept {
  return unlink_as(AT_FDCWD, path, "unlink", [&] { return CAIRN_NEXT(unlink)(path); });
}

CAIRN_WRAPPED int unlinkat(int directory, const char* path, int flags) noexcept {
  const auto next = [&] { return CAIRN_NEXT(unlinkat)(directory, path, flags); };
  return (flags & AT_REMOVEDIR) != 0 ? remove_directory_as(directory, path, next)
                                     : unlink_as(directory, path, "unlinkat", next);
}

CAIRN_WRAPPED int remove(const char* path) noexcept {
  const auto next = [&] { return CAIRN_NEXT(remove)(path); };
  if (process() == nullptr) return next();
  return is_directory(path) ? remove_directory_as(AT_FDCWD, path, next)
                            : unlink_as(AT_FDCWD, path, "remove", next);
}

CAIRN_WRAPPED int rmdir(const char* path) noexcept {
  return remove_directory_as(AT_FDCWD, path, [&] { return CAIRN_NEXT(rmdir)(path); });
}

CAIRN_WRAPPED int mkdir(const char* path, mode_t mode) noexcept {
  return make_as(AT_FDCWD, path, [&] { return CAIRN_NEXT(mkdir)(path, mode); });
}

CAIRN_WRAPPED int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return make_as(directory, path, [&] { return CAIRN_NEXT(mkdirat)(directory, path, mode); });
}

CAIRN_WRAPPED int mkfifo(const char* path, mode_t mode) noexcept {
  return make_as(AT_FDCWD, path, [&] { return CAIRN_NEXT(mkfifo)(path, mode); });
}

CAIRN_WRAPPED int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return make_as(AT_FDCWD, path, [&] { return CAIRN_NEXT(mknod)(path, mode, device); });
}

CAIRN_WRAPPED int mkfifoat(int directory, const char* path, mode_t mode) noexcept {
  return make_as(directory, path, [&] { return CAIRN_NEXT(mkfifoat)(directory, path, mode); });
}

CAIRN_WRAPPED int mknodat(int directory, const char* path, mode_t mode, dev_t device) noexcept {
  return make_as(directory, path,
                 [&] { return CAIRN_NEXT(mknodat)(directory, path, mode, device); });
}

CAIRN_WRAPPED int __xmknod(int version, const char* path, mode_t mode, dev_t* device) {
  return make_as(AT_FDCWD, path, [&] { return CAIRN_NEXT(__xmknod)(version, path, mode, device); });
}

CAIRN_WRAPPED int __xmknodat(int version, int directory, const char* path, mode_t mode,
                             dev_t* device) {
  return make_as(directory, path,
                 [&] { return CAIRN_NEXT(__xmknodat)(version, directory, path, mode, device); });
}

CAIRN_WRAPPED int symlink(const char* target, const char* path) noexcept {
  return make_symbolic_link_as(target, AT_FDCWD, path,
                               [&] { return CAIRN_NEXT(symlink)(target, path); });
}

CAIRN_WRAPPED int symlinkat(const char* target, int directory, const char* path) noexcept {
  return make_symbolic_link_as(target, directory, path,
                               [&] { return CAIRN_NEXT(symlinkat)(target, directory, path); });
}

CAIRN_WRAPPED int link(const char* from, const char* to) noexcept {
  return link_as(AT_FDCWD, from, AT_FDCWD, to, 0, [&] { return CAIRN_NEXT(link)(from, to); });
}

CAIRN_WRAPPED int linkat(int from_directory, const char* from, int to_directory, const char* to,
                         int flags) noexcept {
  return link_as(from_directory, from, to_directory, to, flags,
                 [&] { return CAIRN_NEXT(linkat)(from_directory, from, to_directory, to, flags); });
}
