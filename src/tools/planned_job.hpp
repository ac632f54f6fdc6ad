// A job that has not started yet: the places of its ranks, and the protection of its data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "tools/job_settings.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// Which ranks are where: either `hosts`, or `nodes` and the two below.
struct PlannedRanks {
  std::string hosts;  ///< "n0,n0,n1": the node of each rank, in rank order
  int nodes = 0;      ///< named node0, node1, ...
  int per_node = 1;
  bool cyclic = false;  ///< neighbouring ranks on neighbouring nodes, not on one
};

/// The name of each rank's node. Fails with bad_argument if the description is wrong.
Result<std::vector<std::string>> node_names_of(const PlannedRanks& ranks);

/// "a,b,c" -> a, b, c; empty names too.
std::vector<std::string> split_names(const std::string& names);

/// A job as on the command line. Texts that are empty come from the settings: of the descriptor
/// `ckpt`, else of the one with the smallest interval that is not for output.
struct PlannedJob {
  PlannedRanks ranks;
  std::string ckpt;  ///< id of the descriptor
  std::string scheme;
  std::string set_size;
  std::string group;
  std::string failures;  ///< of RS
  std::string copies;    ///< of PARTNER
  std::string hop;       ///< of PARTNER
  JobSettingsSource source;
};

/// The sets that SCR_Init would form: one descriptor for all ranks.
struct Layout {
  CheckpointSettings checkpoint;
  std::vector<CheckpointSettings> others;  ///< descriptors that are not shown
  bool shared = false;  ///< all ranks see the store, or it is bypassed: nodes do not matter
  std::vector<std::string> node_of_rank;
  std::vector<RedundancySet> sets;  ///< none where the store is shared
  std::map<std::string, NodeGroups> node_groups;
};

/// Fails with bad_argument when the command line is wrong, with bad_setting when a setting is.
Result<Layout> lay_out(const PlannedJob& job, Files& files, ProcessFacts process, const Log& log);

std::size_t nodes_in(const Layout& layout);

/// Numbered from 0 in the order of their first ranks.
struct FailureGroups {
  std::string kind;                ///< NODE, WORLD, or as in the GROUPS lines
  std::vector<std::string> names;  ///< of each group
  std::vector<int> group_of_rank;
};

/// `kind` as on the command line; empty is the kind over which the sets are spread.
Result<FailureGroups> failure_groups_of(const Layout& layout, const std::string& kind);

}  // namespace cairn
