#include "session/same_call.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// Of as many different texts a message quotes one each.
constexpr std::size_t most_quoted = 4;
constexpr std::size_t longest_quoted = 300;

/// Collective. The ranks that have the same hash, the smallest group first.
std::vector<std::vector<int>> group_by(Communicator& comm, std::int64_t hash) {
  std::vector<std::int64_t> hashes(static_cast<std::size_t>(comm.size()));
  comm.allgather(bytes_of(hash), std::as_writable_bytes(std::span(hashes)));
  std::map<std::int64_t, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank)
    ranks_of[hashes[rank]].push_back(static_cast<int>(rank));
  std::vector<std::vector<int>> groups;
  for (auto& [each, ranks] : ranks_of) groups.push_back(std::move(ranks));
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a[0] < b[0];
  });
  return groups;
}

std::int64_t hash_of(std::string_view text) {
  return static_cast<std::int64_t>(hash_of_name(text) >> 1);
}

}  // namespace

std::string who_has_which(Communicator& comm, const std::string& mine) {
  const auto groups = group_by(comm, hash_of(mine));
  std::string text;
  for (std::size_t i = 0; i < groups.size() && i < most_quoted; ++i) {
    const Bytes bytes = std::as_bytes(std::span(mine));
    Blob quoted(bytes.begin(), bytes.end());
    bcast_blob(comm, quoted, groups[i][0]);
    const std::string_view its(reinterpret_cast<const char*>(quoted.data()), quoted.size());
    text += fmt::format("{}{}: {}{}", i == 0 ? "" : "; ", format_ranks(groups[i]),
                        its.substr(0, longest_quoted), its.size() > longest_quoted ? "..." : "");
  }
  if (groups.size() > most_quoted)
    text += fmt::format("; and {} more variants", groups.size() - most_quoted);
  return text;
}

Status check_same_call(Communicator& comm, std::string_view call, std::string_view state,
                       std::string_view arguments, std::span<std::int64_t> also) {
  const std::string mine = arguments.empty()
                               ? fmt::format("{} in state {}", call, state)
                               : fmt::format("{} in state {} with {}", call, state, arguments);
  const std::int64_t hash = hash_of(mine);
  // As long in every call, because the ranks may be in different ones.
  std::array<std::int64_t, 5> extremes = {hash, -hash};
  assert(also.size() <= extremes.size() - 2);
  std::copy(also.begin(), also.end(), extremes.begin() + 2);
  comm.allreduce(extremes, Reduce::max);
  std::copy_n(extremes.begin() + 2, also.size(), also.begin());
  if (extremes[0] == -extremes[1]) return {};
  return fail(Code::differs,
              "the ranks made different calls, so none of them was executed: {}. All ranks must "
              "make the same calls in the same order, with the same arguments",
              who_has_which(comm, mine));
}

}  // namespace cairn
