// The checkpoint descriptors of the settings, resolved for this run: which store, which set.
#pragma once

#include <string>
#include <vector>

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "records/rank_record.hpp"
#include "topology/placement.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// One kind of checkpoint: where it goes and how it is protected.
struct Level {
  CheckpointSettings settings;
  std::size_t store = 0;                      ///< index in the stores
  std::vector<std::uint64_t> failure_groups;  ///< by rank
  Encoding encoding;                          ///< scheme, failures, my set and its nodes
  int unprotected_ranks = 0;                  ///< in sets of one, in the whole job
  std::uint32_t fewest_failures = ~0U;        ///< that some set survives
  int sets = 0;                               ///< in the whole job
  int sets_without_hop = 0;                   ///< of these: PARTNER could not keep the hop
};

/// Collective. Where a store is seen by all ranks or bypassed, or a rank is alone in its set, the
/// scheme becomes SINGLE. Errors: unknown store or failure group.
Result<std::vector<Level>> resolve_levels(Communicator& comm, const Settings& settings,
                                          const std::vector<Store>& stores,
                                          const Placement& placement);

/// Every rank's files are on other nodes too, by redundancy or because all nodes see the store.
bool survives_nodes(const Level& level, const Store& store);

/// Some checkpoint goes to the store: the run cannot do without it.
bool is_used(const StoreSettings& store, const Settings& settings);

/// Index of the level for a dataset: the OUTPUT one for an output, else the one with the largest
/// interval that divides the checkpoint's number, else the one with interval 1.
std::size_t choose_level(const std::vector<Level>& levels, const DatasetInfo& dataset);

/// Where a job of so many ranks is protected less than the settings ask for, and what helps.
std::vector<std::string> weaknesses_of(const std::vector<Level>& levels, int ranks);

}  // namespace cairn
