#include "tools/restart_forecast.hpp"

#include <algorithm>

#include "prefix/scr_import.hpp"
#include "prefix/unread.hpp"
#include "restart/passed_over.hpp"

namespace cairn {
namespace {

/// Follows the steps of SCR_Init and SCR_Have_restart, and checks whether each would succeed.
class Forecaster {
 public:
  Forecaster(const JobFacts& facts, const Settings& settings, const LookAtFiles& look)
      : facts_(facts), settings_(settings), look_(look) {
    now_.ranks = facts.ranks;
    if (!settings.cache_purge) now_.cached = facts.cached_datasets();
    now_.trouble = facts.prefix.trouble;
    now_.unread = facts.prefix.unread;
    now_.scr.trouble = facts.prefix.scr_trouble;
    if (!has_prefix()) return;
    const PrefixFacts& left = left_by_purge(facts.prefix, settings);
    now_.listing = left.listing;
    now_.current = left.current;
    now_.cached_attempts = left.attempts;
    now_.damaged = left.unreadable;
    now_.scr.unknown = unknown_of_scr(left.scr, now_.listing, left.dropped);
    now_.scr.current = left.scr.current;
    end_flushes(left);
  }

  Forecast run() {
    if (const Status purged = check_purge(); !purged) {
      refuse(purged.error().text);
      return result_;
    }
    while (true) {
      const RestartDecision decision = decide_restart(now_, settings_, attempts_);
      if (decision.is_last()) return end_with(decision);
      RestartAttempt attempt{decision.step, decision.dataset, {}, look_at(decision)};
      if (attempt.trouble.text.empty() && is_taken(decision)) return result_;
      if (!attempt.trouble.text.empty())
        attempt.code = attempt.trouble.may_pass ? Code::io : Code::lost;
      attempts_.push_back(std::move(attempt));
    }
  }

 private:
  /// True if datasets there can be fetched, and datasets of the caches copied there.
  bool has_prefix() const { return facts_.prefix.trouble.empty(); }

  Status check_purge() const {
    if (!purges_prefix(settings_)) return {};
    if (!has_prefix()) return fail(Code::io, "{}", facts_.prefix.trouble);
    return check_unread(UnreadMatters::purge, facts_.prefix.unread);
  }

  /// It is in the prefix directory by the time of the choice.
  void add(const DatasetInfo& info, const std::string& how) {
    DatasetRecord record;
    record.info = info;
    record.settled = true;
    std::erase_if(now_.listing, [&](const auto& old) { return old.info.uuid == info.uuid; });
    insert(now_.listing, record);
    if (info.is_checkpoint()) now_.current = info.name;
    arrives_[info.uuid] = how;
  }

  /// As far as is known, if something cannot be read.
  bool comes_too_late(const UnfinishedFlush& flush) const {
    return forbidding(UnreadMatters::give_names, facts_.prefix.unread, flush.plan.info.uuid) !=
           nullptr;
  }

  void end_flushes(const PrefixFacts& prefix) {
    for (const UnfinishedFlush& flush : prefix.unfinished)
      if (can_be_ended(flush, facts_.cached) && !comes_too_late(flush))
        add(flush.plan.info, "the next run ends its flush first");
  }

  /// The problem; without a text if the step would succeed.
  Trouble look_at(const RestartDecision& decision) {
    switch (decision.step) {
      case RestartStep::import_first:
        return import(*find_in(now_.scr.unknown, decision.dataset));
      case RestartStep::offer_copy:
        return offer_copy(cached(decision.dataset));
      case RestartStep::copy_first:
        return copy(cached(decision.dataset));
      default:
        return look_at_files(*find_in(now_.listing, decision.dataset));
    }
  }

  CachedDataset& cached(const Uuid& uuid) {
    return *std::find_if(now_.cached.begin(), now_.cached.end(),
                         [&](const auto& dataset) { return dataset.info.uuid == uuid; });
  }

  Trouble look_at_files(const DatasetRecord& record) {
    if (arrives_.contains(record.info.uuid)) return {};
    const FilesTrouble found = look_(record);
    if (found.lines.empty()) return {};
    result_.failed.push_back(record.label());
    return {found.lines.front(), found.may_pass};
  }

