// cairn layout: who is in which redundancy set, and who protects whom, before a job is started.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/job_settings.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// Which ranks are where: either `hosts`, or `nodes` and the two below.
struct LayoutRanks {
  std::string hosts;  ///< "n0,n0,n1": the node of each rank, in rank order
  int nodes = 0;      ///< named node0, node1, ...
  int per_node = 1;
  bool cyclic = false;  ///< neighbouring ranks on neighbouring nodes, not on one
};

/// The name of each rank's node. Fails with bad_argument where ranks are described wrongly.
Result<std::vector<std::string>> node_names_of(const LayoutRanks& ranks);

/// As SCR_Init would form them: one descriptor for all ranks.
struct Layout {
  CheckpointSettings checkpoint;
  std::vector<std::string> node_of_rank;
  std::vector<RedundancySet> sets;
};

/// A line about the whole, then describe_sets().
std::string layout_table(const Layout& layout);

/// {"scheme", "set_size", "group", "ranks", "nodes", "unprotected_ranks", "sets": [{"members":
/// [{"rank", "node", "left"}]}]}; "left" is the rank whose record, and with PARTNER data, the
/// member keeps, null where it is alone.
std::string layout_json(const Layout& layout);

struct LayoutCommand {
  bool json = false;
  LayoutRanks ranks;
  // As on the command line; empty: from the settings, of the descriptor with interval 1.
  std::string scheme;
  std::string set_size;
  std::string group;
  JobSettingsSource source;
};

/// Returns the exit code: 0; 1 when a setting is wrong; 2 when an argument is.
int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log);

}  // namespace cairn
