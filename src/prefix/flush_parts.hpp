// A dataset that is published from what of it lies in the caches of the processes, whatever their
// number, and whoever wrote it.
#pragma once

#include <functional>
#include <vector>

#include "prefix/flush_plan.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Does those parts of a plan of this epoch that are cached; of several processes that
/// have the same one, the first does it. True if that is all of it. Errors are agreed.
Result<bool> do_cached_parts(Communicator& comm, const Site& site, const DatasetRecord& plan,
                             const std::vector<CachedPart>& cached);

/// Local. What one process can do for a plan of this epoch without a message, also with rank 0
/// dead: these parts, and then it publishes the dataset if all parts are done, whoever did the
/// others. Planned: some are not done yet. Published: by this process or another; the owner of the
/// directory gives the files their names, or the next owner does. May be called again after an
/// error, and by several processes at a time, but each part is of one process. What replaces its
/// older self stays planned: only the owner publishes it. busy if a later owner has the plan.
Result<Publication::State> publish_alone(const Site& site, const DatasetRecord& plan,
                                         const std::vector<CachedPart>& parts);

/// Local. As publish_alone() without parts, where the processes that did them may be dead: looks at
/// every part of the plan, and publishes the dataset if all are done.
Result<Publication::State> publish_if_done(const Site& site, const DatasetRecord& plan);

/// Reads the record that is kept with a part. More than once: nobody holds those of all parts.
using ReadRecord = std::function<Result<RankRecord>(const CachedPart&)>;

/// Collective. What flush_parts() needs of a dataset is there, as far as it can be told without
/// reading its files: the dataset as its records tell of it. lost if a part is in none of the
/// caches. Errors are agreed.
Result<DatasetInfo> find_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               const std::vector<CachedPart>& cached, const ReadRecord& read);

/// Collective. As flush(), of a dataset that another number of ranks has written: from what of it
/// is cached in the processes of this run, several of which may have the same part. Nothing is
/// rebuilt: lost if a part is in none. What a process holds in memory of a part it has does not
/// grow with its data. Errors are agreed, and leave the caches as they are.
Result<FlushAccount> flush_parts(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                                 const std::vector<CachedPart>& cached, const ReadRecord& read,
                                 const std::string& job_id);

}  // namespace cairn
