// Publishes a dataset from its parts in the caches of these processes, independent of their number
// and of the processes that wrote the parts.
#pragma once

#include <functional>
#include <vector>

#include "prefix/flush_plan.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Does the cached parts of a plan of this epoch. If several processes have the same
/// part, the first one does it. True if all parts are done. Errors are agreed.
Result<bool> do_cached_parts(Communicator& comm, const Site& site, const DatasetRecord& plan,
                             const std::vector<CachedPart>& cached);

/// Local. The work of one process for a plan of this epoch, without messages, even if rank 0 is
/// dead: does these parts, and then publishes the dataset if all parts are done, by any processes.
/// Returns planned if some parts are not done yet, and published if this or another process has
/// published it; the owner of the directory, or the next one, gives the files their names. Can be
/// repeated after an error. Several processes may call it at once, but only one for each part. A
/// dataset that replaces its older version stays planned, as only the owner publishes it. busy if a
/// later owner has the plan.
Result<Publication::State> publish_alone(const Site& site, const DatasetRecord& plan,
                                         const std::vector<CachedPart>& parts);

/// Local. Like publish_alone() without parts, if the processes that did them may be dead: checks
/// every part of the plan, and publishes the dataset if all are done.
Result<Publication::State> publish_if_done(const Site& site, const DatasetRecord& plan);

/// Reads the record of a part. Called repeatedly, as no process keeps the records of all its parts
/// in memory.
using ReadRecord = std::function<Result<RankRecord>(const CachedPart&)>;

/// Collective. Checks, without reading files, that all parts that flush_parts() needs exist.
/// Returns the dataset in their records. lost if a part is in none of the caches. Errors are
/// agreed.
Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<CachedPart>& cached, const ReadRecord& read);

/// Collective. Like flush(), for a dataset of another number of ranks: from the parts in the caches
/// of this run, where several processes may have the same part. Rebuilds nothing: lost if a part is
/// missing. The memory per part does not depend on the size of its data. Errors are agreed, and
/// leave the caches unchanged.
Result<FlushAccount> flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                                 const std::vector<CachedPart>& cached, const ReadRecord& read,
                                 const std::string& job_id);

}  // namespace cairn
