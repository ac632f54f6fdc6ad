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
    return fail(Code::bad_setting, "checkpoint descriptor names store {}, which has no STORE line",
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

std::vector<std::string> weaknesses_of(const std::vector<Level>& levels, int ranks) {
  std::vector<std::string> weaknesses;
  for (const Level& level : levels) {
    const std::uint32_t asked = failures_asked(level.settings);
    if (level.unprotected_ranks > 0)
      weaknesses.push_back(fmt::format(
          "{} of {} ranks have no rank in another failure group {} to be protected by: what they "
          "write is lost with their node; run on more nodes",
          level.unprotected_ranks, ranks, level.settings.group));
    else if (level.fewest_failures < asked)
      weaknesses.push_back(fmt::format(
          "{} is to survive {} lost members of each set, and some sets are so small that they "
          "survive {}; run on more nodes",
          name_of(level.settings.scheme), asked, level.fewest_failures));
    if (level.sets_without_hop > 0)
      weaknesses.push_back(fmt::format(
          "in {} of {} redundancy sets a copy {} members away would come home or meet another: it "
          "goes to the next member; choose a CAIRN_PARTNER_HOP without a divisor in common with "
          "the "
          "size of the sets",
          level.sets_without_hop, level.sets, level.settings.partner_hop));
  }
  return weaknesses;
}

}  // namespace cairn
