// The error of a file that does not exist.
#pragma once

#include "base/error.hpp"

namespace cairn {

inline bool is_absent(const Error& error) { return error.code == Code::not_found; }

}  // namespace cairn
