// A file system that shows a folder as it is: the plain FUSE passthrough that CRFS is compared
// with. It can also be slow, fail, and write down what it changed, and then stands for a backing
// file system in tests.
//
//   slowfs BACKING MOUNTPOINT [--delay-us N] [--delay OP[@FILE]:US]... [--bandwidth BYTES/S]
//          [--short BYTES] [--fail OP[@FILE]:N[+]:ERRNO]... [--log FILE] [--direct] [--no-xattr]
//          [--no-flush] [-o OPTIONS]
//
// --delay-us: of every request but forget and release. --delay: of those of a kind, beside it.
// --bandwidth: of reads and writes together. --short: no write carries out more. --direct: not
// through the kernel's page cache. --no-xattr: none, which saves the kernel a request before each
// write. --no-flush: close() makes no request; a process cannot end before that is answered. The
// first five can be set while it runs, as attributes of the root, e.g. user.slowfs.fail;
// user.slowfs.clear ends them, user.slowfs.counts tells the requests so far. It stays in the
// foreground. The folder must not change but through the mount.
#define FUSE_USE_VERSION 312

#include <dirent.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <cstring>
#include <memory>

#include "slowfs_behaviour.hpp"

namespace slowfs {
namespace {

constexpr char kSetting[] = "user.slowfs.";
constexpr double kCached_s = 1;

struct Inode {
  int fd = -1;  // O_PATH
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t lookups = 0;
  std::string name;  // as it was last looked up
};

Behaviour behaviour;
Log journal;
bool direct = false, with_xattr = true, with_flush = true;
Inode root;
std::mutex inodes_mutex;
std::map<std::pair<dev_t, ino_t>, std::unique_ptr<Inode>> inodes;

Inode& inode_of(fuse_ino_t id) { return id == FUSE_ROOT_ID ? root : *reinterpret_cast<Inode*>(id); }
int fd_of(fuse_ino_t id) { return inode_of(id).fd; }
std::string path_of(fuse_ino_t id) { return "/proc/self/fd/" + std::to_string(fd_of(id)); }
int handle_of(const fuse_file_info* file) { return static_cast<int>(file->fh); }

void answer(fuse_req_t request, bool good) { fuse_reply_err(request, good ? 0 : errno); }

/// What each request begins with; false if it has been answered, with the error it was to have.
bool begun(fuse_req_t request, const char* operation, const std::string& file) {
  const int error = behaviour.begin(operation, file);
  if (error != 0) fuse_reply_err(request, error);
  return error == 0;
}

/// Makes new names belong to who asks, and obey the umask and the default ACLs, as on the backing
/// file system.
class AsCaller {
 public:
  explicit AsCaller(fuse_req_t request) : caller_(fuse_req_ctx(request)) {
    static thread_local const int own_umask = ::unshare(CLONE_FS);
    if (own_umask == 0) ::umask(caller_->umask);
    if (::geteuid() != 0) return;
    ::setfsgid(caller_->gid);
    ::setfsuid(caller_->uid);
    if (caller_->uid != 0) keep_access();
  }
  ~AsCaller() {
    if (::geteuid() != 0) return;
    ::setfsuid(0);
    ::setfsgid(0);
  }
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;

