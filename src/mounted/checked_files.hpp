// Files of datasets that programs read in the prefix directory through a mount.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "files/background.hpp"
#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// Compares them with their checksums before the first read. Thread-safe: one check at a time.
class CheckedFiles {
 public:
  CheckedFiles(std::string prefix, Log log);

  /// False, and one line of the log, if the file has other bytes than its dataset. True for a file
  /// that belongs to no dataset, or that was written again since. `name` is relative to the prefix
  /// directory. `repeats`: later steps write it too, so a file with another time is a newer one,
  /// also if a restart has found that its dataset is not whole any more.
  bool is_good(const std::string& name, bool repeats);
  /// A program writes to the file, or a newer one has taken its place.
  void note_written(const std::string& name);

 private:
  using Version = std::pair<std::uint64_t, std::int64_t>;  ///< size and time of change

  bool find(const std::string& name, DatasetRecord& dataset, RankRecord& rank);
  void check(const DatasetRecord& dataset, const RankRecord& rank);
  bool is_known(const std::map<std::string, Version>& files, const std::string& name) const;
  Version version_of(const std::string& name) const;

  const PrefixFolder folder_;
  const Log log_;
  const std::unique_ptr<Files> files_;
  const std::unique_ptr<Background> background_;
  std::mutex mutex_;  ///< guards what follows
  std::set<std::string> written_;
  std::map<std::string, Version> good_;
  std::map<std::string, Version> bad_;
};

}  // namespace cairn
