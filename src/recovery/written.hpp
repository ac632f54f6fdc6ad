// What a run left that was written and not protected yet.
#pragma once

#include "cache/catalog.hpp"

namespace cairn {

/// Local. Success if the files in `folder` are what the program wrote: their node has not been
/// started anew since, and each has the size and the time of change that the record names. Else
/// lost, naming rank, node and file; or the error by which that cannot be seen now.
Status check_written(Files& files, const RankFolder& folder, const RankRecord& record);

/// Local. If the part was written as that generation, and is still what the program wrote: takes
/// its checksums, syncs its files, and makes its record one of the same generation and of the
/// scheme SINGLE, which needs no boot of the node any more. A crash leaves the one record or the
/// other. One that was only prepared stays so. Any other part stays as it is. A record that was
/// prepared for a later generation stays too: some rank may have committed it. If a file cannot be
/// synced, the records without checksums go.
Status settle_written(Files& files, HeldPart& part, std::uint64_t generation);

/// "it was written at 2026-11-27 12:31:07 and not protected yet when its run ended"
std::string describe_exposure(const Exposure& exposure);

}  // namespace cairn
