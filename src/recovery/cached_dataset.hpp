// A dataset as this run knows it: in its caches, or read in the prefix directory without a copy in
// a cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/dataset_state.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

struct CachedDataset {
  enum class Place {
    cache,   ///< in `store`
    prefix,  ///< in the prefix directory, under the program's own names; not in a cache
  };

  /// Of what is not usable.
  enum class Repair {
    unknown,  ///< a node that is away may have what is missing
    later,    ///< what there is suffices, or cannot be read now: another try may go well
    never,    ///< all of it was looked at where it was written, and its scheme does not suffice
  };

  DatasetInfo info;
  Place place = Place::cache;
  std::size_t store = 0;
  CacheState state = CacheState::protected_;  ///< in `place`
  PrefixState there = PrefixState::absent;    ///< its state in the prefix directory, as last read
  RankRecord record;                          ///< this rank's, where usable
  bool survives_nodes = false;  ///< in `place`: it survives the loss of nodes, by its scheme
  /// Why it could not be protected as its level asks for; no other gives its place to it.
  std::optional<Error> weaker;
  bool may_be_there = false;      ///< in the prefix directory, which this run could not read yet
  bool is_in_flight = false;      ///< an asynchronous flush is copying it
  bool names_are_taken = false;   ///< by newer files: it is copied at the end of the run, or not
  bool checked = false;           ///< in this run, all blocks were compared with their checksums
  std::vector<RankFolder> parts;  ///< what this rank removes to delete the dataset
  std::string reason;             ///< why it is not usable
  Repair repair = Repair::unknown;
  std::string restored;  ///< on rank 0: what a restore had to do; empty: nothing
  double restore_seconds = 0;

  bool usable() const { return state == CacheState::protected_; }
  /// A run may restart from it.
  bool restorable() const { return usable() && info.is_checkpoint() && !is_held_back(there); }
  /// An output that is to be in the prefix directory: this run or a later one may still copy it.
  bool awaits_copy() const { return info.is_output() && !flushed() && !is_given_up(); }
  /// It is lost for good.
  bool is_given_up() const { return repair == Repair::never && !may_be_there; }
  /// A lost output does not wait for a checkpoint: a program may write none.
  bool goes_with_next_dataset() const {
    return is_given_up() && info.is_output() && !info.is_checkpoint();
  }
  bool in_prefix() const { return place == Place::prefix; }
  bool flushed() const { return in_prefix() || is_flushed(there); }
  /// Its flush is complete. A dataset that is held back stays so.
  void note_flushed() {
    there = is_held_back(there) ? PrefixState::quarantined : PrefixState::settled;
  }
  bool is_in(std::size_t a_store) const { return place == Place::cache && store == a_store; }
  /// "dataset 5 (ckpt.5)"
  std::string label() const {
    return info.name.empty() ? fmt::format("dataset {}", info.number)
                             : fmt::format("dataset {} ({})", info.number, info.name);
  }
};

}  // namespace cairn
