// Makes many files durable by one sync of each of their file systems, where that is reliable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/files.hpp"

namespace cairn {

class SyncAtOnce {
 public:
  /// Call before the files are written, when their directories exist. Not possible for few files,
  /// as one sync for each costs less.
  static Result<SyncAtOnce> of(Files& files, const std::vector<std::string>& paths);

  /// False: the caller must sync each file.
  bool is_possible() const { return !systems_.empty(); }
  /// Makes all that was written since durable, with names, modes and times.
  Status sync() const;

 private:
  std::vector<std::unique_ptr<FileSystemSync>> systems_;
};

}  // namespace cairn
