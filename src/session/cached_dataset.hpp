// A dataset of the cache as this run knows it.
#pragma once

#include <string>
#include <vector>

#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

struct CachedDataset {
  enum class State {
    usable,        ///< every rank has its files, and they are protected as the record says
    unusable,      ///< cannot be restored now; what is left goes when the next dataset begins
    other_ranks,   ///< written by another number of ranks
    newer_format,  ///< written by a later Cairn; never touched
  };

  DatasetInfo info;
  std::size_t store = 0;
  State state = State::usable;
  RankRecord record;                ///< this rank's, where usable
  bool checked = false;             ///< in this run, all blocks were compared with their checksums
  std::vector<RankFolder> parts;    ///< what this rank removes to be rid of the dataset
  std::string reason;               ///< why it is not usable

  bool usable() const { return state == State::usable; }
  /// "dataset 5 (ckpt.5)"
  std::string label() const { return fmt::format("dataset {} ({})", info.number, info.name); }
};

}  // namespace cairn
