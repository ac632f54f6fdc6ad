// From a dataset in the cache to one in the prefix directory.
#pragma once

#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Copies the dataset that `mine` describes this rank's part of, from `cached` (one
/// path for each file), to the program's own names below the prefix directory.
///
/// Follows the steps of Publication: writes every file beside its place under a staged name, and
/// gives it its own name after the dataset is published. So a crash leaves either no dataset or a
/// complete one, and files of older datasets with the same names are replaced only after this one
/// is published.
///
/// Errors are agreed: then nothing is published, and the written files are removed.
Result<FlushAccount> flush(Communicator& comm, const Site& site, const RankRecord& mine,
                           const std::vector<std::string>& cached, const std::string& job_id);

/// Collective. invalid, with the name, if two ranks have files with the same name. The rank to
/// which the hash of the name belongs returns the error.
Status refuse_double_names(Communicator& comm, std::span<const RankRecord> records);

/// Collective. invalid, with a name, if the files of these records would replace files that were
/// written since.
Status refuse_late_names(Communicator& comm, const Site& site, std::span<const RankRecord> records);

}  // namespace cairn
