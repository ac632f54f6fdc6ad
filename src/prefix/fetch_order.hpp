// Which checkpoint of the prefix directory a run takes, and in which order it tries them: pure
// functions of what is known there, so that the job and `cairn explain` cannot differ.
#pragma once

#include <set>
#include <string>

#include "config/settings.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

/// A restart may fetch this checkpoint: its state allows it (may_restart_from). With
/// CAIRN_ON_FETCH_FAIL=stop also a failed one, so that no run passes it over for an older one.
bool may_be_fetched(const DatasetRecord& record, const Settings& settings);

/// Why a restart cannot begin with what SCR_CURRENT names; empty if it can.
std::string text_of_useless_current(const Listing& listing,
                                    const std::vector<UnreadDataset>& unread,
                                    const Settings& settings);

/// "because ...": restarts from it have died, or a user put it there.
std::string why_in_quarantine(const DatasetRecord& record);

/// The error of a run with CAIRN_ON_FETCH_FAIL=stop that cannot use it, with what the user can do.
std::string text_of_stop(const DatasetRecord& record, const std::string& why,
                         const Settings& settings);

/// The default settings of a run that fetches: for commands that have to answer for any run of the
/// job.
inline Settings fetching() {
  Settings settings;
  settings.fetch = true;
  return settings;
}

/// The next checkpoint to try. First the one that SCR_CURRENT names (even a failed one), else the
/// current one, else the newest. Then the next older ones. Last, if none of these is left, those
/// that are newer than the first. Null if none is left.
const DatasetRecord* next_to_fetch(const Listing& listing, const Settings& settings,
                                   const std::string& current, const std::set<Uuid>& tried);

/// The newest dataset whose record cannot be read now, if a restart must not pass it over: it may
/// be a checkpoint that comes before `next` (null: none is left to try) and is newer than what the
/// caches have. It may also be the one that SCR_CURRENT or `current` names, if the listing has none
/// of that name, or only an older one. Else null.
const UnreadDataset* unread_before(const std::vector<UnreadDataset>& unread, const Listing& listing,
                                   const DatasetRecord* next, const Uuid& newest_cached,
                                   const Settings& settings, const std::string& current);

/// The error of a run that must not start now for a transient reason, with what the user can do.
std::string text_of_refusal(const std::string& why, const Settings& settings);

/// A run of `ranks` ranks can use it.
bool has_right_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

/// What a run does with next_to_fetch().
enum class FetchStep {
  none,       ///< nothing: the caches have one that is as new, or none is left
  take,       ///< fetch it, or read it in place; if that fails, try the next one
  refuse,     ///< fail: another number of ranks has written it
  pass_over,  ///< try the next one: the same, with CAIRN_ON_MISMATCH=fresh
};
/// `newest_cached`: the checkpoint that the run would take from its caches; zeros: none.
FetchStep step_for(const DatasetRecord* next, const Uuid& newest_cached, std::uint32_t ranks,
                   const Settings& settings);

/// The error wrong_ranks, with what the user can do.
Error wrong_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

}  // namespace cairn
