// Which checkpoints of the prefix directory a restart passes over, and why: in words.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "restart/restart_decision.hpp"

namespace cairn {

struct PassedOver {
  std::string newest;                 ///< why that one is; told by who starts from scratch
  std::vector<std::string> warnings;  ///< of the others
};

/// Why restarts do not use a checkpoint of the prefix directory, whatever its bytes are: "it is in
/// quarantine, ..."; empty if nothing speaks against it.
std::string why_marked(const DatasetRecord& record);
/// The same of one that is not marked: why a run of `ranks` with these settings cannot use it.
std::string why_unfit(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

/// What a dataset of `written_by` ranks is to a run of `ranks`.
std::string text_of_other_ranks(std::uint32_t written_by, std::uint32_t ranks);

/// Of those begun after `offered`, zeros for none. `is_reason_known`: the log already says why the
/// run starts from scratch; the newest checkpoint is then a warning like the others. `tried`: the
/// checkpoints that this run has tried; the log already names them.
PassedOver passed_over(const RestartFacts& facts, const Settings& settings,
                       const std::set<Uuid>& tried, const Uuid& offered, bool is_reason_known);

}  // namespace cairn
