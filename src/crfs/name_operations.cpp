// Names: look up, make, remove, rename.
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "crfs/operations.hpp"
#include "crfs/request_user.hpp"

namespace cairn {
namespace {

int answer_entry(FileSystem& files, fuse_req_t request, const fuse_entry_param& entry) {
  if (fuse_reply_entry(request, &entry) != 0) files.inodes.forget(files.inode(entry.ino), 1);
  return 0;
}

int look_up(FileSystem& files, fuse_req_t request, fuse_ino_t directory, const char* name) {
  fuse_entry_param entry;
  const int error = files.look_up(files.inode(directory), name, entry);
  return error != 0 ? error : answer_entry(files, request, entry);
}

void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t lookups) {
  auto& files = *static_cast<FileSystem*>(fuse_req_userdata(request));
  files.inodes.forget(files.inode(number), lookups);
  fuse_reply_none(request);
}

void forget_several(fuse_req_t request, std::size_t count, fuse_forget_data* forgotten) {
  auto& files = *static_cast<FileSystem*>(fuse_req_userdata(request));
  for (std::size_t i = 0; i < count; ++i)
    files.inodes.forget(files.inode(forgotten[i].ino), forgotten[i].nlookup);
  fuse_reply_none(request);
}

bool is_redirected(FileSystem& files, const Inode& directory, const char* name) {
  return files.redirection != nullptr &&
         files.redirection->find(files.named(directory, name).path).number() >= 0;
}

/// Calls make(descriptor of the directory) as the requesting user, and answers with the new entry.
template <class Make>
int make_entry(FileSystem& files, fuse_req_t request, fuse_ino_t directory, const char* name,
               Make make) {
  Inode& in = files.inode(directory);
  if (is_redirected(files, in, name)) return EEXIST;
  {
    const RequestUser user(request);
    const int error = errno_of(make(in.path.number()));
    if (error != 0) return error;
  }
  if (files.redirection != nullptr) files.redirection->made(files.named(in, name, request));
  fuse_entry_param entry;
  const int error = files.look_up(in, name, entry);
  return error != 0 ? error : answer_entry(files, request, entry);
}

int make_node(FileSystem& files, fuse_req_t request, fuse_ino_t directory, const char* name,
              mode_t mode, dev_t device) {
  return make_entry(files, request, directory, name,
                    [&](int in) { return ::mknodat(in, name, mode, device); });
}

int make_directory(FileSystem& files, fuse_req_t request, fuse_ino_t directory, const char* name,
                   mode_t mode) {
  return make_entry(files, request, directory, name,
                    [&](int in) { return ::mkdirat(in, name, mode); });
}

int make_link(FileSystem& files, fuse_req_t request, const char* target, fuse_ino_t directory,
              const char* name) {
  return make_entry(files, request, directory, name,
                    [&](int in) { return ::symlinkat(target, in, name); });
}

int read_link(FileSystem& files, fuse_req_t request, fuse_ino_t number) {
  char target[PATH_MAX + 1];
  const ssize_t length =
      ::readlinkat(files.inode(number).path.number(), "", target, sizeof target - 1);
  if (length < 0) return errno;
  target[length] = '\0';
  fuse_reply_readlink(request, target);
  return 0;
}

/// Writes the data of the file to the backing directory, and returns an error that no program has
/// received yet; 0 or an errno. A rename or link must not succeed if data were lost: it would
/// replace a good file by an incomplete one, and no program would know.
int settle(FileSystem& files, Inode& inode) {
  if (const auto file = inode.open_file()) file->settle();
  return files.take_unreported_error(inode);
}

/// The same for all files below a directory.
int settle_below(FileSystem& files, const Inode& directory) {
  files.aggregator.settle_all();
  const std::string above = name_of(directory) + "/";
  int error = 0;
  for (Inode* inode : files.inodes.hold_all()) {
    if (inode->open_file() && name_of(*inode).starts_with(above))
      if (const int lost = settle(files, *inode); lost != 0) error = lost;
    files.inodes.forget(*inode, 1);
  }
  const int lost = -files.unreported.take_below(above);
  return lost != 0 ? lost : error;
}

/// 0 or an errno.
int link_to(FileSystem& files, fuse_req_t request, const Inode& inode, Inode& in,
            const char* name) {
  if (files.redirection != nullptr)
    if (const auto linked = files.redirection->link(inode.path, files.named(in, name, request)))
      return *linked;
  // A symbolic link has no name in /proc that stands for itself.
  return errno_of(S_ISLNK(inode.type)
                      ? ::linkat(inode.path.number(), "", in.path.number(), name, AT_EMPTY_PATH)
                      : ::linkat(AT_FDCWD, name_in_proc(inode.path).c_str(), in.path.number(), name,
                                 AT_SYMLINK_FOLLOW));
}

/// Other programs may open the file by its new name, so the data are written first.
int link(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_ino_t directory,
         const char* name) {
  Inode& inode = files.inode(number);
  Inode& in = files.inode(directory);
  if (const int lost = settle(files, inode); lost != 0) return lost;
  if (const int failed = link_to(files, request, inode, in, name); failed != 0) return failed;
  fuse_entry_param entry;
  const int error = files.look_up(in, name, entry);
  return error != 0 ? error : answer_entry(files, request, entry);
}

/// The inode of a name, if the kernel knows it. Held as long as this object lives.
class Named {
 public:
  Named(FileSystem& files, fuse_ino_t directory, const char* name) : files_(files) {
    struct stat status = {};
    const Descriptor found = files.find(files.inode(directory), name);
    if (found.number() >= 0 && ::fstat(found.number(), &status) == 0)
      inode_ = files.inodes.find(status.st_dev, status.st_ino);
  }
  ~Named() {
    if (inode_ != nullptr) files_.inodes.forget(*inode_, 1);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  int settle() const {
    if (inode_ == nullptr) return 0;
    return S_ISDIR(inode_->type) ? settle_below(files_, *inode_) : cairn::settle(files_, *inode_);
  }
  /// Call after a name was removed. Drops the data of a file that has neither a name nor a handle.
  void cancel_if_nameless() const {
    if (inode_ == nullptr) return;
    const std::lock_guard lock(inode_->mutex);
    if (inode_->file && inode_->handles.empty() && inode_->file->is_nameless())
      inode_->file->data().abandon();
  }

 private:
  FileSystem& files_;
  Inode* inode_ = nullptr;
};

int remove_name(FileSystem& files, const Inode& directory, const char* name) {
  return is_redirected(files, directory, name)
             ? files.redirection->remove(files.named(directory, name))
             : errno_of(::unlinkat(directory.path.number(), name, 0));
}

int remove_file(FileSystem& files, fuse_req_t, fuse_ino_t directory, const char* name) {
  const Inode& in = files.inode(directory);
  // Only with close=async may a file without handles have unwritten data.
  if (!files.closing.is_asynchronous()) return remove_name(files, in, name);
  const Named named(files, directory, name);
  const int error = remove_name(files, in, name);
  if (error == 0) named.cancel_if_nameless();
  return error;
}

int remove_directory(FileSystem& files, fuse_req_t, fuse_ino_t directory, const char* name) {
  const Inode& in = files.inode(directory);
  const std::string path = files.redirection != nullptr ? files.named(in, name).path : "";
  if (files.redirection != nullptr && files.redirection->has_files_below(path)) return ENOTEMPTY;
  const int error = errno_of(::unlinkat(in.path.number(), name, AT_REMOVEDIR));
  if (error == 0 && files.redirection != nullptr) files.redirection->removed_directory(path);
  return error;
}

/// 0 or an errno.
int rename_redirected(FileSystem& files, fuse_req_t request, const Inode& in, const char* name,
                      const Inode& new_in, const char* new_name, unsigned flags) {
  const MountedName from = files.named(in, name, request);
  const MountedName to = files.named(new_in, new_name, request);
  if (const auto renamed = files.redirection->rename(from, to, flags)) return *renamed;
  const int error = errno_of(::renameat2(from.directory, from.name, to.directory, to.name, flags));
  if (error == 0) files.redirection->renamed(from, to);
  return error;
}

int rename(FileSystem& files, fuse_req_t request, fuse_ino_t directory, const char* name,
           fuse_ino_t new_directory, const char* new_name, unsigned flags) {
  const Named moved(files, directory, name);
  const Named replaced(files, new_directory, new_name);
  int error = moved.settle();
  if (error == 0 && (flags & RENAME_EXCHANGE) != 0) error = replaced.settle();
  if (error != 0) return error;
  const Inode& in = files.inode(directory);
  const Inode& new_in = files.inode(new_directory);
  error =
      files.redirection != nullptr
          ? rename_redirected(files, request, in, name, new_in, new_name, flags)
          : errno_of(::renameat2(in.path.number(), name, new_in.path.number(), new_name, flags));
  if (error == 0) replaced.cancel_if_nameless();
  return error;
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = answering<look_up>;
  operations.forget = forget;
  operations.forget_multi = forget_several;
  operations.mknod = answering<make_node>;
  operations.mkdir = answering<make_directory>;
  operations.symlink = answering<make_link>;
  operations.readlink = answering<read_link>;
  operations.link = answering<link>;
  operations.unlink = returning<remove_file>;
  operations.rmdir = returning<remove_directory>;
  operations.rename = returning<rename>;
}

}  // namespace cairn
