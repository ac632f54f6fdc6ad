#include "session/same_call.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "topology/placement.hpp"

namespace cairn {

Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::uint64_t arguments, std::span<std::int64_t> also) {
  const std::string everything = fmt::format("{} {} {}", call, state, arguments);
  const auto hash = static_cast<std::int64_t>(hash_of_name(everything) >> 1);
  // As long in every call, because the ranks may be in different ones.
  std::array<std::int64_t, 4> extremes = {hash, -hash};
  assert(also.size() <= extremes.size() - 2);
  std::copy(also.begin(), also.end(), extremes.begin() + 2);
  comm.allreduce(extremes, Reduce::max);
  std::copy_n(extremes.begin() + 2, also.size(), also.begin());
  if (extremes[0] == -extremes[1]) return {};
  return agree(comm, hash == -extremes[1]
                         ? Status(fail(Code::differs,
                                       "{} in state {}: other ranks made another call, or passed "
                                       "other arguments; all ranks must make the same calls in the "
                                       "same order",
                                       call, state))
                         : Status{});
}

}  // namespace cairn
