// Whether the program has ended writing the files of a dataset.
#pragma once

#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/rank_record.hpp"

namespace cairn {

// Both are local, and take one path for each file of the record.

/// invalid, naming the file, if this process still has one open or mapped for writing: what it has
/// not written yet would be missing. Call it only after all ranks have completed the dataset.
///
/// If only another process has one open, it may be a child that inherited the file and writes
/// nothing to it: `open_elsewhere` gets the name of the first one, and the check goes on. Without
/// `open_elsewhere` this is invalid too.
Status check_closed(Files& files, const RankRecord& record, const std::vector<std::string>& paths,
                    std::string* open_elsewhere);

/// invalid where a file is not what the record says any more, by its size and time of change. Where
/// check_closed() cannot know, this finds a writer that has written while the checksums were taken.
Status check_unchanged(Files& files, const RankRecord& record,
                       const std::vector<std::string>& paths);

}  // namespace cairn
