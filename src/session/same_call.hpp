// Are all ranks in the same call?
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"

namespace cairn {

/// Collective. differs, on all ranks, if they are in another call, in another state, or have passed
/// other arguments (`arguments`: those that must be equal, for people). The error says which ranks
/// called what. One allreduce, which takes the largest over all ranks of each of `also`, as many as
/// the call has, along; more messages only where ranks differ.
Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::string_view arguments = "", std::span<std::int64_t> also = {});

/// Collective. Who has which text, the rarest first: "rank 3: B; ranks 0-2, 4: A". The same on all
/// ranks.
std::string who_has_which(Communicator& comm, const std::string& mine);

}  // namespace cairn
