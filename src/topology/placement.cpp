#include "topology/placement.hpp"

#include <unordered_map>
#include <unordered_set>

namespace cairn {

std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

int Placement::nodes() const {
  return static_cast<int>(
      std::unordered_set<std::uint64_t>(node_of_rank.begin(), node_of_rank.end()).size());
}

std::vector<int> Placement::beside(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other)
    if (node_of_rank[other] == node_of_rank[rank]) ranks.push_back(other);
  return ranks;
}

std::vector<int> Placement::first_ranks() const {
  std::unordered_set<std::uint64_t> seen;
  std::vector<int> first;
  for (int rank = 0; rank < size(); ++rank)
    if (seen.insert(node_of_rank[static_cast<std::size_t>(rank)]).second) first.push_back(rank);
  return first;
}

Placement gather_placement(Communicator& comm, const std::string& node_name) {
  Placement placement;
  placement.node_of_rank.resize(static_cast<std::size_t>(comm.size()));
  const std::uint64_t mine = hash_of_name(node_name);
  comm.allgather(bytes_of(mine), std::as_writable_bytes(std::span(placement.node_of_rank)));
  return placement;
}

Result<std::vector<std::uint64_t>> failure_groups(
    const Placement& placement, const std::string& group,
    const std::map<std::string, NodeGroups>& node_groups) {
  if (group == "NODE") return placement.node_of_rank;
  if (group == "WORLD") return std::vector<std::uint64_t>(placement.node_of_rank.size(), 0);

  std::unordered_map<std::uint64_t, std::uint64_t> group_of_node;
  for (const auto& [node, groups] : node_groups)
    if (const auto found = groups.find(group); found != groups.end())
      group_of_node[hash_of_name(node)] = hash_of_name(found->second);

  std::vector<std::uint64_t> result;
  result.reserve(placement.node_of_rank.size());
  for (int rank = 0; rank < placement.size(); ++rank) {
    const auto found = group_of_node.find(placement.node_of_rank[rank]);
    if (found == group_of_node.end())
      return fail(Code::bad_setting,
                  "the node of rank {} has no failure group {}; add a line GROUPS=<node> {}=<name> "
                  "to the configuration file",
                  rank, group, group);
    result.push_back(found->second);
  }
  return result;
}

}  // namespace cairn
