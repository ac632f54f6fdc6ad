// Datasets that the program writes directly into the prefix directory.
#pragma once

#include "prefix/manifest.hpp"
#include "prefix/publication.hpp"

namespace cairn {

/// Collective. Publishes the dataset that the program has written under the names in `mine` (with
/// the present size, mode and times). The encoding is that of a single rank; its checksums are
/// taken here. A file that several ranks have is shared: each rank has a part of it.
///
/// Follows the steps of Publication, without staged names: files, their directories and the records
/// of all ranks are durable; all ranks agree; then a rename publishes the dataset.
///
/// Errors are agreed: then nothing is published, and the files stay unchanged, as they belong to
/// the program. `took`: a file with one of these names existed before.
Result<FlushAccount> publish_in_place(Communicator& comm, const Site& site, RankRecord& mine,
                                      const std::string& job_id, bool took);

/// Collective. The same for the records of this rank's share, which are complete except for the
/// checksums. At most `width` ranks read files at a time. invalid if files change meanwhile, or are
/// still open for writing; see check_closed() for `open_elsewhere`.
Result<FlushAccount> publish_sealed(Communicator& comm, const Site& site,
                                    std::span<RankRecord> records, const Deal& deal, int width,
                                    const DatasetRecord& dataset, bool took,
                                    std::string* open_elsewhere);

/// The part of a file that belongs to the `index`-th of `sharers` ranks: whole blocks, except at
/// the end of the file, and about as many for each rank.
FilePart part_of(std::uint64_t size, std::uint64_t block_bytes, std::uint64_t index,
                 std::uint64_t sharers);

}  // namespace cairn
