// Which files a dataset in the prefix directory has, for ranks that did not write it.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"

namespace cairn {

/// Local, thread-safe. Manifests are read when they are first needed, one after the other, those
/// nearest to where this rank would be among the ranks that wrote: whoever asks for files of its
/// neighbourhood reads few, and nobody keeps more than the names in those it has read.
class FileFinder {
 public:
  /// `rank` of `ranks` asks. `files` must outlive this.
  FileFinder(Files& files, const PrefixFolder& folder, const DatasetRecord& dataset, int rank,
             int ranks);

  /// `name` is relative to the prefix directory. Errors: a manifest cannot be read.
  Result<bool> has(const std::string& name);

 private:
  Status read_next();

  Files& files_;
  const PrefixFolder folder_;
  const DatasetRecord dataset_;
  std::mutex mutex_;                   ///< guards what follows
  std::vector<std::uint64_t> unread_;  ///< manifests, the next one last
  std::set<std::string> names_;
};

}  // namespace cairn
