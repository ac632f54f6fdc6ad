// How often a restart was begun from a dataset, and what came of it.
#pragma once

#include <set>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

/// How one in quarantine comes back, and until when it can. `is_listed`: the prefix directory has
/// it.
std::string text_of_lifting(const DatasetRecord& record, bool is_listed, const Settings& settings);

/// Local, for rank 0; where there is no keeper nothing is written. Datasets that are not listed are
/// passed over by note_fetched() and note_failed(). Trouble is only logged.
class AttemptBook {
 public:
  /// What is passed by reference must outlive this.
  AttemptBook(Clock& clock, const Settings& settings, Log log)
      : clock_(clock), settings_(settings), log_(std::move(log)) {}

  void note_fetched(Keeper* keeper, const Uuid& dataset) const;
  void note_failed(Keeper* keeper, const Uuid& dataset, const std::string& reason) const;

  /// A restart from it begins; the run may die of it. Of those that only the caches have too.
  void note_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  /// It came to an error, and killed nobody.
  void take_back_attempt(Keeper* keeper, const DatasetInfo& dataset) const;
  void note_restarted(Keeper* keeper, const DatasetInfo& dataset) const;

  /// It is in the prefix directory now: what was counted of it goes there.
  void carry_over(Keeper* keeper, const DatasetInfo& dataset) const;
  /// Those of checkpoints that the caches do not have any more.
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
