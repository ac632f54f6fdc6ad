// The calls that name datasets, and change which of them there are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "session/calls.hpp"
#include "session/restarting.hpp"

namespace cairn {

/// Every function is a call as those of Session are: collective, although it takes no communicator,
/// and allowed in IDLE.
class NamedDatasets {
 public:
  /// All must outlive this.
  NamedDatasets(Calls& calls, ThisRun& run, CachedDatasets& cached, PrefixSide& prefix,
                Flushing& flushing, Restarting& restarting)
      : calls_(calls),
        run_(run),
        cached_(cached),
        prefix_(prefix),
        flushing_(flushing),
        restarting_(restarting) {}

  /// The application restarted from dataset `name` by its own means.
  Status current(const std::string& name);
  /// Takes the dataset out of the prefix directory's index; its files stay there.
  Status drop(const std::string& name);
  /// Removes all datasets of that name from the cache and from the prefix directory, files and all.
  /// If a rule forbids that for one of them, or this cannot be known now, none is removed.
  Status remove(const std::string& name);
  /// Removes from the caches all datasets of which a rank has a file with such a name; what is in
  /// the prefix directory stays. Returns their names. `goes` gives the same answer on all ranks.
  Result<std::set<std::string>> remove_from_caches(
      const std::function<bool(const std::string& file)>& goes);

 private:
  std::optional<DatasetInfo> find_in_cache(const std::string& name);
  std::vector<std::int64_t> find_named(const std::string& name) const;
  std::set<std::string> remove_cached(Communicator& comm, const std::vector<std::int64_t>& which);

  Calls& calls_;
  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  Flushing& flushing_;
  Restarting& restarting_;
};

}  // namespace cairn
