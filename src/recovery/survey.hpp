// What is left of the datasets in the stores, as all ranks together know it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "cache/catalog.hpp"
#include "comm/communicator.hpp"
#include "records/dataset_state.hpp"

namespace cairn {

/// What all ranks know of a dataset before they look closer.
struct Summary {
  Uuid uuid;
  std::uint64_t generation = 0;  ///< largest committed, 0 if none
  bool several = false;          ///< ranks have committed different generations
  bool newer = false;            ///< there are records of a newer format
  bool damaged = false;          ///< there are record files that cannot be read
  std::uint32_t ranks = 0;       ///< that wrote it, 0 if no record says
  std::size_t store = 0;
  std::uint64_t number = 0;
  std::uint64_t checkpoint = 0;
  std::uint32_t flags = 0;
  std::uint64_t written_generation = 0;  ///< of records without checksums; 0 if there is none

  /// Of that generation, some part has no checksums yet.
  bool is_written(std::uint64_t of_generation) const {
    return written_generation != 0 && written_generation == of_generation;
  }
};

/// Local: as far as can be known from this alone.
Summary summarise(const Uuid& uuid, const HeldDataset& held);

/// For a run of `ranks`, which it leaves alone without `distribute` (SCR_DISTRIBUTE=0). Of what is
/// `committed`, only restoring it shows whether it is protected or lost.
CacheState judge(const Summary& summary, std::uint32_t ranks, bool distribute);

/// Why it is not restored, after "it": "its records are in a newer format". Empty for what is
/// committed.
std::string reason_of(CacheState state, const Summary& summary);

/// Goes through the datasets of a catalog of which each rank has read a part. Its functions but
/// held() are collective.
class Survey {
 public:
  Survey(Communicator& comm, Catalog mine) : comm_(comm), catalog_(std::move(mine)) {}

  /// The newest dataset older than the one before; nothing when there is none left.
  std::optional<Summary> next_older();

  /// Local. What this rank looks after of it; empty where that is nothing.
  HeldDataset& held(const Summary& summary) { return catalog_[summary.uuid]; }

  /// The committed encoding to restore. Ranks have committed different generations where a run died
  /// while it made new sets, or where a node comes back that was left out since. Then the newest
  /// counts of which every rank's record is left somewhere.
  std::uint64_t choose_generation(const Summary& summary);

 private:
  Summary summarise(const Uuid& uuid);

  /// Which ranks have a record of a generation, as far as this process is asked about them: of a
  /// run of n processes, process p about ranks p, p + n and so on. No process gets all of them.
  using Generations = std::map<std::int64_t, std::set<std::uint32_t>>;
  Generations gather_generations(const HeldDataset& held, std::uint32_t ranks);

  Communicator& comm_;
  Catalog catalog_;
  std::optional<Uuid> last_;
};

}  // namespace cairn
