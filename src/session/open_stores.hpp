// Taking hold of the job's storage at the beginning of a run.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "files/clock.hpp"
#include "session/prefix_identity.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// A folder of the job that this rank has locked.
struct HeldFolder {
  std::string folder;
  std::unique_ptr<FileLock> lock;
};

/// By the files that are locked, on the ranks that do so.
using Locks = std::map<FileId, HeldFolder>;

/// Collective. Opens the enabled stores, and locks the job: on every node, in the control
/// directory, and in every shared store. Two runs of one job at once would take each other's
/// datasets for remains. Each locked folder notes for which prefix directory it is; a note that
/// cannot be written is a warning. Called again
/// later in the run, makes and locks again what was removed meanwhile, and keeps the rest:
/// the same stores, by the same numbers, or none is changed.
/// A store that no checkpoint uses and some rank cannot open at the beginning is left out on all,
/// with a warning.
///
/// Errors (agreed): untrusted, io; busy if another run of the job is alive, after ten seconds,
/// because a killed run may take a moment to be gone; bad_setting if a store that is said to be
/// private to each group is seen by two of them, whose ranks would remove each other's files.
Status open_stores(Communicator& comm, Files& files, Clock& clock, const Placement& placement,
                   const Settings& settings, const PrefixIdentity& identity, const Log& log,
                   std::vector<Store>& stores, Locks& locks);

/// Collective. Replaces the note in the folders that are locked. Errors are only logged.
void note_prefix(Communicator& comm, Files& files, const Locks& locks, const Settings& settings,
                 const PrefixIdentity& identity, const Log& log);

}  // namespace cairn
