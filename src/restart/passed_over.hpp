// Messages: which checkpoints of the prefix directory a restart does not use, why, and what to do.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "restart/restart_decision.hpp"

namespace cairn {

struct PassedOver {
  std::string newest;                 ///< why the newest is; for a run that starts from scratch
  std::vector<std::string> warnings;  ///< why the others are
};

/// Why its state keeps every restart from using a checkpoint, however good its files are: "it is in
/// quarantine, ...". Empty if may_restart_from(state_of(record)).
std::string why_marked(const DatasetRecord& record);
/// Why a run of `ranks` with these settings cannot use a checkpoint that others can; else empty.
std::string why_unfit(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

/// Why a run of `ranks` ranks cannot use a dataset of `written_by` ranks.
std::string text_of_other_ranks(std::uint32_t written_by, std::uint32_t ranks);

/// Looks at the checkpoints begun after `offered` (zeros: none). `tried`: those that this run has
/// tried; the log already names them. `is_reason_known`: the log already says why the run starts
/// from scratch; then the newest checkpoint becomes a warning like the others.
PassedOver passed_over(const RestartFacts& facts, const Settings& settings,
                       const std::set<Uuid>& tried, const Uuid& offered, bool is_reason_known);

}  // namespace cairn
