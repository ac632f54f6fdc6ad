// Lets a thread act as the user of a request.
#pragma once

#include "crfs/fuse.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Gives the calling thread, and no other, the user, group, supplementary groups and umask of a
/// request. So the backing file system itself applies owners, set-group-id directories, default
/// ACLs and quotas. If the daemon is not root, it takes over the umask only.
class RequestUser {
 public:
  explicit RequestUser(fuse_req_t request);
  ~RequestUser();
  RequestUser(const RequestUser&) = delete;
  RequestUser& operator=(const RequestUser&) = delete;

 private:
  bool changed_ = false;
};

/// The directory is on a server that may map root to the user "nobody" (root_squash). Operations
/// that the daemon runs as root, and not as the requesting user, then fail on private files.
bool may_squash_root(const Descriptor& directory);

}  // namespace cairn
