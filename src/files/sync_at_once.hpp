// Makes many files durable by one sync of each file system that they are on, where that is
// promised.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/files.hpp"

namespace cairn {

class SyncAtOnce {
 public:
  /// To be asked for before they are written, and once their folders are there. Of few files it is
  /// not possible, as one sync for each costs less.
  static Result<SyncAtOnce> of(Files& files, const std::vector<std::string>& paths);

  /// False: each file is to be synced on its own.
  bool is_possible() const { return !systems_.empty(); }
  /// Of what was written to all of them since, with its names, modes and times.
  Status sync() const;

 private:
  std::vector<std::unique_ptr<FileSystemSync>> systems_;
};

}  // namespace cairn
