// Publishes a dataset from those parts of it that the caches of this run's processes have. Any
// number of ranks may have written it.
#pragma once

#include <functional>
#include <vector>

#include "prefix/flush_plan.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Does those parts of a plan of this epoch that are cached. If several processes have
/// the same part, the first does it. True if all parts are done. Errors are agreed.
Result<bool> do_cached_parts(Communicator& comm, const Site& site, const DatasetRecord& plan,
                             const std::vector<CachedPart>& cached);

/// Local. Does these parts of a plan of this epoch, and then publishes the dataset if all parts are
/// done. Needs no message, and works when rank 0 is dead. Returns `planned` if some parts are not
/// done yet, else `published`, by this process or another; the owner of the directory, or the next
/// one, then gives the files their names. May be called again after an error, and by several
/// processes at a time, with different parts. A dataset that replaces its failed copy stays
/// planned: only the owner publishes it. Fails with busy if a later owner has the plan.
Result<Publication::State> publish_alone(const Site& site, const DatasetRecord& plan,
                                         const std::vector<CachedPart>& parts);

/// Local. Looks at every part of the plan, and publishes the dataset if all are done. The processes
/// that did the parts may be dead.
Result<Publication::State> publish_if_done(const Site& site, const DatasetRecord& plan);

/// Reads the record of a part. Called more than once: no process keeps the records of all parts.
using ReadRecord = std::function<Result<RankRecord>(const CachedPart&)>;

/// Collective. Returns the dataset as its records describe it, if flush_parts() could succeed, as
/// far as this is known without reading files. Fails with lost if no cache has one of the parts.
/// Errors are agreed.
Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<CachedPart>& cached, const ReadRecord& read);

/// Collective. flush() for a dataset that another number of ranks has written, from the parts in
/// the caches of this run. Several processes may have the same part. Rebuilds nothing: fails with
/// lost if no cache has one of the parts. The memory for a part does not grow with its data. Errors
/// are agreed, and leave the caches as they are.
Result<FlushAccount> flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                                 const std::vector<CachedPart>& cached, const ReadRecord& read,
                                 const std::string& job_id);

}  // namespace cairn
