#include "rbio/roles.hpp"

#include <map>

namespace cairn::rbio {
namespace {

std::vector<int> group_by_node(const std::vector<std::uint64_t>& node_of_rank) {
  std::map<std::uint64_t, int> group_of_node;
  std::vector<int> groups;
  groups.reserve(node_of_rank.size());
  for (const std::uint64_t node : node_of_rank)
    groups.push_back(
        group_of_node.emplace(node, static_cast<int>(group_of_node.size())).first->second);
  return groups;
}

std::vector<int> group_by_size(std::size_t ranks, int group_size) {
  std::vector<int> groups(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    groups[rank] = static_cast<int>(rank) / group_size;
  return groups;
}

int largest_in(const std::vector<int>& numbers) {
  int largest = 0;
  for (const int number : numbers) largest = std::max(largest, number);
  return largest;
}

}  // namespace

bool Roles::writes_header() const {
  const auto index = static_cast<std::size_t>(group);
  return is_writer && (group == 0 || part_of_group[index - 1] != part_of_group[index]);
}

Result<Roles> assign_roles(const std::vector<std::uint64_t>& node_of_rank, int group_size,
                           int parts, int rank) {
  if (group_size < 0 || parts < 0)
    return fail(Code::bad_argument,
                "a group of {} ranks and {} files: give 0 for the default, or a positive number",
                group_size, parts);
  Roles roles;
  roles.group_of_rank = group_size == 0 ? group_by_node(node_of_rank)
                                        : group_by_size(node_of_rank.size(), group_size);
  roles.groups = largest_in(roles.group_of_rank) + 1;
  roles.parts = parts == 0 ? roles.groups : parts;
  if (roles.parts > roles.groups)
    return fail(Code::bad_setting,
                "{} files for {} groups of ranks: each file needs a group of its own; give at most "
                "{} files, or a smaller group size",
                roles.parts, roles.groups, roles.groups);
  for (int group = 0; group < roles.groups; ++group)
    roles.part_of_group.push_back(
        static_cast<int>(std::int64_t{group} * roles.parts / roles.groups));
  roles.group = roles.group_of_rank[static_cast<std::size_t>(rank)];
  for (int other = 0; other < static_cast<int>(roles.group_of_rank.size()); ++other) {
    const int group = roles.group_of_rank[static_cast<std::size_t>(other)];
    if (group == roles.group) roles.group_ranks.push_back(other);
    if (roles.part_of_group[static_cast<std::size_t>(group)] == roles.part())
      roles.part_ranks.push_back(other);
  }
  roles.is_writer = roles.group_ranks.front() == rank;
  return roles;
}

}  // namespace cairn::rbio
