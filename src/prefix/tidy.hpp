// Ends what earlier runs have left half done in the prefix directory.
#pragma once

#include "prefix/site.hpp"

namespace cairn {

/// Collective. Files staged for datasets that were not published go, as do those of deleted ones;
/// files of published datasets get their own names. Every manifest is read by one rank. Errors are
/// agreed; what is left then is left for the next time, and harms nothing.
Status tidy(Communicator& comm, const Site& site);

/// Collective. Removes the files of a dataset that the keeper has taken out, and the folder of its
/// manifests.
Status remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                    std::uint32_t ranks_in_each);

}  // namespace cairn
