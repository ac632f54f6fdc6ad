// Older datasets that lose files to a newer one, which has written files of the same names.
#pragma once

#include "prefix/site.hpp"

namespace cairn {

struct Replaced {
  std::string older;  ///< labels of the datasets
  std::string newer;
  std::string file;  ///< one that both wrote
};

/// Local. Something is there already under the own name of a file of this record.
bool takes_names(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Collective, when the files of the dataset in `folder` have their own names, and before it counts
/// as settled. Of the newest older datasets, those of which a file is not what it was any more, as
/// this one has written a file of that name, are marked in their records as replaced. `took` on any
/// rank: there may be some; nothing is read else.
///
/// A file that was written again with the same bytes has not changed. To find that out, a rank
/// reads the file once, and compares it with the newest older dataset that has it. Still older
/// datasets with this file are not compared: if they had lost it to that one, they would be marked
/// already. A mark that is missing for all that does no harm: a fetch verifies what it reads. What
/// was flushed without its times (SCR_COPY_METADATA=0) is not found; nor what another than one of
/// the last `datasets_asked` has lost.
Result<std::vector<Replaced>> mark_replaced(Communicator& comm, const Site& site,
                                            const std::string& folder, bool took);

/// So many names of files may go round before one is used again.
inline constexpr std::size_t datasets_asked = 16;

}  // namespace cairn
