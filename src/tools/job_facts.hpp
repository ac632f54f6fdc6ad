// Gathers what this machine sees of a job: what a restart could use, and which runs are active.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "files/clock.hpp"
#include "prefix/keeper.hpp"
#include "prefix/retention.hpp"
#include "prefix/scr_index.hpp"
#include "prefix/unfinished.hpp"
#include "recovery/remains.hpp"
#include "restart/restart_decision.hpp"
#include "scavenge/publish.hpp"
#include "tools/cache_state.hpp"

namespace cairn {

/// A dataset in caches.
struct CachedFacts {
  Remains remains;
  CacheReport state;
  CachedDataset dataset;  ///< as SCR_Init would see it
  KnownFailure failure;   ///< if it was scavenged: why the last rebuild failed
};

struct PrefixFacts {
  bool is_there = false;
  std::string trouble;   ///< why no run could own it now, and so neither fetch nor flush
  std::string not_mine;  ///< why a run of this user could not, but one of its owner could
  Listing listing;
  Dropped dropped;
  Listing attempts;
  Listing deleted;
  std::string deleted_damage;  ///< what is wrong with that list
  std::string current;
  std::string current_damage;  ///< damage of the file with its name
  std::vector<UnfinishedFlush> unfinished;
  std::vector<std::string> unreadable;  ///< damaged records
  std::vector<UnreadDataset> unread;    ///< those that cannot be read now
  std::optional<OwnerRecord> owner;     ///< an owner that may still be alive
  bool owner_is_rival = false;          ///< it belongs to another job
  ScrIndex scr;                         ///< the datasets of SCR 3, with all details
  Trouble scr_trouble;                  ///< why SCR's index cannot be read
  std::vector<std::size_t> of_scr;      ///< in `scr`: complete according to SCR, and not imported
};

struct JobFacts {
  std::uint32_t ranks = 0;               ///< of the run in question; 0: there is no dataset
  std::vector<std::string> caches;       ///< the caches that were examined
  std::vector<std::string> left_caches;  ///< texts of JobCaches::left
  std::vector<std::string> ignored;      ///< texts of JobCaches::ignored
  std::vector<CachedFacts> cached;       ///< newest first
  std::vector<CachedFacts> scavenged;    ///< in the prefix directory, for cairn rebuild only
  std::vector<std::string> running;      ///< caches that a job or a command is using
  std::vector<std::string> in_work;  ///< folders of scavenged data that a job or a command is using
  std::vector<std::string> unreadable;  ///< why folders of both, or caches, cannot be listed
  bool sees_all_nodes = false;          ///< simulated nodes: data in no cache are lost
  PrefixFacts prefix;

  /// A run that can use the prefix directory would remove the dataset from the caches when it
  /// begins.
  bool is_deleted(const CachedDataset& dataset) const;
  /// The datasets that a run still has when it chooses one for a restart.
  std::vector<CachedDataset> cached_datasets() const;
};

/// What a run still finds there when it chooses a checkpoint for a restart: all of it, or nothing
/// where it deletes that before.
const PrefixFacts& left_by_purge(const PrefixFacts& prefix, const Settings& settings);

/// Examines the caches in `folders`, or if that is empty, those of the job; and the prefix
/// directory. Changes nothing, and reads files of datasets only if some are missing. `ranks`: 0 for
/// the number that wrote the newest dataset.
Result<JobFacts> gather_facts(Files& files, Clock& clock, const Settings& settings,
                              const std::vector<std::string>& folders, std::uint32_t ranks,
                              const Log& log);

}  // namespace cairn
