#include "tools/layout_text.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "redundancy/replicas.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

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

/// With "left", the rank whose record, and with PARTNER data, the member keeps.
void add_member(Report& report, Json& members, const Encoding& encoding, std::size_t index,
                const Layout& layout) {
  const std::size_t size = encoding.members.size();
  const int rank = encoding.members[index];
  const std::string& node = layout.node_of_rank[static_cast<std::size_t>(rank)];
  const std::string keeps = describe_what_it_keeps(encoding, static_cast<int>(index));
  members.push_back(
      {{"rank", rank},
       {"node", node},
       {"left", size > 1 ? Json(encoding.members[(index + size - 1) % size]) : Json()},
       {"text", keeps}});
  report.line("  rank {:<4} on {:<12} {}", rank, node, keeps);
}

void add_set(Report& report, const Encoding& encoding, std::size_t number, const Layout& layout) {
  const std::string protection = describe_protection(encoding);
  report.line("set {} of {}, {}", number, layout.sets.size(), protection);
  Json members = Json::array();
  for (std::size_t index = 0; index < encoding.members.size(); ++index)
    add_member(report, members, encoding, index, layout);
  report.facts["sets"].push_back({{"text", protection}, {"members", std::move(members)}});
}

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

}  // namespace

Report report_of_job(const Layout& layout) {
  const CheckpointSettings& checkpoint = layout.checkpoint;
  Report report;
  report.text = describe_job(layout);
  report.facts = {{"ckpt", checkpoint.id},
                  {"other_ckpts", Json::array()},
                  {"store", checkpoint.store},
                  {"shared", layout.shared},
                  {"bypass", checkpoint.bypass},
                  {"scheme", name_of(layout.shared ? Scheme::single : checkpoint.scheme)},
                  {"set_size", checkpoint.set_size},
                  {"group", checkpoint.group},
                  {"ranks", layout.node_of_rank.size()},
                  {"nodes", nodes_in(layout)}};
  for (const CheckpointSettings& other : layout.others)
    report.facts["other_ckpts"].push_back(other.id);
  return report;
}

std::string describe_protection(const Encoding& encoding) {
  if (encoding.members.size() == 1) return "1 rank, not protected";
  const std::string ranks =
      fmt::format("{} ranks, {}", encoding.members.size(), name_of(encoding.scheme));
  return encoding.scheme == Scheme::rs ? ranks + fmt::format("({})", encoding.failures) : ranks;
}

void add_sets(Report& report, const Layout& layout) {
  const CheckpointSettings& checkpoint = layout.checkpoint;
  report.facts["sets"] = Json::array();
  std::size_t alone = 0;
  std::size_t without_hop = 0;
  if (!layout.shared) report.line("");
  for (std::size_t number = 0; number < layout.sets.size(); ++number) {
    const Encoding encoding = make_encoding(checkpoint, layout.sets[number], 1);
    alone += layout.sets[number].size() == 1 ? 1 : 0;
    without_hop += hop_fell_back(checkpoint, encoding) ? 1 : 0;
    add_set(report, encoding, number + 1, layout);
  }
  report.facts["unprotected_ranks"] = alone;
  report.facts["sets_without_hop"] = without_hop;
  if (alone > 0 && checkpoint.scheme != Scheme::single)
    report.line(
        "{} of {} ranks cannot be protected: there is no rank in another failure group to pair "
        "them with",
        alone, layout.node_of_rank.size());
  if (without_hop > 0)
    report.line(
        "in {} of {} sets, a hop of {} would place a copy on its owner or on another copy: the "
        "next member keeps it instead",
        without_hop, layout.sets.size(), checkpoint.partner_hop);
}

}  // namespace cairn
