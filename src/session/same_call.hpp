// Are all ranks in the same call?
#pragma once

#include <span>
#include <string_view>

#include "comm/communicator.hpp"

namespace cairn {

/// Collective. differs, on all ranks, if they are in another call, in another state, or have passed
/// other arguments (`arguments` is a hash of those that must be equal). One allreduce, which takes
/// the largest over all ranks of each of `also`, as many as the call has, along.
Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::uint64_t arguments = 0, std::span<std::int64_t> also = {});

}  // namespace cairn
