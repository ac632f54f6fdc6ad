#include "tools/layout_command.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "config/options.hpp"
#include "tools/exit_codes.hpp"
#include "tools/layout_text.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

constexpr int most_ranks = 10'000'000;

Result<std::vector<std::string>> split_hosts(const std::string& hosts) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= hosts.size();) {
    const std::size_t to = std::min(hosts.find(',', from), hosts.size());
    names.push_back(hosts.substr(from, to - from));
    if (names.back().empty())
      return fail(Code::bad_argument,
                  "--hosts={} gives no node for rank {}; write one name for each rank, with commas "
                  "between",
                  hosts, names.size() - 1);
    from = to + 1;
  }
  return names;
}

/// Takes the value of one descriptor leaf from the command line, by the rules of the settings.
Status set_leaf(CheckpointSettings& checkpoint, std::string_view key, const std::string& flag,
                const std::string& text) {
  if (text.empty()) return {};
  const auto leaves = checkpoint_leaves();
  const auto leaf =
      std::find_if(leaves.begin(), leaves.end(), [key](const auto& l) { return l.key == key; });
  const auto value = read_value(leaf->rule, flag, {text, "command line"});
  if (!value) return fail(Code::bad_argument, "{}", value.error().text);
  leaf->set(checkpoint, *value);
  return {};
}

Result<CheckpointSettings> choose_checkpoint(const LayoutCommand& command,
                                             const Settings& settings) {
  // One with interval 1 there always is: settings without do not resolve.
  CheckpointSettings checkpoint =
      *std::find_if(settings.checkpoints.begin(), settings.checkpoints.end(),
                    [](const CheckpointSettings& c) { return c.interval == 1; });
  CAIRN_TRY(set_leaf(checkpoint, "TYPE", "--scheme", command.scheme));
  CAIRN_TRY(set_leaf(checkpoint, "SET_SIZE", "--set-size", command.set_size));
  CAIRN_TRY(set_leaf(checkpoint, "GROUP", "--group", command.group));
  return checkpoint;
}

/// SINGLE protects nobody, so nobody is in anybody's set.
std::vector<RedundancySet> single_sets(std::size_t ranks) {
  std::vector<RedundancySet> sets;
  for (std::size_t rank = 0; rank < ranks; ++rank) sets.push_back({static_cast<int>(rank)});
  return sets;
}

Result<Layout> lay_out(const LayoutCommand& command, Files& files, ProcessFacts process,
                       const Log& log) {
  Layout layout;
  CAIRN_ASSIGN(layout.node_of_rank, node_names_of(command.ranks));
  // The settings as that node would see them: this one may be in no GROUPS line.
  if (!command.ranks.hosts.empty())
    process.environment["SCR_NODE_NAME"] = layout.node_of_rank.front();
  CAIRN_ASSIGN(const ResolvedSettings resolved,
               read_job_settings(command.source, files, std::move(process), log));
  CAIRN_ASSIGN(layout.checkpoint, choose_checkpoint(command, resolved.settings));
  Placement placement;
  for (const std::string& node : layout.node_of_rank)
    placement.node_of_rank.push_back(hash_of_name(node));
  CAIRN_ASSIGN(const std::vector<std::uint64_t> groups,
               failure_groups(placement, layout.checkpoint.group, resolved.settings.node_groups));
  layout.sets = layout.checkpoint.scheme == Scheme::single
                    ? single_sets(layout.node_of_rank.size())
                    : form_sets(groups, layout.checkpoint.set_size);
  return layout;
}

std::size_t nodes_in(const Layout& layout) {
  return std::unordered_set<std::string>(layout.node_of_rank.begin(), layout.node_of_rank.end())
      .size();
}

nlohmann::ordered_json set_json(const RedundancySet& set, const Layout& layout) {
  auto members = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < set.size(); ++i) {
    nlohmann::ordered_json member = {
        {"rank", set[i]},
        {"node", layout.node_of_rank[static_cast<std::size_t>(set[i])]},
        {"left", nullptr}};
    if (set.size() > 1) member["left"] = set[(i + set.size() - 1) % set.size()];
    members.push_back(std::move(member));
  }
  return {{"members", std::move(members)}};
}

}  // namespace

Result<std::vector<std::string>> node_names_of(const LayoutRanks& ranks) {
  if (!ranks.hosts.empty()) return split_hosts(ranks.hosts);
  if (ranks.nodes < 1 || ranks.per_node < 1 || ranks.nodes > most_ranks / ranks.per_node)
    return fail(Code::bad_argument,
                "--nodes={} --ranks-per-node={} is no layout: both must be 1 or more, and {} ranks "
                "at most",
                ranks.nodes, ranks.per_node, most_ranks);
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks.nodes * ranks.per_node; ++rank)
    names.push_back(
        fmt::format("node{}", ranks.cyclic ? rank % ranks.nodes : rank / ranks.per_node));
  return names;
}

std::string layout_table(const Layout& layout) {
  const CheckpointSettings& checkpoint = layout.checkpoint;
  const std::string sets =
      checkpoint.scheme == Scheme::single
          ? ""
          : fmt::format(" in sets of {}, failure group {}", checkpoint.set_size, checkpoint.group);
  return fmt::format("ranks {}, nodes {}: {}{}\n\n", layout.node_of_rank.size(), nodes_in(layout),
                     name_of(checkpoint.scheme), sets) +
         describe_sets(layout.sets, layout.node_of_rank, checkpoint);
}

std::string layout_json(const Layout& layout) {
  auto sets = nlohmann::ordered_json::array();
  for (const RedundancySet& set : layout.sets) sets.push_back(set_json(set, layout));
  const auto alone = std::count_if(layout.sets.begin(), layout.sets.end(),
                                   [](const RedundancySet& set) { return set.size() == 1; });
  const nlohmann::ordered_json all = {{"scheme", name_of(layout.checkpoint.scheme)},
                                      {"set_size", layout.checkpoint.set_size},
                                      {"group", layout.checkpoint.group},
                                      {"ranks", layout.node_of_rank.size()},
                                      {"nodes", nodes_in(layout)},
                                      {"unprotected_ranks", alone},
                                      {"sets", std::move(sets)}};
  // JSON is UTF-8 and the name of a node need not be.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log) {
  const auto layout = lay_out(command, files, std::move(process), log);
  if (!layout) {
    log.error("{}", layout.error().text);
    return layout.error().code == Code::bad_argument ? exit_usage : exit_failure;
  }
  out << (command.json ? layout_json(*layout) : layout_table(*layout)) << std::flush;
  return out ? exit_ok : exit_failure;
}

}  // namespace cairn
