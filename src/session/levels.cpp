#include "session/levels.hpp"

#include <algorithm>

#include "comm/blobs.hpp"
#include "comm/group.hpp"

namespace cairn {
namespace {

Result<std::size_t> find_store(const std::vector<Store>& stores, const std::string& path) {
  const auto found = std::find_if(stores.begin(), stores.end(), [&](const Store& store) {
    return store.settings().path == path;
  });
  if (found == stores.end())
    return fail(Code::bad_setting,
                "a checkpoint descriptor names the store {}, which has no STORE line; add one",
                path);
  return static_cast<std::size_t>(found - stores.begin());
}

std::vector<std::string> node_names(Communicator& comm, const std::vector<int>& members,
                                    const std::string& mine) {
  Group set(comm, members);
  std::vector<std::string> names;
  for (const Blob& blob : allgather_blobs(set, std::as_bytes(std::span(mine.data(), mine.size()))))
    names.emplace_back(reinterpret_cast<const char*>(blob.data()), blob.size());
  return names;
}

Result<Level> resolve(Communicator& comm, const CheckpointSettings& checkpoint,
                      const Settings& settings, const std::vector<Store>& stores,
                      const Placement& placement) {
  Level level;
  level.settings = checkpoint;
  CAIRN_ASSIGN(level.store, find_store(stores, checkpoint.store));
  CAIRN_ASSIGN(level.failure_groups,
               failure_groups(placement, checkpoint.group, settings.node_groups));
  std::vector<int> members = {comm.rank()};
  const bool alone = checkpoint.scheme == Scheme::single || checkpoint.bypass;
  if (!alone && !stores[level.store].shared()) {
    const auto sets = form_sets(level.failure_groups, checkpoint.set_size);
    members = set_of(sets, comm.rank());
    for (const RedundancySet& set : sets) {
      const Encoding encoding = make_encoding(checkpoint, set, 1);
      level.unprotected_ranks += encoding.scheme == Scheme::single ? 1 : 0;
      level.fewest_failures = std::min(level.fewest_failures, encoding.failures);
      level.sets_without_hop += hop_fell_back(checkpoint, encoding) ? 1 : 0;
      ++level.sets;
    }
  }
  level.encoding = make_encoding(checkpoint, std::move(members),
                                 static_cast<std::uint32_t>(settings.block_bytes));
  return level;
}

}  // namespace

Result<std::vector<Level>> resolve_levels(Communicator& comm, const Settings& settings,
                                          const std::vector<Store>& stores,
                                          const Placement& placement) {
  std::vector<Level> levels;
  for (const CheckpointSettings& checkpoint : settings.checkpoints) {
    // Settings and placement are the same everywhere, so all ranks fail here or none does.
    CAIRN_ASSIGN(Level level, resolve(comm, checkpoint, settings, stores, placement));
    level.encoding.member_nodes = node_names(comm, level.encoding.members, settings.node_name);
    levels.push_back(std::move(level));
  }
  return levels;
}

bool survives_nodes(const Level& level, const Store& store) {
  return store.shared() || (level.sets > 0 && level.unprotected_ranks == 0);
}

bool is_used(const StoreSettings& store, const Settings& settings) {
  return std::any_of(
      settings.checkpoints.begin(), settings.checkpoints.end(),
      [&](const CheckpointSettings& checkpoint) { return checkpoint.store == store.path; });
}

std::size_t choose_level(const std::vector<Level>& levels, const DatasetInfo& dataset) {
  std::size_t best = 0;
  int best_interval = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const CheckpointSettings& candidate = levels[i].settings;
    if (dataset.is_output() && candidate.output) return i;
    const auto interval = static_cast<std::uint64_t>(candidate.interval);
    const bool due = dataset.is_checkpoint() ? dataset.checkpoint % interval == 0 : interval == 1;
    // Of two alike, the one that is not there for outputs.
    const bool fits_better =
        candidate.interval > best_interval ||
        (candidate.interval == best_interval && levels[best].settings.output && !candidate.output);
    if (due && fits_better) {
      best = i;
      best_interval = candidate.interval;
    }
  }
  return best;
}

namespace {

std::string of_unprotected(const Level& level, int ranks) {
  const std::string& group = level.settings.group;
  if (level.unprotected_ranks < ranks)
    return fmt::format(
        "{} of {} ranks have no partner in another failure group {}, so a loss of their node also "
        "loses their files. Run on more nodes",
        level.unprotected_ranks, ranks, group);
  if (group != "NODE")
    return fmt::format(
        "All ranks are in one failure group {}, so a loss of that group also loses their files. "
        "Run on more nodes, or choose another GROUP",
        group);
  return "All ranks run on one node, so no other node protects their files, and a loss of the node "
         "loses them. Run on more nodes";
}

}  // namespace

std::vector<std::string> weaknesses_of(const std::vector<Level>& levels, int ranks) {
  std::vector<std::string> weaknesses;
  for (const Level& level : levels) {
    const std::uint32_t asked = failures_asked(level.settings);
    if (level.unprotected_ranks > 0)
      weaknesses.push_back(of_unprotected(level, ranks));
    else if (level.fewest_failures < asked)
      weaknesses.push_back(
          fmt::format("{} should survive {} lost members of each redundancy set, but the smallest "
                      "set survives only {}; run on more nodes",
                      name_of(level.settings.scheme), asked, level.fewest_failures));
    if (level.sets_without_hop > 0)
      weaknesses.push_back(
          fmt::format("in {} of {} redundancy sets, a hop of {} would place a copy on its owner or "
                      "on another copy, so the next member keeps it; choose a CAIRN_PARTNER_HOP "
                      "that has no common divisor with the set size",
                      level.sets_without_hop, level.sets, level.settings.partner_hop));
  }
  return weaknesses;
}

}  // namespace cairn
