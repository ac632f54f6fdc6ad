// Whether the program has ended writing the files of a dataset.
#pragma once

#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/rank_record.hpp"

namespace cairn {

// Both are local, and take one path for each file of the record.

/// invalid, naming the file, where a process of this node still has one open or mapped for writing:
/// what it has not written yet would be missing. Only when all ranks have said that they are done.
Status check_closed(Files& files, const RankRecord& record, const std::vector<std::string>& paths);

/// invalid where a file is not what the record says any more, by its size and time of change. Where
/// check_closed() cannot know, this finds a writer that has written while the checksums were taken.
Status check_unchanged(Files& files, const RankRecord& record,
                       const std::vector<std::string>& paths);

}  // namespace cairn
