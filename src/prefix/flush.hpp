// From a dataset in the cache to one in the prefix directory.
#pragma once

#include "prefix/replaced.hpp"

namespace cairn {

struct FlushAccount {
  std::uint64_t files = 0;  ///< of all ranks
  std::uint64_t bytes = 0;
  Result<std::vector<Replaced>> replaced;  ///< or why that is not known
  std::string open_elsewhere = {};         ///< of this rank, published in place: see check_closed()
};

/// Collective. What is known of a dataset when it is about to be published; of its parts each
/// process has `records`.
DatasetRecord describe(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                       const std::vector<RankRecord>& records, const std::string& job_id);

/// Collective. Copies the dataset that `mine` describes this rank's part of, from `cached` (one
/// path for each file), to the program's own names below the prefix directory.
///
/// The protocol: the records of all ranks are written to a folder of the epoch; every file is
/// written beside its place under a staged name, and synced; all ranks agree; the folder is renamed
/// to where datasets are, which publishes; then the files get their own names. So a crash leaves
/// either nothing that counts, or a whole dataset, and files of older datasets with the same names
/// are replaced only once this one is there.
///
/// Errors are agreed: nothing was published then, and what was written is removed. A file that
/// cannot get its own name after that is no error: the dataset is whole, and tidy() gives it one;
/// only `settle_status` tells.
Result<FlushAccount> flush(Communicator& comm, const Site& site, const RankRecord& mine,
                           const std::vector<std::string>& cached, const std::string& job_id,
                           Status& settle_status);

/// Collective. invalid, naming it, where two ranks have written files of one name; the error is
/// that of the rank that looks after the name.
Status refuse_double_names(Communicator& comm, const std::vector<RankRecord>& records);

/// Collective. The files of these records must not take the names of files that were written since:
/// invalid, naming one.
Status refuse_late_names(Communicator& comm, const Site& site,
                         const std::vector<RankRecord>& records);

/// Local. Gives the files of one rank their own names, where they do not have them yet.
Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record);

}  // namespace cairn
