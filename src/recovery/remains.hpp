// What a job that has died left in its stores, and how it is made whole without the job.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "cache/catalog.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "recovery/restore.hpp"
#include "recovery/survey.hpp"

namespace cairn {

/// What is left of one dataset, wherever it lies.
struct Remains {
  Uuid uuid;
  std::uint64_t number = 0;
  std::string name;         ///< empty if no record tells
  std::uint32_t ranks = 0;  ///< that wrote it; 0 if no record tells
  std::vector<HeldPart> parts;
};

/// Local. The datasets in these folders (each `<store>/<user>/cairn.<job>` of a node, or a copy of
/// one), newest first; changes nothing. Errors: a folder that cannot be listed.
Result<std::vector<Remains>> find_remains(Files& files, const std::vector<std::string>& roots);

struct Rebuild {
  enum class Outcome {
    whole,        ///< every rank's files and parity are there, and match their checksums
    lost,         ///< cannot be made whole; what there is of it is as it was
    uncommitted,  ///< its run ended before it was complete; not touched
    newer,        ///< its records are in a newer format; not touched
    failed,       ///< something else went wrong, a full file system for instance: try again
  };
  Outcome outcome = Outcome::lost;
  std::string reason;      ///< why it is not whole
  RestoreAccount account;  ///< of the whole
  RankFolder folder;       ///< of this rank, where whole
};

/// Collective, over as many ranks as wrote the dataset, all of which see all of `remains`. Makes it
/// whole where it lies, by the functions that do so in the job; the parts of ranks that have none
/// are made below `spare_root`, which is there. What happens is the same on all ranks, the folder
/// excepted.
Rebuild rebuild_remains(Communicator& comm, Files& files, const Remains& remains,
                        const std::string& spare_root, const Settings& settings, const Log& log);

struct RebuiltByThreads {
  Rebuild whole;                    ///< of all ranks; that of rank 0, but for its folder
  std::vector<RankFolder> folders;  ///< by rank, where whole
};

/// Local. The same by as many threads as there were ranks, with at most `memory_bytes` for the
/// messages and blocks of all of them together. Where no record tells how many there were, what
/// there is tells the outcome.
RebuiltByThreads rebuild_by_threads(Files& files, const Remains& remains,
                                    const std::string& spare_root, const Log& log,
                                    std::uint64_t memory_bytes = std::uint64_t{1} << 30);

/// Collective, over any number of ranks. What a run would know of it before it looks closer.
Summary summarise(Communicator& comm, const Remains& remains);

struct Inspection {
  std::string reason;  ///< why it could not be made whole, the same on all ranks; empty if it could
  std::optional<FoundPart> part;  ///< of this rank; none if the records of some rank are lost
};

/// Collective, over as many ranks as wrote the dataset, which is committed. What rebuild_remains()
/// would find and whether it could make it whole, by the functions of the job; changes nothing.
/// Reads all blocks with `read_everything`, else those that a restart would have to read to know.
Inspection inspect_remains(Communicator& comm, Files& files, const Remains& remains,
                           const Settings& settings, bool read_everything, const Log& log);

}  // namespace cairn
