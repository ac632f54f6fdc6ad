// Which failures a dataset survives now, and how a program waits until it survives more.
#pragma once

#include <string>

#include "session/flushing.hpp"
#include "session/late_protection.hpp"

namespace cairn {

/// Each includes those before it. The values are those of cairn.h.
enum class Safety : int {
  none,        ///< no dataset of the name can be restored
  writing,     ///< between Start and Complete
  written,     ///< survives the death of processes
  protected_,  ///< survives the loss of as many nodes as its redundancy scheme can rebuild
  flushed,     ///< survives the loss of the caches
};

/// When a wait ends.
struct WaitEnd {
  std::int64_t steady_us = 0;
  bool only_looks = true;

  /// After so many seconds from now; negative: never; 0: it only looks.
  static WaitEnd in(double seconds, std::int64_t now_us);
  static WaitEnd at_once() { return {}; }
};

/// "written", "protected"; for messages.
std::string_view name_of(Safety safety);

/// Of the datasets that are complete. A name stands for the newest dataset that has it.
class DatasetSafety {
 public:
  /// All must outlive this.
  DatasetSafety(ThisRun& run, CachedDatasets& cached, Flushing& flushing,
                const LateProtection& late)
      : run_(run), cached_(cached), flushing_(flushing), late_(late) {}

  /// Local. Never better than the truth, and never waits.
  Safety of(const std::string& name) const;
  /// Collective. Until the dataset is so safe on all ranks: true; false at the end. Errors are
  /// agreed.
  Result<bool> wait(Communicator& comm, const std::string& name, Safety wanted, const WaitEnd& end);

 private:
  /// What all ranks find of the dataset that is waited for.
  struct Found {
    DatasetInfo dataset;
    Safety now = Safety::none;
    bool is_in_flight = false;
    bool is_due = false;  ///< a copy is to be made as soon as that is possible
  };

  const CachedDataset* find_cached(const std::string& name) const;
  Safety of(const CachedDataset& dataset) const;
  Found look(Communicator& comm, const std::string& name) const;
  Status refuse_hopeless(const std::string& name, const Found& found, Safety wanted) const;

  ThisRun& run_;
  CachedDatasets& cached_;
  Flushing& flushing_;
  const LateProtection& late_;
};

}  // namespace cairn
