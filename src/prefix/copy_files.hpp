// Moves the files of one rank between a cache and the prefix directory, every block checked.
#pragma once

#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/rank_record.hpp"
#include "transfer/throttle.hpp"

namespace cairn {

/// Local. Copies file i of the record from `from[i]` to `to[i]`, which are made anew, with the mode
/// `mode`, in folders that are there; synced, if `durable`. corrupt if a block does not match its
/// checksum, or a file is not as long as the record says; the copies mean nothing then.
Status copy_files(Files& files, const RankRecord& record, const std::vector<std::string>& from,
                  const std::vector<std::string>& to, std::uint32_t mode, bool durable,
                  Throttle& throttle);

}  // namespace cairn
