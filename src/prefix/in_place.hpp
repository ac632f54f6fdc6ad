// Datasets that the program writes straight into the prefix directory.
#pragma once

#include "prefix/manifest.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Publishes the dataset whose files `mine` names for this rank (with size, mode and
/// times as they are now), and which the program has written under these names. The encoding is
/// that of a rank alone; its checksums are taken here. A file that several ranks name is shared by
/// them: each answers for a part of it.
///
/// By the steps of Publication, without staged names: files, their folders and the records of all
/// ranks are durable; all ranks agree; then a rename publishes the dataset.
///
/// Errors are agreed: nothing was published then, and the files are left as they are, since they
/// are the program's own. `took`: a file of one of these names was there before.
Result<FlushAccount> publish_in_place(Communicator& comm, const Site& site, RankRecord& mine,
                                      const std::string& job_id, bool took);

/// Collective. The same for the records that are dealt to this rank, which have all but the
/// checksums. Their files are read by at most `width` ranks at a time. invalid if they change
/// meanwhile, or are still open for writing; see check_closed() for `open_elsewhere`.
Result<FlushAccount> publish_sealed(Communicator& comm, const Site& site,
                                    std::span<RankRecord> records, const Deal& deal, int width,
                                    const DatasetRecord& dataset, bool took,
                                    std::string* open_elsewhere);

/// Which of a file's bytes the `index`-th of `sharers` ranks answers for: whole blocks, but for the
/// end of the file, and about as many as the others.
FilePart part_of(std::uint64_t size, std::uint64_t block_bytes, std::uint64_t index,
                 std::uint64_t sharers);

}  // namespace cairn
