// Makes what a dead job left whole without the job: set by set, by the functions of the job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "recovery/remains.hpp"
#include "recovery/restore.hpp"

namespace cairn {

using RankMain = std::function<void(Communicator&)>;

/// Who works at the sets of a dataset. What it takes depends on how large a set is, not on how many
/// there are.
struct SetTeams {
  SetTeams();

  /// Calls its second argument once for each rank of a set, all at the same time.
  std::function<void(int ranks, const RankMain&)> run;
  int sets;           ///< that are worked at together
  int threads = 256;  ///< and fewer, if they have more members in all; one set, whatever its size
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< for messages and blocks, of all of them
};

struct Rebuild {
  enum class Outcome {
    whole,        ///< every rank's files and parity are there, and match their checksums
    lost,         ///< cannot be made whole; what there is of it is as it was
    uncommitted,  ///< its run ended before it was complete; not touched
    newer,        ///< its records are in a newer format; not touched
    failed,       ///< something else went wrong, a full file system for instance: try again
  };
  Outcome outcome = Outcome::lost;
  std::string reason;               ///< why it is not whole, set by set
  RestoreAccount account;           ///< of the whole
  std::vector<RankFolder> folders;  ///< by rank, where whole
};

/// Local. Makes it whole where it lies; the parts of ranks that have none are made below
/// `spare_root`, which is there. Nothing is begun where a look at all sets shows that one of them
/// is lost; if that shows later, blocks that were repaired stay so, and what was begun below
/// `spare_root` goes.
Rebuild rebuild_remains(Files& files, const Remains& remains, const std::string& spare_root,
                        const Settings& settings, const Log& log, const SetTeams& teams = {});

/// Local. What rebuild_remains() would find, and why it could not be done, an error for each set
/// for which that is so; changes nothing. For datasets that are committed. `visit` gets each
/// rank's part, one at a time, those of a set one after the other, unless records of the set are
/// lost. Reads all blocks with `read_everything`, else those that a restart would have to read to
/// know.
std::vector<Error> inspect_remains(Files& files, const Remains& remains, const Settings& settings,
                                   bool read_everything, const Log& log,
                                   const std::function<void(int rank, const FoundPart&)>& visit,
                                   const SetTeams& teams = {});

struct Inspected {
  Summary summary;
  CacheState state = CacheState::absent;  ///< for the run
  std::vector<Error> errors;              ///< of inspect_remains(); none if it is not committed
};
/// Local. The state of a dataset that was found for a run of `ranks` ranks: that of judge(), and of
/// what is committed whether it is protected, only written, or lost. No other code derives these
/// from the records of a dead job.
Inspected inspect_for_run(Files& files, const Remains& remains, std::uint32_t ranks,
                          const Settings& settings, bool read_everything, const Log& log,
                          const std::function<void(int rank, const FoundPart&)>& visit,
                          const SetTeams& teams = {});

/// Local. The same as far as the records say by which the remains were found: for a list, which
/// has no time to look at files.
std::vector<Error> look_at_records(Files& files, const Remains& remains);

}  // namespace cairn
