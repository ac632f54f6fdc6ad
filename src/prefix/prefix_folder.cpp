#include "prefix/prefix_folder.hpp"

#include <fmt/format.h>

namespace cairn {

/// In the final directory of the file, so that it gets the group, the striping and the file system
/// that the user chose for that directory.
std::string PrefixFolder::staged(const RankRecord& record, std::size_t file) const {
  return fmt::format("{}/{}{}.{}", folder_of(this->file(record.files[file])),
                     DatasetFolder::staged_start(record.dataset.uuid), record.rank, file);
}

}  // namespace cairn
