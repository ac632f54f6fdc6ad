#include "tools/layout_text.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "redundancy/replicas.hpp"

namespace cairn {
namespace {

std::string describe_use(const CheckpointSettings& checkpoint) {
  return fmt::format("INTERVAL={}{}{}", checkpoint.interval, checkpoint.output ? " OUTPUT=1" : "",
                     checkpoint.bypass ? " BYPASS=1" : "");
}

std::string describe_what_it_keeps(const Encoding& encoding, int index) {
  std::vector<int> kept;
  for (const int member : records_kept_by(encoding, index))
    kept.push_back(encoding.members[static_cast<std::size_t>(member)]);
  if (encoding.scheme == Scheme::partner)
    kept.resize(encoding.failures);  // of others, the record only
  const std::string ranks =
      fmt::format("{} {}", kept.size() == 1 ? "rank" : "ranks", fmt::join(kept, ", "));
  switch (encoding.scheme) {
    case Scheme::single:
      break;
    case Scheme::partner:
      return fmt::format("keeps a copy of the data of {}", ranks);
    case Scheme::xor_:
    case Scheme::rs:
      return fmt::format("keeps {}/{} of the set's parity, and the {} of {}", encoding.failures,
                         encoding.members.size(), kept.size() == 1 ? "record" : "records", ranks);
  }
  return "keeps its own data only";
}

/// Which descriptor this is about, where there are several.
std::string describe_choice(const Layout& layout) {
  if (layout.others.empty()) return "";
  const CheckpointSettings& chosen = layout.checkpoint;
  std::vector<std::string> others;
  for (const CheckpointSettings& other : layout.others)
    others.push_back(fmt::format("CKPT={} ({})", other.id, describe_use(other)));
  return fmt::format("this is CKPT={} ({}); with --ckpt there are {}\n", chosen.id,
                     describe_use(chosen), fmt::join(others, ", "));
}

std::string describe_set(const Encoding& encoding, const std::vector<std::string>& node_of_rank) {
  std::string text;
  for (std::size_t index = 0; index < encoding.members.size(); ++index) {
    const int rank = encoding.members[index];
    text += fmt::format("  rank {:<4} on {:<12} {}\n", rank,
                        node_of_rank[static_cast<std::size_t>(rank)],
                        describe_what_it_keeps(encoding, static_cast<int>(index)));
  }
  return text;
}

}  // namespace

std::string describe_job(const Layout& layout) {
  const CheckpointSettings& checkpoint = layout.checkpoint;
  const std::string sets =
      checkpoint.scheme == Scheme::single
          ? ""
          : fmt::format(" in sets of {}, failure group {}", checkpoint.set_size, checkpoint.group);
  const std::string job =
      fmt::format("ranks {}, nodes {}: ", layout.node_of_rank.size(), nodes_in(layout));
  if (checkpoint.bypass)
    return job + fmt::format(
                     "SINGLE, because the cache is bypassed: the loss of a node does not affect "
                     "the prefix directory\n{}",
                     describe_choice(layout));
  if (layout.shared)
    return job + fmt::format(
                     "SINGLE, because all ranks share the store {}: the loss of a node does not "
                     "affect it\n{}",
                     checkpoint.store, describe_choice(layout));
  return job + fmt::format("{}{}\n{}", name_of(checkpoint.scheme), sets, describe_choice(layout));
}

nlohmann::ordered_json descriptor_json(const Layout& layout) {
  const CheckpointSettings& checkpoint = layout.checkpoint;
  auto others = nlohmann::ordered_json::array();
  for (const CheckpointSettings& other : layout.others) others.push_back(other.id);
  return {{"ckpt", checkpoint.id},
          {"other_ckpts", std::move(others)},
          {"store", checkpoint.store},
          {"shared", layout.shared},
          {"bypass", checkpoint.bypass},
          {"scheme", name_of(layout.shared ? Scheme::single : checkpoint.scheme)},
          {"set_size", checkpoint.set_size},
          {"group", checkpoint.group},
          {"ranks", layout.node_of_rank.size()},
          {"nodes", nodes_in(layout)}};
}

std::string describe_protection(const Encoding& encoding) {
  if (encoding.members.size() == 1) return "1 rank, not protected";
  const std::string ranks =
      fmt::format("{} ranks, {}", encoding.members.size(), name_of(encoding.scheme));
  return encoding.scheme == Scheme::rs ? ranks + fmt::format("({})", encoding.failures) : ranks;
}

std::string describe_sets(const std::vector<RedundancySet>& sets,
                          const std::vector<std::string>& node_of_rank,
                          const CheckpointSettings& checkpoint) {
  std::string text;
  for (std::size_t number = 0; number < sets.size(); ++number) {
    const Encoding encoding = make_encoding(checkpoint, sets[number], 1);
    text +=
        fmt::format("set {} of {}, {}\n", number + 1, sets.size(), describe_protection(encoding)) +
        describe_set(encoding, node_of_rank);
  }
  const auto alone =
      std::count_if(sets.begin(), sets.end(), [](const auto& set) { return set.size() == 1; });
  if (alone > 0 && checkpoint.scheme != Scheme::single)
    text += fmt::format(
        "{} of {} ranks cannot be protected: there is no rank in another failure group to pair "
        "them with\n",
        alone, node_of_rank.size());
  const auto without_hop = std::count_if(sets.begin(), sets.end(), [&](const auto& set) {
    return hop_fell_back(checkpoint, make_encoding(checkpoint, set, 1));
  });
  if (without_hop > 0)
    text += fmt::format(
        "in {} of {} sets, a hop of {} would place a copy on its owner or on another copy: the "
        "next member keeps it instead\n",
        without_hop, sets.size(), checkpoint.partner_hop);
  return text;
}

}  // namespace cairn
