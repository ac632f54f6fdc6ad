#include "topology/layout_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn {
namespace {

std::string describe_member(const RedundancySet& set, std::size_t index,
                            const std::vector<std::string>& node_of_rank, Scheme scheme) {
  const int left = set[(index + set.size() - 1) % set.size()];
  const std::string who = fmt::format("  rank {:<4} on {:<12}", set[index],
                                      node_of_rank[static_cast<std::size_t>(set[index])]);
  if (set.size() == 1 || scheme == Scheme::single) return who + " keeps its own data only\n";
  if (scheme == Scheme::partner)
    return who + fmt::format(" keeps a copy of the data of rank {}\n", left);
  return who + fmt::format(" keeps 1/{} of the set's parity, and the record of rank {}\n",
                           set.size(), left);
}

}  // namespace

std::string name_of_scheme(Scheme scheme) {
  switch (scheme) {
    case Scheme::single:
      return "SINGLE";
    case Scheme::partner:
      return "PARTNER";
    case Scheme::xor_:
      return "XOR";
    case Scheme::rs:
      return "RS";
  }
  return "unknown";
}

std::string describe_sets(const std::vector<RedundancySet>& sets,
                          const std::vector<std::string>& node_of_rank, Scheme scheme) {
  std::string text;
  int unprotected = 0;
  for (std::size_t number = 0; number < sets.size(); ++number) {
    const RedundancySet& set = sets[number];
    text += fmt::format("set {} of {}, {}\n", number + 1, sets.size(),
                        set.size() == 1
                            ? "1 rank, not protected"
                            : fmt::format("{} ranks, {}", set.size(), name_of_scheme(scheme)));
    for (std::size_t index = 0; index < set.size(); ++index)
      text += describe_member(set, index, node_of_rank, scheme);
    unprotected += set.size() == 1 ? 1 : 0;
  }
  if (unprotected > 0 && scheme != Scheme::single)
    text += fmt::format(
        "{} of {} ranks cannot be protected: no rank in another failure group is "
        "left to pair them with\n",
        unprotected, node_of_rank.size());
  return text;
}

}  // namespace cairn
