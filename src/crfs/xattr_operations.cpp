// Extended attributes, including ACLs. An O_PATH descriptor gives no access to those of symbolic
// links.
#include <sys/xattr.h>

#include <cstring>
#include <vector>

#include "crfs/operations.hpp"
#include "crfs/request_user.hpp"
#include "crfs/statistics.hpp"

namespace cairn {
namespace {

constexpr std::string_view capability = "security.capability";
constexpr std::string_view statistics = "user.crfs.stats";

/// Answers with `value`, or with its length if `size` is 0.
int answer_bytes(fuse_req_t request, std::string_view value, std::size_t size) {
  if (size == 0)
    fuse_reply_xattr(request, value.size());
  else if (value.size() > size)
    return ERANGE;
  else
    fuse_reply_buf(request, value.data(), value.size());
  return 0;
}

/// Calls get(buffer, size), which works like getxattr and listxattr.
template <class Get>
int read_all(std::string& value, Get get) {
  for (;;) {
    const ssize_t length = get(nullptr, 0);
    if (length < 0) return errno;
    value.resize(static_cast<std::size_t>(length));
    if (length == 0) return 0;
    const ssize_t got = get(value.data(), value.size());
    if (got >= 0) {
      value.resize(static_cast<std::size_t>(got));
      return 0;
    }
    if (errno != ERANGE) return errno;  // ERANGE: it has grown meanwhile
  }
}

int get(FileSystem& files, fuse_req_t request, fuse_ino_t number, const char* name,
        std::size_t size) {
  Inode& inode = files.inode(number);
  if (S_ISLNK(inode.type)) return ENODATA;
  if (number == FUSE_ROOT_ID && name == statistics)
    return answer_bytes(request, json_of(files.statistics()), size);
  const bool is_capability = name == capability;
  if (is_capability && inode.has_no_capability) return ENODATA;
  // The backing file loses the capability when the written data reach it.
  if (const auto file = inode.open_file(); is_capability && file) file->settle();
  const std::string path = name_in_proc(inode.path);
  std::string value;
  const int error = read_all(
      value, [&](char* to, std::size_t room) { return ::getxattr(path.c_str(), name, to, room); });
  if (is_capability && (error == ENODATA || error == ENOTSUP)) inode.has_no_capability = true;
  return error != 0 ? error : answer_bytes(request, value, size);
}

/// Only root sees the names whose values only root may read.
std::string without_trusted(const std::string& names) {
  std::string shown;
  for (std::size_t at = 0; at < names.size();) {
    const std::string_view name(names.c_str() + at);
    if (!name.starts_with("trusted.")) shown.append(name.data(), name.size() + 1);
    at += name.size() + 1;
  }
  return shown;
}

int list(FileSystem& files, fuse_req_t request, fuse_ino_t number, std::size_t size) {
  Inode& inode = files.inode(number);
  std::string names;
  const std::string path = name_in_proc(inode.path);
  if (!S_ISLNK(inode.type)) {
    const int error = read_all(
        names, [&](char* to, std::size_t room) { return ::listxattr(path.c_str(), to, room); });
    if (error != 0) return error;
  }
  if (fuse_req_ctx(request)->uid != 0) names = without_trusted(names);
  return answer_bytes(request, names, size);
}

int set(FileSystem& files, fuse_req_t request, fuse_ino_t number, const char* name,
        const char* value, std::size_t size, int flags) {
  Inode& inode = files.inode(number);
  if (S_ISLNK(inode.type)) return EPERM;
  if (name == capability) {
    if (const auto file = inode.open_file()) file->settle();  // a later write would remove it
    inode.has_no_capability = false;
  }
  const std::string path = name_in_proc(inode.path);
  const auto call = [&] { return errno_of(::setxattr(path.c_str(), name, value, size, flags)); };
  if (!std::string_view(name).starts_with("system.posix_acl_")) return call();
  // Setting an ACL clears S_ISGID if the user is not in the group.
  const std::lock_guard lock(inode.changing_mode);
  const RequestUser user(request);
  return call();
}

int remove(FileSystem& files, fuse_req_t, fuse_ino_t number, const char* name) {
  Inode& inode = files.inode(number);
  if (S_ISLNK(inode.type)) return EPERM;
  return errno_of(::removexattr(name_in_proc(inode.path).c_str(), name));
}

}  // namespace

void add_xattr_operations(fuse_lowlevel_ops& operations) {
  operations.getxattr = answering<get>;
  operations.listxattr = answering<list>;
  operations.setxattr = returning<set>;
  operations.removexattr = returning<remove>;
}

}  // namespace cairn
