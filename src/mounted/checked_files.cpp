#include "mounted/checked_files.hpp"

#include <algorithm>
#include <vector>

#include "files/posix_files.hpp"
#include "prefix/check.hpp"
#include "prefix/contents.hpp"
#include "prefix/repair_files.hpp"

namespace cairn {

CheckedFiles::CheckedFiles(std::string prefix, Log log)
    : folder_{std::move(prefix)},
      log_(std::move(log)),
      files_(make_posix_files()),
      background_(make_background_thread()) {}

bool CheckedFiles::is_good(const std::string& name, bool repeats) {
  const std::scoped_lock lock(mutex_);
  if (written_.contains(name) || is_known(good_, name)) return true;
  if (!repeats && is_known(bad_, name)) return false;
  DatasetRecord dataset;
  RankRecord rank;
  if (!find(name, dataset, rank)) return true;
  const auto entry = std::find_if(rank.files.begin(), rank.files.end(),
                                  [&](const FileEntry& file) { return file.name == name; });
  const auto info = files_->info(folder_.prefix + "/" + name);
  // Damage leaves the time as it is, a program does not.
  const bool is_newer = info && !has_time_of(*info, *entry);
  if (!info || (is_newer && (repeats || dataset.failed_us == 0))) return true;
  if (!is_known(bad_, name)) check(dataset, rank);
  return !is_known(bad_, name);
}

void CheckedFiles::note_written(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  written_.insert(name);
}

/// The newest dataset that has a file of this name. False if none has.
bool CheckedFiles::find(const std::string& name, DatasetRecord& dataset, RankRecord& rank) {
  std::vector<std::string> ignored;
  const auto listing = read_listing(*files_, folder_, ignored);
  if (!listing) return false;
  for (const DatasetRecord& record : *listing) {
    bool is_found = false;
    if (!record.settled) continue;
    (void)visit_ranks(*files_, folder_.dataset(record.info), record, ignored,
                      [&](const RankRecord& one) {
                        const auto& files = one.files;
                        if (std::none_of(files.begin(), files.end(),
                                         [&](const FileEntry& file) { return file.name == name; }))
                          return;
                        is_found = true;
                        rank = one;
                      });
    if (!is_found) continue;
    dataset = record;
    return true;
  }
  return false;
}

/// All files of the rank at once: its blocks do not end with its files.
void CheckedFiles::check(const DatasetRecord& dataset, const RankRecord& rank) {
  const auto places = places_of_files(*files_, folder_, dataset, rank);
  if (!places) {
    log_.warning("{} of rank {} cannot be checked: {}", dataset.label(), rank.rank,
                 places.error().text);
    return;
  }
  const IoThreads io{*background_};
  const RankCheck found = check_rank(*files_, io, rank, *places, CheckDepth::blocks);
  for (const FileEntry& file : rank.files) good_[file.name] = version_of(file.name);
  for (const std::size_t index : damaged_files(rank, found)) {
    const std::string& name = rank.files[index].name;
    good_.erase(name);
    bad_[name] = version_of(name);
  }
  for (const std::string& trouble : found.troubles)
    log_.error("{}: {}; programs cannot read this file (cairn verify --repair may repair it)",
               dataset.label(), trouble);
}

bool CheckedFiles::is_known(const std::map<std::string, Version>& files,
                            const std::string& name) const {
  const auto known = files.find(name);
  return known != files.end() && known->second == version_of(name);
}

CheckedFiles::Version CheckedFiles::version_of(const std::string& name) const {
  const auto info = files_->info(folder_.prefix + "/" + name);
  return info ? Version{info->size, info->change_ns} : Version{};
}

}  // namespace cairn
