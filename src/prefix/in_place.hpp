// Datasets that the program writes straight into the prefix directory.
#pragma once

#include "prefix/flush.hpp"

namespace cairn {

/// Collective. Publishes the dataset whose files `mine` names for this rank (with size, mode and
/// times as they are now), and which the program has written under these names. The encoding is
/// that of a rank alone; its checksums are taken here. A file that several ranks name is shared by
/// them: each answers for a part of it.
///
/// The protocol is that of flush(), without staged names: files, their folders and the records of
/// all ranks are durable; all ranks agree; then a rename publishes the dataset.
///
/// Errors are agreed: nothing was published then, and the files are left as they are, since they
/// are the program's own. After that, what keeps the dataset from being made the current one is no
/// error; only `settle_status` tells. `took`: a file of one of these names was there before.
Result<FlushAccount> publish_in_place(Communicator& comm, const Site& site, RankRecord& mine,
                                      const std::string& job_id, Status& settle_status, bool took);

/// Local. Takes the checksums of a rank's files, which are in the prefix directory under their own
/// names, and makes them durable; `record` has all else. invalid if they change meanwhile, or are
/// still open for writing: see check_closed() for `open_elsewhere`.
Status seal_in_place(Files& files, const PrefixFolder& folder, RankRecord& record,
                     std::string* open_elsewhere = nullptr);

/// Which of a file's bytes the `index`-th of `sharers` ranks answers for: whole blocks, but for the
/// end of the file, and about as many as the others.
FilePart part_of(std::uint64_t size, std::uint64_t block_bytes, std::uint64_t index,
                 std::uint64_t sharers);

}  // namespace cairn
