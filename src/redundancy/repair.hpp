// Finding damage in a set and repairing it from the other members.
#pragma once

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"
#include "redundancy/block_check.hpp"

namespace cairn {

struct HealOptions {
  bool read_everything = false;           ///< check all blocks even where files look complete
  bool durable = false;                   ///< sync what was repaired
  bool copy_metadata = true;              ///< give rebuilt files the mode and times they had
  std::uint64_t encode_bytes = 32 << 20;  ///< memory to use, about
};

/// What was found and done, on this rank.
struct Healed {
  bool checked = false;               ///< every block of this rank was read and compared
  std::uint64_t repaired_blocks = 0;  ///< data and parity
  std::uint64_t repaired_bytes = 0;
};

/// Collective over the set; every member passes its own folder (which may be missing altogether)
/// and its record.
///
/// Where any member's files look incomplete, or `read_everything`, all members read all their
/// blocks; each block that is missing or does not match its checksum is rebuilt from the stripe it
/// is in. Where files are missing, whatever is in the place of the rank's folder or of one below it
/// and is no folder is removed; links are not followed. Afterwards every member's files and parity
/// are as the records say.
///
/// Errors: lost, naming members and nodes, if some stripe misses more than the scheme holds; the
/// files of a member that had none are not there then either, and what others had is as it was or
/// better. io in its place if a block of the set is there and cannot be read. io or no_space if a
/// rebuilt block cannot be written. Agreed within the set.
Result<Healed> heal(Communicator& set, Files& files, const RankFolder& folder,
                    const RankRecord& record, const HealOptions& options);

/// What heal() would begin with, of this rank's part.
struct Examined {
  RankBlocks::Presence presence = RankBlocks::Presence::complete;
  Erasures bad;     ///< as far as blocks were read
  Status can_heal;  ///< the error heal() would return for its set: lost, naming members and nodes
};

/// Collective over the set. What is missing or bad, and whether heal() could bring it back; changes
/// nothing. Blocks are read as heal() reads them, or all of them with `read_everything`.
Examined examine(Communicator& set, Files& files, const RankFolder& folder,
                 const RankRecord& record, bool read_everything);

}  // namespace cairn