 private:
  // The kernel has checked the caller's rights, with all of its groups.
  static void keep_access() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (::syscall(SYS_capget, &header, data) != 0) return;
    data[0].effective |= data[0].permitted & (1U << CAP_DAC_OVERRIDE);
    ::syscall(SYS_capset, &header, data);
  }
  const fuse_ctx* caller_;
};

/// A new inode, or the one there is, looked up once more. False with errno.
bool find(fuse_ino_t parent, const char* name, fuse_entry_param& entry) {
  entry = {};
  entry.attr_timeout = entry.entry_timeout = kCached_s;
  const int fd = ::openat(fd_of(parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  if (::fstat(fd, &entry.attr) != 0) return ::close(fd), false;
  const std::lock_guard lock(inodes_mutex);
  auto& inode = inodes[{entry.attr.st_dev, entry.attr.st_ino}];
  if (inode) {
    ::close(fd);
  } else {
    inode = std::make_unique<Inode>(Inode{fd, entry.attr.st_dev, entry.attr.st_ino, 0, {}});
  }
  ++inode->lookups;
  inode->name = name;
  entry.ino = reinterpret_cast<fuse_ino_t>(inode.get());
  return true;
}

void drop(fuse_ino_t id, std::uint64_t times) {
  if (id == FUSE_ROOT_ID) return;
  const std::lock_guard lock(inodes_mutex);
  Inode& inode = inode_of(id);
  if ((inode.lookups -= times) > 0) return;
  ::close(inode.fd);
  inodes.erase({inode.device, inode.number});
}

void forget(fuse_req_t request, fuse_ino_t id, std::uint64_t times) {
  drop(id, times);
  fuse_reply_none(request);
}

void forget_many(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i) drop(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (!begun(request, "lookup", name)) return;
  fuse_entry_param entry;
  find(parent, name, entry) ? fuse_reply_entry(request, &entry) : fuse_reply_err(request, errno);
}

void getattr(fuse_req_t request, fuse_ino_t id, fuse_file_info*) {
  if (!begun(request, "getattr", inode_of(id).name)) return;
  struct stat attributes {};
  if (::fstatat(fd_of(id), "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return answer(request, false);
  fuse_reply_attr(request, &attributes, kCached_s);
}

bool change_times(fuse_ino_t id, const struct stat& wanted, int which) {
  timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  if (which & FUSE_SET_ATTR_ATIME) times[0] = wanted.st_atim;
  if (which & FUSE_SET_ATTR_MTIME) times[1] = wanted.st_mtim;
  if (which & FUSE_SET_ATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
  if (which & FUSE_SET_ATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
  return ::utimensat(fd_of(id), "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0;
}

bool change(fuse_ino_t id, const struct stat& wanted, int which, const fuse_file_info* file) {
  constexpr auto kNot = static_cast<unsigned>(-1);
  if (which & FUSE_SET_ATTR_MODE && ::chmod(path_of(id).c_str(), wanted.st_mode) != 0) return false;
  if (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) &&
      ::fchownat(fd_of(id), "", which & FUSE_SET_ATTR_UID ? wanted.st_uid : kNot,
                 which & FUSE_SET_ATTR_GID ? wanted.st_gid : kNot,
                 AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  if (which & FUSE_SET_ATTR_SIZE) {
    if ((file ? ::ftruncate(handle_of(file), wanted.st_size)
              : ::truncate(path_of(id).c_str(), wanted.st_size)) != 0) {
      return false;
    }
    journal.record({{"op", "truncate"}, {"ino", inode_of(id).number}, {"size", wanted.st_size}});
  }
  constexpr int kTimes =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  return !(which & kTimes) || change_times(id, wanted, which);
}

void setattr(fuse_req_t request, fuse_ino_t id, struct stat* wanted, int which,
             fuse_file_info* file) {
  const char* operation = which & FUSE_SET_ATTR_SIZE ? "truncate" : "setattr";
  if (!begun(request, operation, inode_of(id).name)) return;
  const auto turn = journal.turn();
  struct stat now {};
  if (!change(id, *wanted, which, file) ||
      ::fstatat(fd_of(id), "", &now, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    return answer(request, false);
  }
  fuse_reply_attr(request, &now, kCached_s);
}

void readlink(fuse_req_t request, fuse_ino_t id) {
  if (!begun(request, "readlink", inode_of(id).name)) return;
  char target[PATH_MAX + 1];
  const ssize_t length = ::readlinkat(fd_of(id), "", target, sizeof target - 1);
  if (length < 0) return answer(request, false);
  target[length] = '\0';
  fuse_reply_readlink(request, target);
}

/// Answers a request that has made a name.
void answer_new(fuse_req_t request, bool good, const char* operation, fuse_ino_t parent,
                const char* name) {
  fuse_entry_param entry;
  if (!good || !find(parent, name, entry)) return answer(request, false);
  journal.record({{"op", operation},
                  {"parent", inode_of(parent).number},
                  {"name", name},
                  {"ino", entry.attr.st_ino},
                  {"mode", entry.attr.st_mode}});
  fuse_reply_entry(request, &entry);
}

void mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  if (!begun(request, "mknod", name)) return;
  const auto turn = journal.turn();
  const AsCaller as_caller(request);
  answer_new(request, ::mknodat(fd_of(parent), name, mode, device) == 0, "create", parent, name);
}

void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  if (!begun(request, "mkdir", name)) return;
  const auto turn = journal.turn();
  const AsCaller as_caller(request);
  answer_new(request, ::mkdirat(fd_of(parent), name, mode) == 0, "create", parent, name);
}

void symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  if (!begun(request, "symlink", name)) return;
  const auto turn = journal.turn();
  const AsCaller as_caller(request);
  answer_new(request, ::symlinkat(target, fd_of(parent), name) == 0, "create", parent, name);
}

void link(fuse_req_t request, fuse_ino_t id, fuse_ino_t parent, const char* name) {
  if (!begun(request, "link", name)) return;
  const auto turn = journal.turn();
  const bool good =
      ::linkat(AT_FDCWD, path_of(id).c_str(), fd_of(parent), name, AT_SYMLINK_FOLLOW) == 0;
  answer_new(request, good, "link", parent, name);
}

void remove(fuse_req_t request, fuse_ino_t parent, const char* name, const char* operation,
            int flags) {
  if (!begun(request, operation, name)) return;
  const auto turn = journal.turn();
  const bool good = ::unlinkat(fd_of(parent), name, flags) == 0;
  if (good)
    journal.record({{"op", operation}, {"parent", inode_of(parent).number}, {"name", name}});
  answer(request, good);
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  remove(request, parent, name, "unlink", 0);
}
void rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  remove(request, parent, name, "rmdir", AT_REMOVEDIR);
}

void rename(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to,
            const char* new_name, unsigned flags) {
  if (!begun(request, "rename", name)) return;
  const auto turn = journal.turn();
  const bool good = ::renameat2(fd_of(from), name, fd_of(to), new_name, flags) == 0;
  if (good) {
    journal.record({{"op", "rename"},
                    {"parent", inode_of(from).number},
                    {"name", name},
                    {"new_parent", inode_of(to).number},
                    {"new_name", new_name},
                    {"exchange", (flags & RENAME_EXCHANGE) != 0}});
  }
  answer(request, good);
}

/// The kernel has worked out where a write goes, and reads pages that it writes parts of.
int flags_of(const fuse_file_info* file) {
  return (file->flags & ~(O_APPEND | O_DIRECT | O_NOFOLLOW | O_CREAT | O_EXCL)) | O_CLOEXEC;
}

void keep(fuse_file_info* file, int fd) {
  file->fh = static_cast<std::uint64_t>(fd);
  file->direct_io = direct;
  file->keep_cache = !direct;
}

void open(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  if (!begun(request, "open", inode_of(id).name)) return;
  const auto turn = journal.turn();
  const int fd = ::open(path_of(id).c_str(), flags_of(file));
  if (fd < 0) return answer(request, false);
  if (file->flags & O_TRUNC)
    journal.record({{"op", "truncate"}, {"ino", inode_of(id).number}, {"size", 0}});
  keep(file, fd);
  if (fuse_reply_open(request, file) != 0) ::close(fd);
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* file) {
  if (!begun(request, "create", name)) return;
  const auto turn = journal.turn();
  fuse_entry_param entry;
  int fd = -1;
  {
    const AsCaller as_caller(request);
    fd = ::openat(fd_of(parent), name,
                  flags_of(file) | O_CREAT | (file->flags & O_EXCL) | O_NOFOLLOW, mode);
  }
  if (fd < 0 || !find(parent, name, entry)) return answer(request, false);
  journal.record({{"op", "create"},
                  {"parent", inode_of(parent).number},
                  {"name", name},
                  {"ino", entry.attr.st_ino},
                  {"mode", entry.attr.st_mode}});
  keep(file, fd);
  if (fuse_reply_create(request, &entry, file) != 0) ::close(fd);
}

void read(fuse_req_t request, fuse_ino_t id, std::size_t bytes, off_t offset,
          fuse_file_info* file) {
  if (!begun(request, "read", inode_of(id).name)) return;
  behaviour.transfer(bytes);
  static thread_local std::vector<char> buffer;
  if (buffer.size() < bytes) buffer.resize(bytes);
  const ssize_t count = ::pread(handle_of(file), buffer.data(), bytes, offset);
  if (count < 0) return answer(request, false);
  fuse_reply_buf(request, buffer.data(), static_cast<std::size_t>(count));
}

void write(fuse_req_t request, fuse_ino_t id, const char* data, std::size_t bytes, off_t offset,
           fuse_file_info* file) {
  if (!begun(request, "write", inode_of(id).name)) return;
  bytes = behaviour.shortened(bytes);
  behaviour.transfer(bytes);
  const auto turn = journal.turn();
  const ssize_t count = ::pwrite(handle_of(file), data, bytes, offset);
  if (count < 0) return answer(request, false);
  journal.record_write(inode_of(id).number, offset, data, static_cast<std::size_t>(count));
  fuse_reply_write(request, static_cast<std::size_t>(count));
}

void flush(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  if (!begun(request, "flush", inode_of(id).name)) return;
  answer(request, ::close(::dup(handle_of(file))) == 0);
}

void release(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  answer(request, ::close(handle_of(file)) == 0);
}

void fsync(fuse_req_t request, fuse_ino_t id, int data_only, fuse_file_info* file) {
  if (!begun(request, "fsync", inode_of(id).name)) return;
  const auto turn = journal.turn();
  const bool good = (data_only ? ::fdatasync(handle_of(file)) : ::fsync(handle_of(file))) == 0;
  if (good) journal.record({{"op", "fsync"}, {"ino", inode_of(id).number}});
  answer(request, good);
}

void fallocate(fuse_req_t request, fuse_ino_t id, int mode, off_t offset, off_t length,
               fuse_file_info* file) {
  if (!begun(request, "fallocate", inode_of(id).name)) return;
  const auto turn = journal.turn();
  const bool good = ::fallocate(handle_of(file), mode, offset, length) == 0;
  if (good) {
    journal.record({{"op", "fallocate"},
                    {"ino", inode_of(id).number},
                    {"mode", mode},
                    {"offset", offset},
                    {"bytes", length}});
  }
  answer(request, good);
}

void lseek(fuse_req_t request, fuse_ino_t id, off_t offset, int whence, fuse_file_info* file) {
  if (!begun(request, "lseek", inode_of(id).name)) return;
  const off_t found = ::lseek(handle_of(file), offset, whence);
  found < 0 ? fuse_reply_err(request, errno) : fuse_reply_lseek(request, found);
}

void opendir(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  if (!begun(request, "opendir", inode_of(id).name)) return;
  const int fd = ::openat(fd_of(id), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (!folder) return answer(request, false);
  file->fh = reinterpret_cast<std::uint64_t>(folder);
  if (fuse_reply_open(request, file) != 0) ::closedir(folder);
}

DIR* folder_of(const fuse_file_info* file) { return reinterpret_cast<DIR*>(file->fh); }

void readdir(fuse_req_t request, fuse_ino_t id, std::size_t bytes, off_t offset,
             fuse_file_info* file) {
  if (!begun(request, "readdir", inode_of(id).name)) return;
  std::vector<char> names(bytes);
  std::size_t used = 0;
  ::seekdir(folder_of(file), offset);
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(folder_of(file));
    if (!found && errno != 0 && used == 0) return answer(request, false);
    if (!found) break;
    struct stat attributes {};
    attributes.st_ino = found->d_ino;
    attributes.st_mode = static_cast<mode_t>(found->d_type) << 12;
    const std::size_t needs =
        fuse_add_direntry(request, names.data() + used, bytes - used, found->d_name, &attributes,
                          ::telldir(folder_of(file)));
    if (needs > bytes - used) break;
    used += needs;
  }
  fuse_reply_buf(request, names.data(), used);
}

void releasedir(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  answer(request, ::closedir(folder_of(file)) == 0);
}

void fsyncdir(fuse_req_t request, fuse_ino_t id, int, fuse_file_info* file) {
  if (!begun(request, "fsyncdir", inode_of(id).name)) return;
  const auto turn = journal.turn();
  const bool good = ::fsync(::dirfd(folder_of(file))) == 0;
  if (good) journal.record({{"op", "fsyncdir"}, {"ino", inode_of(id).number}});
  answer(request, good);
}

void statfs(fuse_req_t request, fuse_ino_t id) {
  if (!begun(request, "statfs", "")) return;
  struct statvfs attributes {};
  if (::fstatvfs(fd_of(id), &attributes) != 0) return answer(request, false);
  fuse_reply_statfs(request, &attributes);
}

/// True if the attribute was a setting, and the request is answered.
bool was_setting(fuse_req_t request, fuse_ino_t id, const char* name, const std::string& value) {
  if (id != FUSE_ROOT_ID || std::strncmp(name, kSetting, sizeof kSetting - 1) != 0) return false;
  try {
    behaviour.set(name + sizeof kSetting - 1, value);
    fuse_reply_err(request, 0);
  } catch (const std::exception&) {
    fuse_reply_err(request, EINVAL);
  }
  return true;
}

void setxattr(fuse_req_t request, fuse_ino_t id, const char* name, const char* value,
              std::size_t bytes, int flags) {
  if (was_setting(request, id, name, {value, bytes}) ||
      !begun(request, "setxattr", inode_of(id).name))
    return;
  answer(request, ::setxattr(path_of(id).c_str(), name, value, bytes, flags) == 0);
}

void answer_attribute(fuse_req_t request, const char* value, ssize_t count, std::size_t room) {
  if (count < 0) return answer(request, false);
  room == 0 ? fuse_reply_xattr(request, static_cast<std::size_t>(count))
            : fuse_reply_buf(request, value, static_cast<std::size_t>(count));
}

void getxattr(fuse_req_t request, fuse_ino_t id, const char* name, std::size_t bytes) {
  if (id == FUSE_ROOT_ID && std::string("user.slowfs.counts") == name) {
    const std::string counts = behaviour.counts();
    if (bytes != 0 && bytes < counts.size()) return void(fuse_reply_err(request, ERANGE));
    return answer_attribute(request, counts.data(), static_cast<ssize_t>(counts.size()), bytes);
  }
  // The kernel does not ask again; so only once somebody has asked for the attributes of a file.
  if (!with_xattr && id != FUSE_ROOT_ID) return void(fuse_reply_err(request, ENOSYS));
  if (!begun(request, "getxattr", inode_of(id).name)) return;
  std::vector<char> value(bytes);
  answer_attribute(request, value.data(),
                   ::getxattr(path_of(id).c_str(), name, value.data(), bytes), bytes);
}

void listxattr(fuse_req_t request, fuse_ino_t id, std::size_t bytes) {
  if (!begun(request, "listxattr", inode_of(id).name)) return;
  std::vector<char> names(bytes);
  answer_attribute(request, names.data(), ::listxattr(path_of(id).c_str(), names.data(), bytes),
                   bytes);
}

void removexattr(fuse_req_t request, fuse_ino_t id, const char* name) {
  if (!begun(request, "removexattr", inode_of(id).name)) return;
  answer(request, ::removexattr(path_of(id).c_str(), name) == 0);
}

void init(void*, fuse_conn_info* connection) {
  // Nobody else changes the folder; rights that a write takes away are the kernel's business; and
  // only the kernel knows that a file to be truncated is a running program.
  connection->want &=
      ~(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ATOMIC_O_TRUNC);
  connection->want |=
      connection->capable & (FUSE_CAP_DONT_MASK | (with_xattr ? FUSE_CAP_POSIX_ACL : 0));
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.init = init, all.lookup = lookup, all.forget = forget, all.forget_multi = forget_many;
  all.getattr = getattr, all.setattr = setattr, all.readlink = readlink, all.statfs = statfs;
  all.mknod = mknod, all.mkdir = mkdir, all.symlink = symlink, all.link = link;
  all.unlink = unlink, all.rmdir = rmdir, all.rename = rename;
  all.create = create, all.open = open, all.read = read, all.write = write;
  if (with_flush) all.flush = flush;
  all.release = release, all.fsync = fsync, all.fallocate = fallocate, all.lseek = lseek;
  all.opendir = opendir, all.readdir = readdir, all.releasedir = releasedir,
  all.fsyncdir = fsyncdir;
  all.setxattr = setxattr, all.getxattr = getxattr, all.listxattr = listxattr,
  all.removexattr = removexattr;
  return all;
}

struct Wanted {
  std::string backing, mountpoint;
  std::string options =
      ::geteuid() == 0 ? "allow_other,default_permissions,suid,dev" : "default_permissions";
};

Wanted parse(int count, char** words) {
  Wanted wanted;
  std::vector<std::string> folders;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      return ++i < count ? std::string(words[i]) : throw std::invalid_argument(word);
    };
    if (word == "--direct") {
      direct = true;
    } else if (word == "--no-xattr") {
      with_xattr = false;
    } else if (word == "--no-flush") {
      with_flush = false;
    } else if (word == "--log") {
      journal.open(value());
    } else if (word == "-o") {
      wanted.options += "," + value();
    } else if (word.starts_with("--")) {
      behaviour.set(word.substr(2), value());
    } else {
      folders.push_back(word);
    }
  }
  if (folders.size() != 2)
    throw std::invalid_argument("usage: slowfs BACKING MOUNTPOINT [option ...]");
  wanted.backing = folders[0], wanted.mountpoint = folders[1];
  return wanted;
}

int serve(const Wanted& wanted) {
  root.fd = ::open(wanted.backing.c_str(), O_PATH | O_CLOEXEC);
  struct stat attributes {};
  if (root.fd < 0 || ::fstat(root.fd, &attributes) != 0)
    throw std::runtime_error("cannot open " + wanted.backing);
  root.number = attributes.st_ino;

  std::string program = "slowfs", option = "-o",
              options = wanted.options + ",fsname=slowfs,subtype=slowfs";
  char* words[] = {program.data(), option.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const fuse_lowlevel_ops all = operations();
  fuse_session* session = fuse_session_new(&arguments, &all, sizeof all, nullptr);
  if (!session || fuse_set_signal_handlers(session) != 0) return 1;
  if (fuse_session_mount(session, wanted.mountpoint.c_str()) != 0) return 1;
  fuse_loop_config* loop = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(loop, 1);
  fuse_loop_cfg_set_max_threads(loop, 16);
  fuse_loop_cfg_set_idle_threads(loop, 16);
  const int status = fuse_session_loop_mt(session, loop);
  fuse_loop_cfg_destroy(loop);
  fuse_session_unmount(session);
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
  fuse_opt_free_args(&arguments);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace slowfs

int main(int count, char** words) {
  try {
    ::umask(0);
    return slowfs::serve(slowfs::parse(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "slowfs: %s\n", error.what());
    return 2;
  }
}
