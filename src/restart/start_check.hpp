// What forbids a program to begin a dataset if it does not ask SCR_Have_restart. Unlike
// decide_restart() this needs no message: it uses only what all ranks know.
#pragma once

#include <optional>
#include <vector>

#include "config/settings.hpp"
#include "records/dataset_record.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

struct StartFacts {
  std::uint32_t ranks = 0;        ///< of this run
  bool has_gone_back = false;     ///< SCR_Current has named what the program continues from
  bool is_answered = false;       ///< SCR_Have_restart has answered, or the program goes on without
  std::optional<Uuid> asked_for;  ///< as in RestartFacts
  const std::vector<CachedDataset>& cached;   ///< newest first
  const std::optional<DatasetRecord>& first;  ///< PrefixOwner::first()
};

/// Fails with wrong_ranks if another number of ranks has written what a restart would take first:
/// the new dataset would replace it. The prefix directory decides only until SCR_Have_restart has
/// answered: what comes to be seen there later does not stop the program.
Status check_start(const StartFacts& facts, const Settings& settings);

}  // namespace cairn
