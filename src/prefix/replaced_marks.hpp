// Marks datasets that lose files to a newer one as replaced, and logs that once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/once.hpp"
#include "prefix/replaced.hpp"

namespace cairn {

class ReplacedMarks {
 public:
  /// `log`: silent except on rank 0.
  explicit ReplacedMarks(Log log) : log_(std::move(log)) {}

  /// Local, the same on all ranks. Adds folders of datasets that were not processed yet.
  void add(const std::vector<std::string>& unmarked) {
    unmarked_.insert(unmarked.begin(), unmarked.end());
  }
  /// Collective. Processes the result of mark_replaced() for a published dataset.
  void take(Communicator& comm, const Site& site, const DatasetInfo& dataset,
            const Result<std::vector<Replaced>>& replaced);

 private:
  void mark_again(Communicator& comm, const Site& site);
  void warn(const std::vector<Replaced>& replaced, const std::string& prefix);

  Log log_;
  Once warning_;
  std::set<std::string> unmarked_;  ///< folders of datasets
};

}  // namespace cairn
