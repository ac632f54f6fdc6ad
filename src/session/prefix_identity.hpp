// Which prefix directory the job's caches are for
// (docs/adr/0023-caches-know-their-prefix-directory.md).
#pragma once

#include "base/log.hpp"
#include "cache/job_folder.hpp"
#include "comm/communicator.hpp"
#include "files/clock.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// Equal on all ranks.
struct PrefixIdentity {
  PrefixId folder = PrefixId::none;  ///< in the names of the job's folders
  PrefixId owner = PrefixId::none;   ///< of the directory they are for; none: not known yet
  PrefixId found = PrefixId::none;   ///< of the directory that this run uses; none: not known yet
  /// The directory had no id at Init: it may be a mount point. One that has an id takes its place
  /// until this run owns it, and so does one that the program has made anew.
  bool is_new = false;
  std::uint64_t file_system = 0;  ///< of the directory, on rank 0; 0: not known
  bool is_settled = false;        ///< this run has read or recorded the directory's id

  PrefixNote note(const std::string& prefix) const { return {prefix, owner}; }
};

/// Collective, at Init. Reads the id of the prefix directory, or records one there, and chooses the
/// job's folders (choose_job_folder). A directory that cannot be read or written now is no error.
/// Errors (agreed): io where it cannot be seen now which caches a node has.
Result<PrefixIdentity> find_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                                            const Placement& placement, const Settings& settings,
                                            const Log& log);

/// Collective, when the prefix directory can be used although it could not at Init: reads or
/// records its id. The job keeps its folders.
void settle_prefix_identity(Communicator& comm, Files& files, Clock& clock,
                            const Settings& settings, const Log& log, PrefixIdentity& identity);

/// Local. Fails with io if the prefix directory has not the id that this run has found there, or
/// its id cannot be read now: its file system may not be mounted.
Status check_prefix_identity(Files& files, const std::string& prefix,
                             const PrefixIdentity& identity);

}  // namespace cairn
