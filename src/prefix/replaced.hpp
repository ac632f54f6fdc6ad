// Finds and marks older datasets that lost files to a newer one with the same file names.
#pragma once

#include "prefix/site.hpp"

namespace cairn {

struct Replaced {
  std::string older;  ///< labels of the datasets
  std::string newer;
  std::string file;  ///< a file that both have written
};

/// Local. A file of this record would replace an existing file.
bool takes_names(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Collective. Call it when the files of the dataset in `folder` have their own names. Marks the
/// older datasets that lost a file to it as replaced. `took`: on this rank, takes_names() was true
/// before; if it was false on all ranks, this reads nothing.
///
/// A file that was written again with the same bytes has not changed. To find that out, a rank
/// reads the file once, and compares it with the newest older dataset that has it. Still older
/// datasets with this file are not compared: if they had lost it to that one, they would be marked
/// already.
///
/// After an error some marks may be missing: call it again for this folder. Until then a fetch
/// finds the loss, because it verifies what it reads, and `cairn verify` does. Files that were
/// flushed without their times (SCR_COPY_METADATA=0) are not found; nor are those of a dataset
/// before the newest `datasets_compared`.
Result<std::vector<Replaced>> mark_replaced(Communicator& comm, const Site& site,
                                            const std::string& folder, bool took);

/// The number of older datasets that are compared: a program may use that many names in turn before
/// it reuses the first one. Marked datasets do not count. Of the others, every flush that reuses a
/// name reads the records, not the files.
inline constexpr std::size_t datasets_compared = 1000;

}  // namespace cairn
