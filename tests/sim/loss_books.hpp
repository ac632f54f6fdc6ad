// Which datasets have lost something in the caches, and what calls have reported of that.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "chance.hpp"
#include "cluster.hpp"

namespace cairn::sim {

/// The keys of the datasets that an error reports as lost. One text may join several errors.
std::set<int> keys_of_lost(const std::string& text);

/// The call has done what it was to do for this dataset: its error reports the loss of others.
bool reports_only_other_losses(int key, const Error& error);

class LossBooks {
 public:
  /// The cluster must outlive this.
  explicit LossBooks(const Cluster& cluster) : cluster_(cluster) {}

  /// Of ranks on these nodes: what others have is not within its reach.
  void begin_run(const Nodes& nodes);
  /// What `event` changes or removes in the caches is damage to the datasets that it belongs to.
  void note_damage(const std::function<void()>& event);
  /// Damages a file of a dataset that `may_be` damaged. What happens to it; empty if there is none.
  std::string damage_file(const std::function<bool(int key)>& may_be, Chance& chance);
  /// Something of it is missing that was damaged, and is not repaired since. Whether its scheme can
  /// repair it is not known here.
  bool is_damaged(int key);
  /// True for the first rank on which this call of the run returns: all ranks get the same error.
  bool is_first_to_return(const std::string& call) { return returned_.insert(call).second; }
  /// `call` reports the loss of this dataset, which `is_in_prefix` by now or is not. What is wrong
  /// with that; empty if nothing is.
  std::string wrong_report(int key, const std::string& call, bool is_in_prefix);
  /// From here on the caches need not keep what is left of older datasets.
  void checkpoint_completed(int key);

 private:
  /// What has been reported of the loss of one dataset.
  struct Report {
    std::string call;  ///< of this run; empty: only an earlier run has reported it
    int newest = 0;    ///< checkpoint that was complete since
  };
  struct CachedFile {
    Place place;
    std::string path;
    InodePtr file;
  };

  std::vector<CachedFile> files_in_caches();

  const Cluster& cluster_;
  std::set<std::string> nodes_;               ///< of this run; the empty name is that of all nodes
  std::map<std::string, int> key_of_folder_;  ///< of datasets, in the caches
  std::map<std::string, Blob> damaged_;       ///< by path: what a file had before it was damaged
  std::set<std::string> returned_;            ///< calls of this run
  std::map<int, Report> reports_;
};

}  // namespace cairn::sim
