// Finds and removes the datasets that a dead job left in its stores.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cache/catalog.hpp"
#include "recovery/survey.hpp"

namespace cairn {

/// All parts of one dataset that were found, in all stores.
struct Remains {
  Uuid uuid;
  std::uint64_t number = 0;
  std::string name;         ///< empty if no record has it
  std::uint32_t ranks = 0;  ///< that wrote it; 0 if unknown
  std::vector<HeldPart> parts;
};

/// Local. The datasets in these folders (each `<store>/<user>/cairn.<job>.<id>` of a node, or a
/// copy of one), newest first; changes nothing. Errors: a folder that cannot be listed; it is named
/// in `unreadable` instead, where that is given, and costs nothing else.
Result<std::vector<Remains>> find_remains(Files& files, const std::vector<std::string>& roots,
                                          RecordDetail detail = RecordDetail::outline,
                                          std::vector<std::string>* unreadable = nullptr);

/// Local. Removes all of it that was found, and what was `made` of it. The caller has the locks.
Status remove_remains(Files& files, const Remains& remains,
                      const std::vector<RankFolder>& made = {});

/// The ranks whose parts have a record, and so are complete: a record is copied last.
std::set<int> ranks_with_record(const Remains& remains);

/// Local. What a run would know of it before it reads its files.
Summary summarise(const Remains& remains);

/// Local. Whether a run that sees only this would count it as a dataset that was complete: some
/// rank's record is committed, which proves that the others were prepared, or may have been.
bool may_be_committed(const Remains& remains);

}  // namespace cairn
