// Moves ranks' files from where they were left to where the ranks now run.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// A folder on this node whose owner runs elsewhere and has asked for it.
struct OutgoingPart {
  int to = 0;
  RankFolder folder;
};

/// The files of this rank, held by another one. Only files that the record names are accepted.
struct IncomingPart {
  int from = 0;
  RankFolder folder;  ///< where they go; made anew
  const RankRecord* record = nullptr;
};

/// Collective. Sends every outgoing part and receives the incoming one, all at once, in pieces of
/// `piece_bytes`; all that is in a folder travels, and data and parity files that the record names
/// are kept. What could not be read at the source is left out or filled with zeros: the checksums
/// show afterwards, and repair fills it in. Returns the number of bytes received. Errors (local):
/// this rank could not write; it has received all the same, so that its peers finish.
Result<std::uint64_t> relocate(Communicator& comm, Files& files,
                               const std::vector<OutgoingPart>& outgoing,
                               const std::optional<IncomingPart>& incoming,
                               std::size_t piece_bytes);

}  // namespace cairn
