#include "session/same_call.hpp"

#include <array>

#include "topology/placement.hpp"

namespace cairn {

Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::uint64_t arguments) {
  const std::string everything = fmt::format("{} {} {}", call, state, arguments);
  const auto hash = static_cast<std::int64_t>(hash_of_name(everything) >> 1);
  std::array<std::int64_t, 2> extremes = {hash, -hash};
  comm.allreduce(extremes, Reduce::min);
  if (extremes[0] == -extremes[1]) return {};
  return agree(comm, hash == extremes[0]
                         ? Status(fail(Code::differs,
                                       "{} in state {}: other ranks made another call, or passed "
                                       "other arguments; all ranks must make the same calls in the "
                                       "same order",
                                       call, state))
                         : Status{});
}

}  // namespace cairn
