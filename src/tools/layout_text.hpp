// Redundancy sets as people read them: what `cairn layout` and `cairn simulate` print and the
// golden tables pin.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "records/set_layout.hpp"
#include "tools/planned_job.hpp"

namespace cairn {

/// A line about the whole: how many ranks and nodes, and the descriptor; one more where there are
/// other descriptors.
std::string describe_job(const Layout& layout);

/// {"ckpt", "other_ckpts", "store", "shared", "scheme", "set_size", "group", "ranks", "nodes"}, the
/// scheme as the job uses it.
nlohmann::ordered_json descriptor_json(const Layout& layout);

/// "4 ranks, RS(2)".
std::string describe_protection(const Encoding& encoding);

/// A line per set and what each member keeps for whom, under the scheme of the descriptor.
/// `node_of_rank` are node names, one per rank.
std::string describe_sets(const std::vector<RedundancySet>& sets,
                          const std::vector<std::string>& node_of_rank,
                          const CheckpointSettings& checkpoint);

}  // namespace cairn
