// Taking checksums and making parity.
#pragma once

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {

/// Collective over the set. Of `record`, rank, files and the encoding's scheme, failures, hop,
/// block_bytes and members must be set; the members are the ranks of `set` in its order, or just
/// this rank for SINGLE.
///
/// Reads the files named in the record once, fills in member_bytes and the checksum of every block,
/// and writes the parity file of the record's generation, over the file `spare` if there is one.
/// Holds at most about `encode_bytes` of memory. Nothing is synced.
///
/// Errors are local: a member that cannot read or write still takes part to the end; agree on the
/// result before using it.
Status protect(Communicator& set, Files& files, const RankFolder& folder, RankRecord& record,
               std::uint64_t encode_bytes, const std::string& spare = {});

/// Local. The checksum of every block of a rank alone in its set, read by `blocks` from wherever
/// its files are.
Status take_checksums(RankBlocks& blocks, RankRecord& record);

}  // namespace cairn
