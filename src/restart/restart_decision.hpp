// What a restart does next: one pure function of what there is, the settings, and what this run has
// tried. The session carries its steps out and asks again; `cairn explain` follows the same steps
// and only looks whether they would succeed. Nothing else decides.
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

/// What a restart could come from, as far as it is known now.
struct RestartFacts {
  std::uint32_t ranks = 0;            ///< of this run
  bool is_over = false;               ///< the program has restarted, or has gone on without
  std::optional<Uuid> asked_for;      ///< the checkpoint that the program named by SCR_Current
  std::vector<CachedDataset> cached;  ///< newest first
  std::vector<Uuid> bypassing;        ///< listed ones that are read in place: so says their level

  // The prefix directory.
  std::string trouble;                ///< why nothing is known of it; empty if it is known
  Listing listing;                    ///< newest first
  std::vector<UnreadDataset> unread;  ///< there, and nobody knows now what they are
  std::string current;                ///< a name, or empty
  Listing held_back;                  ///< from which restarts have died; only the caches have them
  std::vector<std::string> damaged;   ///< records that nobody can read
  ScrFacts scr;
};

enum class RestartStep : std::uint32_t {
  // The last ones: there is nothing to do but to answer the program.
  begin_anew,      ///< there is no checkpoint
  take_cached,     ///< `dataset` is offered to the program: it is ready among RestartFacts::cached
  start_fresh,     ///< there are checkpoints, but none can be had: `why`
  refuse,          ///< the run must not start: `why`
  refuse_for_now,  ///< the same, for a reason that may pass
  // The others: after each of these the next one is to be decided.
  offer_copy,     ///< other ranks wrote it to the caches: find all its parts, then it is ready
  copy_first,     ///< it is in the caches, and has to be in the prefix directory
  import_first,   ///< SCR wrote it
  fetch,          ///< copy it from the prefix directory to the caches
  read_in_place,  ///< check it in the prefix directory, where the program is to read it
};

/// The name of a step, for tests and traces ("read_in_place").
std::string_view name_of(RestartStep step);

/// A step that this run has carried out.
struct RestartAttempt {
  RestartStep step{};
  Uuid dataset;
  Code code = Code::ok;  ///< ok if it went well
  Trouble trouble;       ///< else

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

/// `attempts`: in the order in which they were made. A start_restart() that failed is one of
/// take_cached.
RestartDecision decide_restart(const RestartFacts& facts, const Settings& settings,
                               const RestartAttempts& attempts);

/// Collective. Rank 0's on all ranks.
void share(Communicator& comm, RestartDecision& decision);

/// The datasets of the prefix directory that were tried, and those of SCR that could not be
/// imported.
std::set<Uuid> tried_datasets(const RestartAttempts& attempts);

/// Removes the attempts that may be made again: all but failed take_cached steps, and imports from
/// SCR that can never succeed.
void forget_retryable(RestartAttempts& attempts);

/// Why SCR_CURRENT has no effect on the next restart; empty if it has, or is not set.
std::string why_current_is_ignored(const RestartFacts& facts, const Settings& settings,
                                   const RestartAttempts& attempts);

}  // namespace cairn
