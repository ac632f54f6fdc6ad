// A dataset of the cache as this run knows it.
#pragma once

#include <string>
#include <vector>

#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

struct CachedDataset {
  enum class State {
    usable,       ///< every rank has its files, and they are protected as the record says
    unusable,     ///< cannot be restored now; removed once a newer one is committed
    other_ranks,  ///< written by another number of ranks; as above
    left_alone,   ///< never touched: written by a later Cairn, or the user says so
  };

  DatasetInfo info;
  std::size_t store = 0;
  State state = State::usable;
  RankRecord record;              ///< this rank's, where usable
  bool flushed = false;           ///< the prefix directory has it too
  bool quarantined = false;       ///< restarts from it have died too often
  bool checked = false;           ///< in this run, all blocks were compared with their checksums
  std::vector<RankFolder> parts;  ///< what this rank removes to be rid of the dataset
  std::string reason;             ///< why it is not usable
  std::string restored;           ///< what it took to make it usable; empty: nothing. On rank 0
  double restore_seconds = 0;
  std::string name_here;  ///< if not usable: as a record tells that this rank has read

  bool usable() const { return state == State::usable; }
  /// A run may go back to it.
  bool restorable() const { return usable() && info.is_checkpoint() && !quarantined; }
  /// "dataset 5 (ckpt.5)"
  std::string label() const { return fmt::format("dataset {} ({})", info.number, info.name); }
};

}  // namespace cairn
