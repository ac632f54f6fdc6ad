// Sees to it that datasets which lose files to a newer one are marked as replaced, and says so
// once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "prefix/replaced.hpp"

namespace cairn {

class ReplacedMarks {
 public:
  /// `log`: silent but on rank 0.
  explicit ReplacedMarks(Log log) : log_(std::move(log)) {}

  /// Local, the same on all ranks. These folders of datasets were not looked at yet.
  void add(const std::vector<std::string>& unmarked) {
    unmarked_.insert(unmarked.begin(), unmarked.end());
  }
  /// Collective. A dataset was published, and mark_replaced() came to this.
  void take(Communicator& comm, const Site& site, const DatasetInfo& dataset,
            const Result<std::vector<Replaced>>& replaced);

 private:
  void mark_again(Communicator& comm, const Site& site);
  void warn(const std::vector<Replaced>& replaced, const std::string& prefix);

  Log log_;
  bool is_told_ = false;
  std::set<std::string> unmarked_;  ///< folders of datasets
};

}  // namespace cairn
