// Are all ranks in the same call?
#pragma once

#include <string_view>

#include "comm/communicator.hpp"

namespace cairn {

/// Collective. differs, on all ranks, if they are in another call, in another state, or have passed
/// other arguments (`arguments` is a hash of those that must be equal). One allreduce.
Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::uint64_t arguments = 0);

}  // namespace cairn
