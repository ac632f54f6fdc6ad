#pragma once

#include <memory>

#include "files/files.hpp"

namespace cairn {

/// The real file system of this machine.
std::unique_ptr<Files> make_posix_files();

}  // namespace cairn
