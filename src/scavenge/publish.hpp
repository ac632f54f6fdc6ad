// Makes whole what was scavenged, and publishes it as if it had been flushed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "prefix/site.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/rebuild_sets.hpp"

namespace cairn {

struct SalvagedDataset {
  enum class Outcome {
    whole,        ///< on the file system of the prefix directory, and not published yet
    published,    ///< all of it is in the prefix directory now
    there,        ///< it was there before, and every byte of it is good
    given_up,     ///< a user has dropped or deleted it; what was saved stays
    uncommitted,  ///< it was never complete
    outlived,     ///< nothing restarts from it any more: a newer checkpoint is there; left alone
    lost,         ///< more is missing than the scheme holds; what was saved stays
    refused,      ///< what has its names now must not be replaced; what was saved stays
    newer,        ///< its records are in a newer format
    failed,       ///< it could not be made whole, or published, this time; the next try goes on
  };
  Remains remains;
  Outcome outcome = Outcome::lost;
  std::string reason;  ///< of all but published and there
  RestoreAccount account;
  std::vector<RankFolder> folders;  ///< by rank, where it was made whole
};

/// "published" and so on.
std::string_view name_of(SalvagedDataset::Outcome outcome);

struct Salvage {
  CacheLocks locks;                       ///< no process scavenges meanwhile
  std::vector<SalvagedDataset> datasets;  ///< oldest first
};

struct Choice {
  std::function<bool(const Remains&)> wanted;
  bool also_outlived = false;
};

/// Local. Of the datasets that were scavenged to this prefix directory, those that are chosen: made
/// whole where they are, by the functions that do so in the job, unless they are published and
/// every byte of them is good, or were and have been dropped. Does not need the ownership of the
/// directory. busy while another process scavenges.
Result<Salvage> make_whole(Files& files, Clock& clock, const PrefixFolder& folder,
                           const Choice& choice, const Log& log);

inline constexpr std::string_view never_complete =
    "it was never complete: the job died before any node had committed it";

/// All that was saved of it had been prepared, and no node had committed it: the program does
/// not know it as complete, and a restart in the job would have passed it over too.
bool was_never_complete(const Remains& saved);

/// Why the last rebuild of what was scavenged of a dataset was in vain, and the next one will be as
/// long as nothing changes: one of both at most.
struct KnownFailure {
  std::string lost;     ///< it could not be made whole
  std::string refused;  ///< it could, and was not published
};

/// Local. Nothing if none was tried, or it has been scavenged again since.
KnownFailure known_failure(Files& files, const PrefixFolder& folder, const Uuid& dataset);

/// Local. There may be more of it soon, or nothing any more; durable. Success if nothing was known.
Status forget_failure(Files& files, const PrefixFolder& folder, const Uuid& dataset);

/// Local. What is left of all that was scavenged to this prefix directory, newest first.
Result<std::vector<Remains>> find_saved(Files& files, const PrefixFolder& folder,
                                        std::vector<std::string>* unreadable = nullptr);

/// Local. Removes it, and what was rebuilt of it. busy while another process scavenges.
Status remove_saved(Files& files, Clock& clock, const PrefixFolder& folder, const Remains& saved);

/// Collective, over one rank that owns the prefix directory. What an earlier run had begun to flush
/// is carried on with what was scavenged; then every whole dataset is published, oldest first. What
/// is there now needs its scavenged copies no more: they go.
void publish(Communicator& comm, const Site& site, Salvage& salvage, const std::string& job_id,
             const Log& log);

}  // namespace cairn
