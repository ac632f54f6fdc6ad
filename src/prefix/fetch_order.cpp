#include "prefix/fetch_order.hpp"

#include <algorithm>

#include "prefix/unread.hpp"
#include "records/state_words.hpp"

namespace cairn {
namespace {

template <class IsIt>
const DatasetRecord* find_if(const Listing& listing, IsIt is_it) {
  const auto found = std::find_if(listing.begin(), listing.end(), is_it);
  return found == listing.end() ? nullptr : &*found;
}

}  // namespace

namespace {

/// With SCR_FETCH=0 nothing comes from the prefix directory but what the job has written there in
/// place of a cache.
bool is_in_reach(const DatasetRecord& record, const Settings& settings) {
  const bool written_in_place = record.info.in_place() && !record.info.was_found();
  return settings.fetch || (written_in_place && record.job_id == settings.job_id);
}

const DatasetRecord* find_checkpoint(const Listing& listing, const std::string& name) {
  const DatasetRecord* named = find_named(listing, name);
  return named != nullptr && named->info.is_checkpoint() ? named : nullptr;
}

}  // namespace

bool may_be_fetched(const DatasetRecord& record, const Settings& settings) {
  const PrefixState state = state_of(record);
  const bool is_stopper =
      state == PrefixState::failed && settings.on_fetch_fail == OnFetchFail::stop;
  return record.info.is_checkpoint() && is_in_reach(record, settings) &&
         (may_restart_from(state) || is_stopper);
}

const DatasetRecord* next_to_fetch(const Listing& listing, const Settings& settings,
                                   const std::string& current, const std::set<Uuid>& tried) {
  const auto untried = [&](const DatasetRecord* record) {
    return record != nullptr && !tried.contains(record->info.uuid);
  };
  const DatasetRecord* asked_for = find_checkpoint(listing, settings.current);
  if (untried(asked_for) && state_of(*asked_for) != PrefixState::quarantined &&
      is_in_reach(*asked_for, settings))
    return asked_for;
  const DatasetRecord* first = asked_for ? asked_for : find_checkpoint(listing, current);
  const auto newest = [&](const Uuid* older_than) {
    return find_if(listing, [&](const DatasetRecord& record) {
      return untried(&record) && may_be_fetched(record, settings) &&
             (older_than == nullptr || record.info.uuid <= *older_than);
    });
  };
  const DatasetRecord* next = first ? newest(&first->info.uuid) : nullptr;
  return next != nullptr ? next : newest(nullptr);
}

const UnreadDataset* unread_before(const std::vector<UnreadDataset>& unread, const Listing& listing,
                                   const DatasetRecord* next, const Uuid& newest_cached,
                                   const Settings& settings, const std::string& current) {
  const std::string& wanted = settings.current.empty() ? current : settings.current;
  const DatasetRecord* named = find_checkpoint(listing, wanted);
  Uuid known = next != nullptr ? next->info.uuid : Uuid{};
  if (!wanted.empty()) known = std::min(known, named != nullptr ? named->info.uuid : Uuid{});
  return forbidding(UnreadMatters::restart, unread, std::max(known, newest_cached));
}

std::string text_of_useless_current(const Listing& listing,
                                    const std::vector<UnreadDataset>& unread,
                                    const Settings& settings) {
  if (settings.current.empty()) return {};
  const DatasetRecord* named = find_named(listing, settings.current);
  if (named == nullptr)
    return fmt::format("SCR_CURRENT={}: {} such checkpoint in {}", settings.current,
                       unread.empty() ? "there is no" : "it is unknown whether there is a",
                       settings.prefix);
  if (!named->info.is_checkpoint())
    return fmt::format("SCR_CURRENT={} is ignored: {} is not a checkpoint", settings.current,
                       named->label());
  if (state_of(*named) != PrefixState::quarantined) return {};
  return fmt::format(
      "SCR_CURRENT={0} is ignored: {1} {2}, {3}; \"cairn index quarantine --lift {0}\" ends that",
      settings.current, named->label(), words_of(PrefixState::quarantined).sentence,
      why_in_quarantine(*named));
}

std::string why_in_quarantine(const DatasetRecord& record) {
  if (record.attempts == 0) return "because a user put it there";
  return fmt::format(
      "because {} from it {} died",
      record.attempts == 1 ? "1 restart" : std::to_string(record.attempts) + " restarts",
      record.attempts == 1 ? "has" : "have");
}

std::string text_of_stop(const DatasetRecord& record, const std::string& why,
                         const Settings& settings) {
  return fmt::format(
      "{0} in {1} cannot be used: {2}. The run does not start, because CAIRN_ON_FETCH_FAIL=stop. "
      "Repair the checkpoint (\"cairn verify --repair {3}\"), give it up (\"cairn index drop "
      "{3}\"), or set CAIRN_ON_FETCH_FAIL=older to use the next older one",
      record.label(), settings.prefix, why, record.info.name);
}

std::string text_of_refusal(const std::string& why, const Settings& settings) {
  return fmt::format(
      "there may be a checkpoint to restart from, but {}. The run does not start {}, so that "
      "nothing replaces that checkpoint. Correct the cause and start again, or set "
      "CAIRN_ON_FETCH_FAIL=fresh to start from scratch",
      why,
      settings.on_fetch_fail == OnFetchFail::stop ? "from an older one, or from scratch"
                                                  : "from scratch");
}

bool has_right_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings) {
  return settings.elastic || record.info.ranks == ranks;
}

FetchStep step_for(const DatasetRecord* next, const Uuid& newest_cached, std::uint32_t ranks,
                   const Settings& settings) {
  if (next == nullptr || next->info.uuid <= newest_cached) return FetchStep::none;
  if (has_right_ranks(*next, ranks, settings)) return FetchStep::take;
  return settings.on_mismatch == OnMismatch::refuse ? FetchStep::refuse : FetchStep::pass_over;
}

Error wrong_ranks(const DatasetRecord& record, std::uint32_t ranks, const Settings& settings) {
  return Error{
      Code::wrong_ranks,
      fmt::format("{} in {} was written by {} ranks, and this run has {}. Start with {} ranks, or "
                  "set CAIRN_ELASTIC=1 to restart with any number; CAIRN_ON_MISMATCH=fresh starts "
                  "without this checkpoint",
                  record.label(), settings.prefix, record.info.ranks, ranks, record.info.ranks)};
}

}  // namespace cairn
