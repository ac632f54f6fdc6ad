// Folders that nobody else can read or plant things in.
#pragma once

#include <string>

#include "files/files.hpp"

namespace cairn {

/// Makes, or accepts if it is safe, BASE/USER/NAME, and returns its path. BASE is made too
/// where `make_base` is set; it may be writable by everybody, as /dev/shm and /tmp are, if it is
/// sticky, and belongs to this user or to root.
///
/// Errors: untrusted, naming path, owner and remedy, if BASE belongs to somebody else, or BASE/USER
/// or BASE/USER/NAME is a link, is not a folder, belongs to somebody else, or lets others in;
/// io if it cannot be made.
Result<std::string> claim_private_folder(Files& files, const std::string& base, bool make_base,
                                         const std::string& user, const std::string& name);

}  // namespace cairn
