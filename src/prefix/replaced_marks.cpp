#include "prefix/replaced_marks.hpp"

#include <utility>

namespace cairn {

void ReplacedMarks::take(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                         const Result<std::vector<Replaced>>& replaced) {
  mark_again(comm, site);
  if (replaced) return warn(*replaced, site.folder.prefix);
  unmarked_.insert(site.folder.dataset(dataset));
  log_.warning(
      "cannot find out which older datasets lost files to dataset {} in {}: {}. Until Cairn tries "
      "again with the next dataset, cairn index list may show these as published. No restart uses "
      "a dataset whose files have changed",
      dataset.number, site.folder.prefix, replaced.error().text);
}

/// Repeats what has failed, as the reason may be gone. If the run ends before, cairn verify does
/// it.
void ReplacedMarks::mark_again(Communicator& comm, const Site& site) {
  const std::set<std::string> again = std::exchange(unmarked_, {});
  for (const std::string& folder : again) {
    const auto marked = mark_replaced(comm, site, folder, true);
    if (marked) warn(*marked, site.folder.prefix);
    if (!marked) unmarked_.insert(folder);
  }
}

/// Logged once, as such a program does it each time.
void ReplacedMarks::warn(const std::vector<Replaced>& replaced, const std::string& prefix) {
  if (replaced.empty() || !warning_.is_first()) return;
  const Replaced& first = replaced.front();
  log_.warning(
      "{} has overwritten {} of {} in {}, so no restart can use {} there; give the files of each "
      "dataset different names, for example with its number in them. Cairn logs this once; cairn "
      "index list shows all of them",
      first.newer, first.file, first.older, prefix, first.older);
}

}  // namespace cairn
