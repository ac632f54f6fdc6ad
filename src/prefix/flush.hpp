// From a dataset in the cache to one in the prefix directory.
#pragma once

#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Copies the dataset that `mine` describes this rank's part of, from `cached` (one
/// path for each file), to the program's own names below the prefix directory.
///
/// By the steps of Publication: every file is written beside its place under a staged name, and
/// gets its own name once the dataset is published. So a crash leaves either nothing that counts,
/// or a whole dataset, and files of older datasets with the same names are replaced only once this
/// one is there.
///
/// Errors are agreed: nothing was published then, and what was written is removed.
Result<FlushAccount> flush(Communicator& comm, const Site& site, const RankRecord& mine,
                           const std::vector<std::string>& cached, const std::string& job_id);

/// Collective. invalid, naming it, where two ranks have written files of one name; the error is
/// that of the rank that looks after the name.
Status refuse_double_names(Communicator& comm, std::span<const RankRecord> records);

/// Collective. The files of these records must not take the names of files that were written since:
/// invalid, naming one.
Status refuse_late_names(Communicator& comm, const Site& site, std::span<const RankRecord> records);

}  // namespace cairn
