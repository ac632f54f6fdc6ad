// The caches that dead jobs have left: where they are, and the proof that no process uses them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "cache/job_folder.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"

namespace cairn {

/// Local. Adds the folders in or below `folder` that hold datasets. Links are not followed, and
/// .cairn in a prefix directory is not searched. A folder that cannot be read is ignored with a
/// warning.
Status find_caches(Files& files, const std::string& folder, std::vector<std::string>& caches,
                   const Log& log);

/// The caches of a job and what stands beside them.
struct JobCaches {
  RecordedId recorded;             ///< of the prefix directory
  std::vector<JobFolder> folders;  ///< of the job, for any prefix directory
  std::vector<std::string> used;   ///< by runs in the prefix directory: as SCR_Init chooses them
  /// Texts: which caches with datasets such runs do not use, why, and what to do (texts_of_left).
  std::vector<std::string> left;
  std::vector<std::string> unreadable;  ///< texts: what cannot be read now
  std::vector<std::string> ignored;     ///< texts: what is not this user's directory
};

/// Local. Those of the job in this prefix directory on this node.
JobCaches caches_on_node(Files& files, const Settings& settings);

/// Local. Those of the job in this prefix directory that are seen here. %n in a path
/// stands for every node that has a folder there, as simulated nodes have.
JobCaches caches_of_job(Files& files, const Settings& settings);

/// Logs the texts.
void warn_of_other_caches(const JobCaches& caches, const Log& log);

using CacheLocks = std::vector<std::unique_ptr<FileLock>>;

/// How long commands wait for the lock of a cache, or of what was scavenged: `cairn explain` holds
/// each for a moment, to see who is at work.
constexpr std::int64_t lock_patience_us = 3'000'000;

/// Local. Keeps jobs away from these caches, where file systems have locks. busy, naming the cache,
/// if a job or another command uses it for longer than a few seconds.
Result<CacheLocks> lock_caches(Files& files, Clock& clock, const std::vector<std::string>& caches);

}  // namespace cairn
