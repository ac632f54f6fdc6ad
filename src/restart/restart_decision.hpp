// What a restart does next: one pure function of the facts, the settings, and what this run has
// tried. The session carries out each step and then decides again. `cairn explain` follows the same
// steps, but only checks whether they would succeed. Nothing else decides.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "prefix/scr_imports.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

/// All checkpoints that a restart could use, as far as they are known now.
struct RestartFacts {
  std::uint32_t ranks = 0;            ///< of this run
  bool is_over = false;               ///< the program has restarted, or continued without
  std::optional<Uuid> asked_for;      ///< the checkpoint that the program named by SCR_Current
  std::vector<CachedDataset> cached;  ///< newest first
  std::vector<Uuid> bypassing;        ///< listed ones whose level bypasses the cache: read in place

  // The prefix directory.
  std::string trouble;                ///< why it could not be read; empty if it was read
  Listing listing;                    ///< newest first
  std::vector<UnreadDataset> unread;  ///< exist, but their records cannot be read now
  std::string current;                ///< a name, or empty
  Listing cached_attempts;            ///< Keeper::attempts(): counted for what only caches have
  std::vector<std::string> damaged;   ///< records that are damaged
  ScrFacts scr;
};

enum class RestartStep : std::uint32_t {
  // Final steps: the answer to the program.
  begin_anew,      ///< there is no checkpoint
  take_cached,     ///< `dataset` is offered to the program: it is ready among RestartFacts::cached
  start_fresh,     ///< there are checkpoints, but none can be used: `why`
  refuse,          ///< the run must not start: `why`
  refuse_for_now,  ///< the same, for a transient reason
  // Other steps: after each of them, decide again.
  offer_copy,     ///< another number of ranks wrote it to the caches: find all its parts
  copy_first,     ///< only the caches have it: copy it to the prefix directory
  import_first,   ///< SCR wrote it: import it
  fetch,          ///< copy it from the prefix directory to the caches
  read_in_place,  ///< check it in the prefix directory, where the program will read it
};

/// The name of a step, for tests and traces ("read_in_place").
std::string_view name_of(RestartStep step);

/// A step that this run has carried out.
struct RestartAttempt {
  RestartStep step{};
  Uuid dataset;
  Code code = Code::ok;  ///< ok: it succeeded
  Trouble trouble;       ///< why it failed

  bool has_failed() const { return code != Code::ok; }
};
using RestartAttempts = std::vector<RestartAttempt>;

struct RestartDecision {
  RestartStep step = RestartStep::begin_anew;
  Uuid dataset;
  Code code = Code::ok;  ///< of a refusal
  std::string why;       ///< of a refusal, and of start_fresh

  bool is_last() const { return step <= RestartStep::refuse_for_now; }
  bool is_refusal() const {
    return step == RestartStep::refuse || step == RestartStep::refuse_for_now;
  }
};

/// `attempts`: oldest first. A start_restart() that failed is recorded as a failed take_cached.
/// Has no side effect.
RestartDecision decide_restart(const RestartFacts& facts, const Settings& settings,
                               const RestartAttempts& attempts);

/// Collective. Replaces `decision` by that of rank 0.
void share(Communicator& comm, RestartDecision& decision);

/// The datasets that this run tried in the prefix directory, and those of SCR that it could not
/// import.
std::set<Uuid> tried_datasets(const RestartAttempts& attempts);

/// Removes the attempts that may be made again: all but failed take_cached steps, and imports from
/// SCR that can never succeed.
void forget_retryable(RestartAttempts& attempts);

/// Why SCR_CURRENT has no effect on the next restart; empty if it has, or is not set.
std::string why_current_is_ignored(const RestartFacts& facts, const Settings& settings,
                                   const RestartAttempts& attempts);

}  // namespace cairn
