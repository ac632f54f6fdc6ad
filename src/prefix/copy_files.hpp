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

/// corrupt unless it is a regular file and as long as the entry says; not_found if it is not there.
Status check_size(Files& files, const FileEntry& entry, const std::string& path);

/// Which of `paths`, one for each file of the record, hold these bytes of its data: for a message.
std::string names_at(const RankRecord& record, std::uint64_t offset, std::uint64_t length,
                     const std::vector<std::string>& paths);

}  // namespace cairn
