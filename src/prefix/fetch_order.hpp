// Which checkpoint of the prefix directory a run takes, and in which order it tries them: pure
// functions of what is known there, so that the job and `cairn explain` cannot differ.
#pragma once

#include <set>
#include <string>

#include "config/settings.hpp"
#include "prefix/keeper.hpp"

namespace cairn {

/// A checkpoint from which not too many restarts have died, and that nobody has found damaged; with
/// CAIRN_ON_FETCH_FAIL=stop that one too: nothing older may take its place, later runs included.
bool may_be_fetched(const DatasetRecord& record, const Settings& settings);

/// The newest of that name; null if there is none, or the name is empty.
const DatasetRecord* find_named(const Listing& listing, const std::string& name);

/// Why SCR_CURRENT names nothing that a restart could begin with; empty if it does.
std::string text_of_useless_current(const Listing& listing,
                                    const std::vector<UnreadDataset>& unread,
                                    const Settings& settings);

/// "as ...": restarts from it have died, or somebody has put it there.
std::string why_in_quarantine(const DatasetRecord& record);

/// Where CAIRN_ON_FETCH_FAIL=stop, and it could not be used for this: and what the user can do.
std::string text_of_stop(const DatasetRecord& record, const std::string& why,
                         const Settings& settings);

/// The settings of a run that fetches, and has the defaults else: for commands that judge for any
/// run.
inline Settings fetching() {
  Settings settings;
  settings.fetch = true;
  return settings;
}

/// The next one to try: the one asked for (SCR_CURRENT), also if it was found damaged, else the
/// current one, else the newest; where that is out, the next older ones; and only where none of
/// these is left those that are newer, which somebody went behind. Null if none is left.
const DatasetRecord* next_to_fetch(const Listing& listing, const Settings& settings,
                                   const std::string& current, const std::set<Uuid>& tried);

/// Of those of which nobody knows now what they are, the newest that may be a checkpoint and come
/// before `next` (null: none is left to try), and is newer than what the caches have; null if there
/// is none. Any may be the one that is asked for, or current, where none of that name is listed, or
/// only an older one.
const UnreadDataset* unread_before(const std::vector<UnreadDataset>& unread, const Listing& listing,
                                   const DatasetRecord* next, const Uuid& newest_cached,
                                   const Settings& settings, const std::string& current);

/// Of a run that is refused for something that may pass, and what the user can do.
std::string text_of_refusal(const std::string& why, const Settings& settings);

/// A run of `ranks` can use it.
bool has_right_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

/// What a run does with the next one to try (null: none is left).
enum class FetchStep {
  none,       ///< what the caches have is as new: it fetches nothing
  take,       ///< it is fetched, or read in place; if that fails, the next one is tried
  refuse,     ///< another number of ranks has written it: the run is refused
  pass_over,  ///< the same, with CAIRN_ON_MISMATCH=fresh
};
/// `newest_cached` is what the run would take of its caches, zeros for none.
FetchStep step_for(const DatasetRecord* next, const Uuid& newest_cached, std::uint32_t ranks,
                   const Settings& settings);

/// wrong_ranks, with what the user can do.
Error wrong_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings);

}  // namespace cairn
