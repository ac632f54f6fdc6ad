// A dataset to restart from as this run knows it: of the cache, or read where it is in the prefix
// directory.
#pragma once

#include <string>
#include <vector>

#include "records/dataset_state.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

struct CachedDataset {
  enum class Place {
    cache,   ///< in `store`
    prefix,  ///< under the program's own names; the caches have nothing to do with it
  };

  DatasetInfo info;
  Place place = Place::cache;
  std::size_t store = 0;
  CacheState state = CacheState::protected_;  ///< in `place`
  PrefixState there = PrefixState::absent;    ///< in the prefix directory, as last looked up
  RankRecord record;                          ///< this rank's, where usable
  bool survives_nodes = false;    ///< in `place`: the loss of as many as its scheme can rebuild
  bool is_in_flight = false;      ///< it is being copied there while the program goes on
  bool checked = false;           ///< in this run, all blocks were compared with their checksums
  std::vector<RankFolder> parts;  ///< what this rank removes to be rid of the dataset
  std::string reason;             ///< why it is not usable
  std::string restored;           ///< what it took to make it usable; empty: nothing. On rank 0
  double restore_seconds = 0;
  std::string name_here;  ///< if not usable: as a record tells that this rank has read

  bool usable() const { return state == CacheState::protected_; }
  /// A run may go back to it.
  bool restorable() const { return usable() && info.is_checkpoint() && !is_held_back(there); }
  bool in_prefix() const { return place == Place::prefix; }
  bool flushed() const { return in_prefix() || is_flushed(there); }
  /// All of it is there now. What restarts have died from stays held back.
  void note_flushed() {
    there = is_held_back(there) ? PrefixState::quarantined : PrefixState::settled;
  }
  bool is_in(std::size_t a_store) const { return place == Place::cache && store == a_store; }
  /// "dataset 5 (ckpt.5)"
  std::string label() const { return fmt::format("dataset {} ({})", info.number, info.name); }
};

}  // namespace cairn
