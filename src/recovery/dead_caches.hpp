// The caches that dead jobs have left: where they are, and that nobody uses them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"

namespace cairn {

/// Local. Adds the folders in or below `folder` that hold datasets. Links are not followed, what is
/// Cairn's own in a prefix directory is no cache, and what somebody else keeps to himself is passed
/// over, but told.
Status find_caches(Files& files, const std::string& folder, std::vector<std::string>& caches,
                   const Log& log);

/// Local. Those of the job in this prefix directory on this node, found as SCR_Init finds them. One
/// that cannot be inspected, or belongs to somebody else so that nobody may look into it, is named
/// in `unreadable` instead.
std::vector<std::string> caches_on_node(Files& files, const Settings& settings,
                                        std::vector<std::string>& unreadable);

/// Local. Those of the job in this prefix directory that are seen here. %n in a path
/// stands for every node that has a folder there, as simulated nodes have.
std::vector<std::string> caches_of_job(Files& files, const Settings& settings);

using CacheLocks = std::vector<std::unique_ptr<FileLock>>;

/// How long commands wait for the lock of a cache, or of what was scavenged: `cairn explain` holds
/// each for a moment, to see who is at work.
constexpr std::int64_t lock_patience_us = 3'000'000;

/// Local. Keeps jobs away from these caches, where file systems have locks. busy, naming the cache,
/// if one is running with it, or somebody else keeps them away, for longer than a few seconds.
Result<CacheLocks> lock_caches(Files& files, Clock& clock, const std::vector<std::string>& caches);

}  // namespace cairn
