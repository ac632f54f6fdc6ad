// From merged STORE, CKPT and GROUPS lines to stores, checkpoint descriptors and failure groups.
#pragma once

#include "config/layers.hpp"
#include "config/resolve.hpp"

namespace cairn {

/// Fills stores, checkpoints and node_groups. `resolved` must have all options of the table, as
/// they are the defaults of the leaves. Adds errors to `problems`. For problems that are in it
/// already, `resolved` must have a default.
void resolve_descriptors(const Layers& layers, ResolvedSettings& resolved,
                         std::vector<std::string>& problems);

}  // namespace cairn
