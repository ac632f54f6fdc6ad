// Makes many files durable by one sync of each file system that they are on, where that is
// promised.
#pragma once

#include <string>
#include <vector>

#include "files/files.hpp"

namespace cairn {

class SyncAtOnce {
 public:
  /// Asks for that; of few files it is not asked, as one sync for each costs less. Their folders
  /// are there.
  static Result<SyncAtOnce> of(Files& files, const std::vector<std::string>& paths);

  /// False: each file is to be synced on its own.
  bool is_possible() const { return !places_.empty(); }
  /// Of what was written to all of them, with its names.
  Status sync() const;

 private:
  explicit SyncAtOnce(Files& files) : files_(&files) {}

  Files* files_;
  std::vector<std::string> places_;  ///< a folder on each file system
};

/// Each of them, or all at once.
Status sync_files(Files& files, const std::vector<std::string>& paths);

}  // namespace cairn