  Trouble import(const DatasetRecord record) {
    if (const Trouble found = look_at_files(record); !found.text.empty())
      return {fmt::format("{} cannot be imported: {}", record.label(), found.text), found.may_pass};
    const std::string current = now_.current;
    const bool is_newest =
        now_.listing.empty() || now_.listing.front().info.uuid < record.info.uuid;
    add(record.info, "it is imported from SCR's records first");
    if (!is_newest) now_.current = current;
    std::erase_if(now_.scr.unknown,
                  [&](const auto& one) { return one.info.uuid == record.info.uuid; });
    return {};
  }

  /// Nothing is rebuilt then: all parts are needed. Where one is damaged the copy fails, and the
  /// run goes on without.
  Trouble offer_copy(CachedDataset& dataset) {
    const auto found =
        std::find_if(facts_.cached.begin(), facts_.cached.end(),
                     [&](const CachedFacts& one) { return one.remains.uuid == dataset.info.uuid; });
    if (!has_prefix()) return {facts_.prefix.trouble, true};
    if (found == facts_.cached.end() || !found->state.absent.empty())
      return {"not all of its parts are here", true};
    dataset.state = CacheState::offered;
    if (found->state.is_whole()) return {};
    dataset.state = CacheState::left_alone;
    dataset.reason = "some of its parts are damaged";
    result_.failed.push_back(dataset.label());
    attempts_.push_back(
        {RestartStep::take_cached, dataset.info.uuid, Code::lost, {dataset.reason, true}});
    return {};
  }

  Trouble copy(CachedDataset& dataset) {
    if (!has_prefix()) return {facts_.prefix.trouble, true};
    add(dataset.info, "it is copied from the caches to the prefix directory first");
    dataset.there = PrefixState::settled;
    return {};
  }

  void refuse(std::string reason) {
    result_.outcome = Forecast::Outcome::refused;
    result_.reason = std::move(reason);
  }

  bool is_taken(const RestartDecision& decision) {
    if (decision.step != RestartStep::fetch && decision.step != RestartStep::read_in_place)
      return false;
    result_.outcome = Forecast::Outcome::prefix;
    result_.dataset = find_in(now_.listing, decision.dataset)->info;
    const auto arrives = arrives_.find(decision.dataset);
    if (arrives != arrives_.end()) result_.before = arrives->second;
    return true;
  }

  Forecast end_with(const RestartDecision& decision) {
    if (decision.is_refusal()) refuse(decision.why);
    if (decision.step == RestartStep::start_fresh) result_.reason = decision.why;
    if (decision.step == RestartStep::begin_anew) {
      const PassedOver found = passed_over(now_, settings_, tried_datasets(attempts_), {}, false);
      if (!found.newest.empty()) result_.reason = "there is a checkpoint, but " + found.newest;
    }
    if (decision.step == RestartStep::take_cached) {
      const CachedDataset& dataset = cached(decision.dataset);
      const bool is_copied = dataset.state == CacheState::offered;
      result_.outcome = is_copied ? Forecast::Outcome::prefix : Forecast::Outcome::cache;
      result_.dataset = dataset.info;
      if (is_copied) result_.before = "it is copied from the caches to the prefix directory first";
    }
    return std::move(result_);
  }

  const JobFacts& facts_;
  const Settings& settings_;
  const LookAtFiles& look_;
  RestartFacts now_;  ///< as the steps before have left it
  RestartAttempts attempts_;
  std::map<Uuid, std::string> arrives_;
  Forecast result_;
};

}  // namespace

bool can_be_ended(const UnfinishedFlush& flush, const std::vector<CachedFacts>& caches,
                  const std::vector<CachedFacts>& also) {
  std::set<int> there;
  for (const auto* all : {&caches, &also})
    for (const CachedFacts& cached : *all) {
      if (cached.remains.uuid != flush.plan.info.uuid) continue;
      there.merge(ranks_with_record(cached.remains));
      // Lost parts are rebuilt before.
      if (cached.dataset.usable()) return true;
    }
  return flush.is_done_but_for(there);
}

Forecast forecast(const JobFacts& facts, const Settings& settings, const LookAtFiles& look) {
  return Forecaster(facts, settings, look).run();
}

}  // namespace cairn
