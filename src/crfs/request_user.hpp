// Whoever asked, for as long as something is made in his name.
#pragma once

#include "crfs/fuse.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Makes the calling thread, and no other, act as the user of a request: his user, group,
/// supplementary groups and umask. So the backing file system itself decides on owners, on folders
/// that hand their group on, on default ACLs and quotas. Where the daemon is not root it acts as
/// itself, and only the umask is taken over.
class RequestUser {
 public:
  explicit RequestUser(fuse_req_t request);
  ~RequestUser();
  RequestUser(const RequestUser&) = delete;
  RequestUser& operator=(const RequestUser&) = delete;

 private:
  bool changed_ = false;
};

/// Whether the folder is served by another node that may take root for nobody (root_squash). What
/// is done as root's daemon, and not as who asks, fails there where nobody may do it.
bool may_squash_root(const Descriptor& folder);

}  // namespace cairn
