// Where the caches of jobs are: folders <store>/<user>/cairn.<job>, or copies of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/files.hpp"

namespace cairn {

/// Adds the folders below `folder`, or itself, that hold datasets. Links are not followed, what is
/// Cairn's own in a prefix directory is no cache, and what somebody else keeps to himself is passed
/// over, but told.
Status find_caches(Files& files, const std::string& folder, std::vector<std::string>& caches,
                   const Log& log);

/// Those of a job that are seen here: by its stores, its user and its id. %n in a path stands for
/// every node that has a folder there, as simulated nodes have.
std::vector<std::string> caches_of_job(Files& files, const Settings& settings);

/// A running job holds a lock in each of its caches: busy then. No job begins while these are held.
Result<std::vector<std::unique_ptr<FileLock>>> lock_caches(Files& files,
                                                           const std::vector<std::string>& caches);

}  // namespace cairn
