#include "crfs/request_user.hpp"

#include <linux/magic.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace cairn {
namespace {

constexpr long lustre_super_magic = 0x0BD00BD0;

/// The umask belongs to the process unless a thread asks for one of its own.
void take_umask(mode_t mask) {
  thread_local const bool own = ::unshare(CLONE_FS) == 0;
  if (own) ::umask(mask);
}

/// glibc's setgroups() changes all threads.
void set_groups_of_thread(const std::vector<gid_t>& groups) {
  (void)::syscall(SYS_setgroups, groups.size(), groups.data());
}

std::vector<gid_t> groups_of(fuse_req_t request) {
  std::vector<gid_t> groups(64);
  int count = fuse_req_getgroups(request, static_cast<int>(groups.size()), groups.data());
  if (count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<std::size_t>(count));
    count = fuse_req_getgroups(request, count, groups.data());
  }
  // If the process has ended, or is in another namespace, only its primary group is known.
  groups.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
  return groups;
}

}  // namespace

RequestUser::RequestUser(fuse_req_t request) {
  const fuse_ctx* user = fuse_req_ctx(request);
  take_umask(user->umask);
  static const bool is_root = ::geteuid() == 0;
  if (!is_root || (user->uid == 0 && user->gid == 0)) return;
  changed_ = true;
  set_groups_of_thread(groups_of(request));
  ::setfsgid(user->gid);
  ::setfsuid(user->uid);
}

RequestUser::~RequestUser() {
  if (!changed_) return;
  ::setfsuid(0);
  ::setfsgid(0);
  set_groups_of_thread({});
}

bool may_squash_root(const Descriptor& directory) {
  struct statfs of = {};
  return ::fstatfs(directory.number(), &of) == 0 &&
         (of.f_type == NFS_SUPER_MAGIC || of.f_type == lustre_super_magic);
}

}  // namespace cairn
