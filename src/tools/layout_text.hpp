// Redundancy sets as text and JSON, for `cairn layout` and `cairn simulate`.
#pragma once

#include "records/set_layout.hpp"
#include "tools/planned_job.hpp"
#include "tools/report.hpp"

namespace cairn {

/// A line about the whole: how many ranks and nodes, and the descriptor; one more where there are
/// other descriptors. {"ckpt", "other_ckpts", "store", "shared", "bypass", "scheme", "set_size",
/// "group", "ranks", "nodes"}, the scheme as the job uses it.
Report report_of_job(const Layout& layout);

/// Adds a line per set, and what each member keeps for which rank, with the scheme of the
/// descriptor. {"sets": [{"text", "members": [{"rank", "node", "left", "text"}]}],
/// "unprotected_ranks", "sets_without_hop"}; "left" is the rank whose record, and with PARTNER
/// data, the member keeps, null if it is alone. If all ranks share the store there are no sets.
void add_sets(Report& report, const Layout& layout);

/// "4 ranks, RS(2)".
std::string describe_protection(const Encoding& encoding);

}  // namespace cairn
