// Directories that other users can neither read nor change.
#pragma once

#include <string>

#include "files/files.hpp"

namespace cairn {

/// Makes BASE/USER/NAME, or accepts it if it exists and is safe, and returns its path. Makes BASE
/// too if `make_base` is set. BASE may be writable by all users, like /dev/shm and /tmp, if it is
/// sticky and belongs to this user or to root.
///
/// Errors: untrusted, with path, owner and remedy, if BASE belongs to another user, or if BASE/USER
/// or BASE/USER/NAME is a link, is not a directory, belongs to another user, or gives other users
/// access; io if it cannot be made.
Result<std::string> claim_private_folder(Files& files, const std::string& base, bool make_base,
                                         const std::string& user, const std::string& name);

}  // namespace cairn
