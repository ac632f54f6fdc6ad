// ftw and nftw of libc list directories without the wrapped calls, so they are written anew over
// these.
#include <dirent.h>
#include <ftw.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "interpose/located.hpp"
#include "interpose/next_call.hpp"

namespace cairn::interpose {
namespace {

using Visit = std::function<int(const char*, const struct stat*, int, FTW*)>;

/// One walk. A visit returns what ends the walk; with FTW_ACTIONRETVAL, also what is left out.
class Walk {
 public:
  Walk(const Visit& visit, int flags) : visit_(visit), flags_(flags) {}

  int run(const char* path) {
    path_ = path;
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
    const std::size_t slash = path_.rfind('/');
    struct stat state;
    const int type = type_of(state);
    if (type == FTW_NS) return -1;
    device_ = state.st_dev;
    const int result =
        go(slash == std::string::npos || path_ == "/" ? 0 : slash + 1, 0, type, state);
    return has_actions() && (result == FTW_SKIP_SUBTREE || result == FTW_SKIP_SIBLINGS) ? 0
                                                                                        : result;
  }

 private:
  bool has_actions() const { return (flags_ & FTW_ACTIONRETVAL) != 0; }
  bool is_physical() const { return (flags_ & FTW_PHYS) != 0; }

  int type_of(struct stat& state) const {
    if ((is_physical() ? lstat(path_.c_str(), &state) : stat(path_.c_str(), &state)) != 0)
      return !is_physical() && lstat(path_.c_str(), &state) == 0 && S_ISLNK(state.st_mode) ? FTW_SLN
                                                                                           : FTW_NS;
    return S_ISDIR(state.st_mode) ? FTW_D : S_ISLNK(state.st_mode) ? FTW_SL : FTW_F;
  }

  int call(std::size_t base, int level, int type, const struct stat& state) const {
    FTW where{static_cast<int>(base), level};
    return visit_(path_.c_str(), &state, type, &where);
  }

  int go(std::size_t base, int level, int type, const struct stat& state) {
    if (type != FTW_D) return call(base, level, type, state);
    for (const auto& [device, inode] : above_)
      if (device == state.st_dev && inode == state.st_ino) return 0;
    DIR* const directory = opendir(path_.c_str());
    if (directory == nullptr) return errno == EACCES ? call(base, level, FTW_DNR, state) : -1;
    const bool is_after = (flags_ & FTW_DEPTH) != 0;
    int result = is_after ? 0 : call(base, level, FTW_D, state);
    const bool is_left_out = has_actions() && result == FTW_SKIP_SUBTREE;
    if (result == 0) {
      above_.emplace_back(state.st_dev, state.st_ino);
      result = go_below(directory, level);
      above_.pop_back();
    }
    const int error = errno;
    closedir(directory);
    errno = error;
    if (is_left_out || (has_actions() && result == FTW_SKIP_SIBLINGS && !is_after))
      return is_left_out ? 0 : result;
    return result == 0 && is_after ? call(base, level, FTW_DP, state) : result;
  }

  int go_below(DIR* directory, int level) {
    const std::size_t length = path_.size();
    int result = 0;
    while (const dirent* const entry = readdir(directory)) {
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      path_.append(path_ == "/" ? "" : "/").append(entry->d_name);
      struct stat state = {};
      const int type = type_of(state);
      // A redirected file is on another device, and belongs to the directory nevertheless.
      const bool is_elsewhere =
          (flags_ & FTW_MOUNT) != 0 && type == FTW_D && state.st_dev != device_;
      if (!is_elsewhere)
        result = go(path_.size() - std::strlen(entry->d_name), level + 1, type, state);
      path_.resize(length);
      if (has_actions() && result == FTW_SKIP_SUBTREE) result = 0;
      if (has_actions() && result == FTW_SKIP_SIBLINGS) return 0;
      if (result != 0) break;
    }
    return result;
  }

  const Visit& visit_;
  int flags_;
  dev_t device_ = 0;
  std::string path_;
  std::vector<std::pair<dev_t, ino_t>> above_;
};

/// libc's own walk shows everything where nothing is redirected. It also takes the walks that
/// change the directory.
bool is_walk_of_libc(const char* path, int flags) {
  const Process* const here = process();
  return here == nullptr || here->is_dry_run() || path == nullptr || path[0] == '\0' ||
         (flags & FTW_CHDIR) != 0;
}

int walk(const char* path, int flags, const Visit& visit) {
  const int saved = errno;
  try {
    const int result = Walk(visit, flags).run(path);
    if (result != -1) errno = saved;
    return result;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
}

}  // namespace
}  // namespace cairn::interpose

using namespace cairn::interpose;  // NOLINT: the calls below are C's

CAIRN_WRAPPED int nftw(const char* path, __nftw_func_t visit, int descriptors, int flags) {
  if (is_walk_of_libc(path, flags)) return CAIRN_NEXT(nftw)(path, visit, descriptors, flags);
  return walk(path, flags, visit);
}

CAIRN_WRAPPED int nftw64(const char* path, __nftw64_func_t visit, int descriptors, int flags) {
  if (is_walk_of_libc(path, flags)) return CAIRN_NEXT(nftw64)(path, visit, descriptors, flags);
  static_assert(sizeof(struct stat) == sizeof(struct stat64));
  return walk(path, flags, [&](const char* name, const struct stat* state, int type, FTW* where) {
    return visit(name, reinterpret_cast<const struct stat64*>(state), type, where);
  });
}

// ftw has neither links nor places; a link that leads nowhere has no attributes there.
CAIRN_WRAPPED int ftw(const char* path, __ftw_func_t visit, int descriptors) {
  if (is_walk_of_libc(path, 0)) return CAIRN_NEXT(ftw)(path, visit, descriptors);
  return walk(path, 0, [&](const char* name, const struct stat* state, int type, FTW*) {
    return visit(name, state, type == FTW_SLN ? FTW_NS : type);
  });
}

CAIRN_WRAPPED int ftw64(const char* path, __ftw64_func_t visit, int descriptors) {
  if (is_walk_of_libc(path, 0)) return CAIRN_NEXT(ftw64)(path, visit, descriptors);
  return walk(path, 0, [&](const char* name, const struct stat* state, int type, FTW*) {
    return visit(name, reinterpret_cast<const struct stat64*>(state),
                 type == FTW_SLN ? FTW_NS : type);
  });
}
