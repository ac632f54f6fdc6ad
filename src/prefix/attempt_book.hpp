// Counts the restarts from each dataset, and records how they ended.
#pragma once

#include <set>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

/// What a user can do about a dataset in quarantine, and until when. `is_listed`: the prefix
/// directory has it.
std::string text_of_lifting(const DatasetRecord& record, bool is_listed, const Settings& settings);

/// Local, for rank 0. Without a keeper all functions do nothing. note_fetched() and note_failed()
/// ignore datasets that are not listed. Errors are only logged.
class AttemptBook {
 public:
  /// Arguments passed by reference must outlive this.
  AttemptBook(Clock& clock, const Settings& settings, Log log)
      : clock_(clock), settings_(settings), log_(std::move(log)) {}

  void note_fetched(Keeper* keeper, const Uuid& dataset) const;
  void note_failed(Keeper* keeper, const Uuid& dataset, const std::string& reason) const;

  /// A restart from it begins, and may kill the run. It may be a dataset that only the caches have.
  void note_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  /// The restart returned an error, and did not kill the run.
  void take_back_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  void note_restarted(Keeper* keeper, const DatasetInfo& dataset) const;

  /// It is listed from now on: moves its count from the list `attempts` to its record.
  void carry_over(Keeper* keeper, const DatasetInfo& dataset) const;
  /// Removes from the list `attempts` what the caches do not have any more.
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
