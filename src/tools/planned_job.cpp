#include "tools/planned_job.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/ranges.h>

#include "config/options.hpp"
#include "records/set_layout.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

constexpr int most_ranks = 10'000'000;

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

/// Settings without any descriptor do not resolve, so there is one.
const CheckpointSettings& usual_checkpoint(const std::vector<CheckpointSettings>& checkpoints) {
  return *std::min_element(
      checkpoints.begin(), checkpoints.end(), [](const auto& a, const auto& b) {
        return std::pair(a.output, a.interval) < std::pair(b.output, b.interval);
      });
}

Result<CheckpointSettings> find_checkpoint(const std::vector<CheckpointSettings>& checkpoints,
                                           const std::string& id) {
  if (id.empty()) return usual_checkpoint(checkpoints);
  std::vector<std::string> ids;
  for (const CheckpointSettings& checkpoint : checkpoints) {
    ids.push_back(std::to_string(checkpoint.id));
    if (ids.back() == id) return checkpoint;
  }
  return fail(
      Code::bad_argument,
      "--ckpt={}: no enabled descriptor has that id; there {} {}. Descriptors are CKPT lines "
      "of the settings, used with SCR_COPY_TYPE=FILE",
      id, ids.size() == 1 ? "is" : "are", fmt::join(ids, ", "));
}

bool in_shared_store(const CheckpointSettings& checkpoint, const Settings& settings) {
  return std::any_of(settings.stores.begin(), settings.stores.end(), [&](const StoreSettings& s) {
    return s.path == checkpoint.store && s.shared();
  });
}

/// `checkpoint` with the values of the command line.
Result<CheckpointSettings> as_on_command_line(CheckpointSettings checkpoint,
                                              const PlannedJob& job) {
  CAIRN_TRY(set_leaf(checkpoint, "TYPE", "--scheme", job.scheme));
  CAIRN_TRY(set_leaf(checkpoint, "SET_SIZE", "--set-size", job.set_size));
  CAIRN_TRY(set_leaf(checkpoint, "GROUP", "--group", job.group));
  CAIRN_TRY(set_leaf(checkpoint, "SET_FAILURES", "--failures", job.failures));
  CAIRN_TRY(set_leaf(checkpoint, "COPIES", "--copies", job.copies));
  CAIRN_TRY(set_leaf(checkpoint, "HOP", "--hop", job.hop));
  if (const std::uint32_t failures = failures_asked(checkpoint);
      failures >= static_cast<std::uint32_t>(checkpoint.set_size))
    return fail(Code::bad_argument,
                "{} in sets of {} cannot survive {} failures in each; ask for fewer or for larger "
                "sets",
                name_of(checkpoint.scheme), checkpoint.set_size, failures);
  return checkpoint;
}

/// SINGLE protects no rank, so each rank is a set of its own.
std::vector<RedundancySet> single_sets(std::size_t ranks) {
  std::vector<RedundancySet> sets;
  for (std::size_t rank = 0; rank < ranks; ++rank) sets.push_back({static_cast<int>(rank)});
  return sets;
}

Result<std::vector<std::uint64_t>> group_numbers(const Layout& layout, const std::string& kind) {
  Placement placement;
  for (const std::string& node : layout.node_of_rank)
    placement.node_of_rank.push_back(hash_of_name(node));
  return failure_groups(placement, kind, layout.node_groups);
}

std::string name_of_group(const Layout& layout, const std::string& kind, const std::string& node) {
  if (kind == "NODE") return node;
  if (kind == "WORLD") return kind;
  return layout.node_groups.at(node).at(kind);
}

}  // namespace

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= names.size();) {
    const std::size_t to = std::min(names.find(',', from), names.size());
    parts.push_back(names.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

Result<std::vector<std::string>> node_names_of(const PlannedRanks& ranks) {
  if (!ranks.hosts.empty()) {
    auto names = split_names(ranks.hosts);
    const auto gap = std::find(names.begin(), names.end(), "");
    if (gap == names.end()) return names;
    return fail(Code::bad_argument,
                "--hosts={} gives no node for rank {}; write one name for each rank, with commas "
                "between",
                ranks.hosts, gap - names.begin());
  }
  if (ranks.nodes < 1 || ranks.per_node < 1 || ranks.nodes > most_ranks / ranks.per_node)
    return fail(Code::bad_argument,
                "--nodes={} --ranks-per-node={} is not a layout: both must be 1 or more, with at "
                "most {} ranks",
                ranks.nodes, ranks.per_node, most_ranks);
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks.nodes * ranks.per_node; ++rank)
    names.push_back(
        fmt::format("node{}", ranks.cyclic ? rank % ranks.nodes : rank / ranks.per_node));
  return names;
}

Result<Layout> lay_out(const PlannedJob& job, Files& files, ProcessFacts process, const Log& log) {
  Layout layout;
  CAIRN_ASSIGN(layout.node_of_rank, node_names_of(job.ranks));
  // The settings on that node, as this node may have no GROUPS line.
  if (!job.ranks.hosts.empty()) process.environment["SCR_NODE_NAME"] = layout.node_of_rank.front();
  if (!job.source.prefix.empty())
    CAIRN_TRY(check_prefix_folder(files, normalise(job.source.prefix, process.working_folder)));
  CAIRN_ASSIGN(const ResolvedSettings resolved,
               read_job_settings(job.source, files, std::move(process), log));
  const Settings& settings = resolved.settings;
  CAIRN_ASSIGN(layout.checkpoint, find_checkpoint(settings.checkpoints, job.ckpt));
  for (const CheckpointSettings& other : settings.checkpoints)
    if (other.id != layout.checkpoint.id) layout.others.push_back(other);
  CAIRN_ASSIGN(layout.checkpoint, as_on_command_line(layout.checkpoint, job));
  layout.shared = layout.checkpoint.bypass || in_shared_store(layout.checkpoint, settings);
  layout.node_groups = settings.node_groups;
  CAIRN_ASSIGN(const std::vector<std::uint64_t> groups,
               group_numbers(layout, layout.checkpoint.group));
  if (layout.shared) return layout;
  layout.sets = layout.checkpoint.scheme == Scheme::single
                    ? single_sets(layout.node_of_rank.size())
                    : form_sets(groups, layout.checkpoint.set_size);
  return layout;
}

std::size_t nodes_in(const Layout& layout) {
  return std::unordered_set<std::string>(layout.node_of_rank.begin(), layout.node_of_rank.end())
      .size();
}

Result<FailureGroups> failure_groups_of(const Layout& layout, const std::string& kind) {
  CheckpointSettings like = layout.checkpoint;
  CAIRN_TRY(set_leaf(like, "GROUP", "failure group", kind));
  FailureGroups groups;
  groups.kind = like.group;
  CAIRN_ASSIGN(const std::vector<std::uint64_t> numbers, group_numbers(layout, groups.kind));
  std::unordered_map<std::uint64_t, int> places;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    const auto [place, fresh] = places.try_emplace(numbers[rank], static_cast<int>(places.size()));
    if (fresh)
      groups.names.push_back(name_of_group(layout, groups.kind, layout.node_of_rank[rank]));
    groups.group_of_rank.push_back(place->second);
  }
  return groups;
}

}  // namespace cairn
