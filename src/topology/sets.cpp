#include "topology/sets.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <unordered_set>

namespace cairn {
namespace {

using FailureGroups = std::vector<std::uint64_t>;

/// Ranks that have the same number within their failure group: one level each.
std::vector<std::vector<int>> split_into_levels(const FailureGroups& group_of_rank) {
  std::vector<std::vector<int>> levels;
  std::unordered_map<std::uint64_t, std::size_t> seen_in_group;
  for (std::size_t rank = 0; rank < group_of_rank.size(); ++rank) {
    const std::size_t level = seen_in_group[group_of_rank[rank]]++;
    if (level == levels.size()) levels.emplace_back();
    levels[level].push_back(static_cast<int>(rank));
  }
  return levels;
}

/// Runs of consecutive ranks. If the division has a remainder, the first ones are longer by one.
void cut_level(const std::vector<int>& level, int set_size, std::vector<RedundancySet>& sets) {
  const std::size_t pieces =
      std::max<std::size_t>(1, level.size() / static_cast<std::size_t>(set_size));
  const std::size_t length = level.size() / pieces;
  const std::size_t longer = level.size() % pieces;
  auto from = level.begin();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const auto to = from + static_cast<std::ptrdiff_t>(length + (piece < longer ? 1 : 0));
    sets.emplace_back(from, to);
    from = to;
  }
}

/// The largest set of three or more that has a member in another failure group than `rank`, and
/// that member's index; null when there is none.
std::pair<RedundancySet*, std::size_t> find_donor(int rank, std::vector<RedundancySet>& sets,
                                                  const FailureGroups& group_of_rank) {
  RedundancySet* donor = nullptr;
  std::size_t partner_at = 0;
  for (RedundancySet& set : sets) {
    if (set.size() < 3 || (donor != nullptr && set.size() <= donor->size())) continue;
    for (std::size_t i = set.size(); i-- > 0;)
      if (group_of_rank[set[i]] != group_of_rank[rank]) {
        donor = &set;
        partner_at = i;
        break;
      }
  }
  return {donor, partner_at};
}

/// A set that `rank` may join unchanged: no member shares the rank's failure group.
RedundancySet* find_host(int rank, std::vector<RedundancySet>& sets,
                         const FailureGroups& group_of_rank) {
  for (RedundancySet& set : sets)
    if (!set.empty() && std::none_of(set.begin(), set.end(), [&](int member) {
          return group_of_rank[member] == group_of_rank[rank];
        }))
      return &set;
  return nullptr;
}

/// Takes a partner for the one rank of `lonely` from a larger set. If that is impossible, moves the
/// rank to another set, and leaves `lonely` empty.
void find_company(RedundancySet& lonely, std::vector<RedundancySet>& sets,
                  const FailureGroups& group_of_rank) {
  const int rank = lonely.front();
  if (const auto [donor, at] = find_donor(rank, sets, group_of_rank); donor != nullptr) {
    lonely.push_back((*donor)[at]);
    donor->erase(donor->begin() + static_cast<std::ptrdiff_t>(at));
    std::sort(lonely.begin(), lonely.end());
  } else if (RedundancySet* host = find_host(rank, sets, group_of_rank); host != nullptr) {
    host->push_back(rank);
    std::sort(host->begin(), host->end());
    lonely.clear();
  }
}

}  // namespace

std::vector<RedundancySet> form_sets(const FailureGroups& failure_group_of_rank, int set_size) {
  std::vector<RedundancySet> sets;
  for (const std::vector<int>& level : split_into_levels(failure_group_of_rank))
    cut_level(level, set_size, sets);
  for (RedundancySet& set : sets)
    if (set.size() == 1) find_company(set, sets, failure_group_of_rank);
  std::erase_if(sets, [](const RedundancySet& set) { return set.empty(); });
  std::sort(sets.begin(), sets.end());
  return sets;
}

const RedundancySet& set_of(const std::vector<RedundancySet>& sets, int rank) {
  const auto found = std::find_if(sets.begin(), sets.end(), [rank](const RedundancySet& set) {
    return std::find(set.begin(), set.end(), rank) != set.end();
  });
  assert(found != sets.end());
  return *found;
}

bool spread_over_groups(const RedundancySet& set, const FailureGroups& failure_group_of_rank) {
  std::unordered_set<std::uint64_t> seen;
  return std::all_of(set.begin(), set.end(),
                     [&](int rank) { return seen.insert(failure_group_of_rank[rank]).second; });
}

}  // namespace cairn
