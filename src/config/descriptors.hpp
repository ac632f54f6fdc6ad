// From merged STORE, CKPT and GROUPS lines to stores, checkpoint descriptors and failure groups.
#pragma once

#include "config/layers.hpp"
#include "config/resolve.hpp"

namespace cairn {

/// Fills stores, checkpoints and node_groups. All options of the table must be in `resolved`: they
/// are the defaults of the leaves. Adds what is wrong to `problems`; what is there already has been
/// replaced by a default in `resolved`.
void resolve_descriptors(const Layers& layers, ResolvedSettings& resolved,
                         std::vector<std::string>& problems);

}  // namespace cairn
