// A series on disk: one directory per published step, and what is being written below `.rbio`.
//
// A step is published by one rename of its directory. Each writer leaves a marker when its bytes
// are durable; with all markers there, any process may publish, also after the run has died.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "files/files.hpp"
#include "rbio/attempt.hpp"
#include "rbio/series_names.hpp"

namespace cairn::rbio {

/// A step that one can restore from, unless it cannot be read.
struct PublishedStep {
  std::uint64_t step = 0;
  Attempt attempt;
  Status readable;  ///< why its header cannot be read
};

enum class Publication {
  by_others,  ///< a marker is still missing, or another writer made the last one
  published,
  superseded,  ///< a later attempt has published this step
};

class SeriesDirectory {
 public:
  SeriesDirectory(Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string step_path(std::uint64_t step) const;
  std::string attempt_path(const Attempt& attempt, std::uint64_t step) const;

  /// Makes the directory, takes the lock, finishes what a dead run left, and counts a generation.
  /// One process per series. busy while another one holds the series.
  Result<std::uint64_t> open_for_writing();
  /// Lets another process open it, as soon as the result is destroyed.
  std::shared_ptr<void> release();
  /// What open_for_writing() of another process has counted, as this node sees it.
  Result<std::uint64_t> visible_generation();

  /// The published steps in the order in which they were written, those that cannot be read first.
  /// not_found if there is no such directory.
  Result<std::vector<PublishedStep>> steps();

  // --- by any writer, at any time ---

  Status make_attempt(const Attempt& attempt, std::uint64_t step);
  /// `writer` of `writers` has made its bytes durable. Another writer may publish the step before
  /// this returns.
  Status mark_done(const Attempt& attempt, std::uint64_t step, int writer, int writers);
  /// After mark_done(). Of the writers that find all markers, one publishes.
  Result<Publication> publish_if_complete(const Attempt& attempt, std::uint64_t step, int writers);
  /// What a failed attempt has left, unless all writers have finished it, or one is publishing it:
  /// then the next open may still publish it.
  Status remove_incomplete(const Attempt& attempt, std::uint64_t step, int writers);

  /// Keeps the `keep` steps written last.
  Status remove_all_but(std::size_t keep);

 private:
  std::string work_path() const { return path_ + "/" + std::string(work_directory); }
  Result<bool> has_all_markers(const std::string& folder, int writers);
  Result<bool> claim(const std::string& folder);
  Status drop_claim(const std::string& folder);
  Result<Publication> publish(const Attempt& attempt, std::uint64_t step, int writers);
  Status finish_leftovers();
  Status finish_attempt(const std::string& name);
  std::string generation_path() const { return work_path() + "/generation"; }
  std::string aside_path(std::uint64_t step) const {
    return work_path() + "/" + removed_name(step);
  }
  Result<int> count_writers(const std::string& folder);
  void remove_what_is_over(std::uint64_t step, int writers, bool has_predecessor);
  Result<std::uint64_t> next_generation();
  Result<std::uint64_t> last_generation(const std::string& path);
  Result<std::optional<Attempt>> attempt_of_step(std::uint64_t step);
  Result<std::optional<Attempt>> attempt_to_beat(std::uint64_t step);
  Result<bool> put_aside(std::uint64_t step, const Attempt& attempt);

  Files& files_;
  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace cairn::rbio
