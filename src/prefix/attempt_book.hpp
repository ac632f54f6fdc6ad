// Counts the restarts from a dataset, and their results.
#pragma once

#include <set>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

/// Text: how a user lifts the quarantine, and until when that is possible. `is_listed`: the prefix
/// directory has the dataset.
std::string text_of_lifting(const DatasetRecord& record, bool is_listed, const Settings& settings);

/// Local, for rank 0. Without a keeper it writes nothing. note_fetched() and note_failed() ignore
/// datasets that are not listed. Errors are only logged.
class AttemptBook {
 public:
  /// Arguments passed by reference must outlive this.
  AttemptBook(Clock& clock, const Settings& settings, Log log)
      : clock_(clock), settings_(settings), log_(std::move(log)) {}

  void note_fetched(Keeper* keeper, const Uuid& dataset) const;
  void note_failed(Keeper* keeper, const Uuid& dataset, const std::string& reason) const;

  /// A restart from it begins, and may kill the run. Also for datasets that only the caches have.
  void note_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  /// The restart has failed with an error, and the run is alive.
  void take_back_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  void note_restarted(Keeper* keeper, const DatasetInfo& dataset) const;

  /// The dataset is in the prefix directory now: moves its counts to its record there.
  void carry_over(Keeper* keeper, const DatasetInfo& dataset) const;
  /// Removes the counts of checkpoints that are not in the caches any more.
  void forget_all_but(Keeper& keeper, const std::set<Uuid>& cached) const;

 private:
  template <class Change>
  void change_record(Keeper* keeper, const Uuid& dataset, Change change) const;
  template <class Change>
  void change_attempts(Keeper& keeper, const DatasetInfo& dataset, Change change) const;
  void count(DatasetRecord& record, bool is_listed) const;

  Clock& clock_;
  const Settings& settings_;
  Log log_;
};

}  // namespace cairn
