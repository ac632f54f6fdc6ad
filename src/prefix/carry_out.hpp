// A flush carried out together, by those who have its files in their caches.
#pragma once

#include <functional>
#include <vector>

#include "prefix/flush.hpp"
#include "prefix/flush_plan.hpp"

namespace cairn {

/// Collective. Which of the cached parts of a dataset this process is to do: of several that have
/// the same one, the first.
std::vector<CachedPart> claim(Communicator& comm, const DatasetInfo& dataset,
                              const std::vector<CachedPart>& cached);

/// Collective. The plan, which this epoch has now, carried out as far as it can be: true if that is
/// all of it. Nobody needs his peers for his part, nor to know that it was the last. Errors are
/// agreed.
Result<bool> carry_out(Communicator& comm, const Site& site, const DatasetRecord& plan,
                       const std::vector<CachedPart>& cached);

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
