// Which failures a dataset survives now, and how a program waits until it survives more.
#pragma once

#include <string>

#include "session/calls.hpp"
#include "session/dataset_writer.hpp"

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

/// A name stands for the newest dataset that has it.
class DatasetSafety {
 public:
  /// All must outlive this.
  DatasetSafety(Calls& calls, ThisRun& run, CachedDatasets& cached, Flushing& flushing,
                LateProtection& late, const DatasetWriter& writer)
      : calls_(calls),
        run_(run),
        cached_(cached),
        flushing_(flushing),
        late_(late),
        writer_(writer) {}

  /// Local. What the dataset survives now, as far as this rank can know without a look at the
  /// prefix directory. Never better than the truth, and never waits. In any state but UNINIT.
  Safety of(const std::string& name) const;
  /// Local. The same, of the dataset that the last Complete was for. Whether it is `none` is the
  /// same on all ranks until the next call.
  Safety of_completed() const;
  /// A call as those of Session are. Waits until it is so safe on all ranks; false if that takes
  /// longer than `seconds`: negative for no limit, 0 for a look. IDLE.
  Result<bool> wait(const std::string& name, Safety wanted, double seconds);
  /// Collective. The program ends without Session::finalize(): from here on every call is
  /// wrong_state. What is written is protected as fast as the machine can; what fails is logged.
  void protect_at_end();

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
  /// As wait(), once protection does not stand in the way.
  Result<bool> wait_for_copies(Communicator& comm, const std::string& name, Safety wanted,
                               const WaitEnd& end);
  Status refuse_hopeless(const std::string& name, const Found& found, Safety wanted) const;

  Calls& calls_;
  ThisRun& run_;
  CachedDatasets& cached_;
  Flushing& flushing_;
  LateProtection& late_;
  const DatasetWriter& writer_;
};

}  // namespace cairn
