#include "tools/restart_forecast.hpp"

#include <algorithm>

#include "prefix/fetch_order.hpp"
#include "prefix/scr_import.hpp"
#include "recovery/restart_choice.hpp"

namespace cairn {
namespace {

/// The steps of SCR_Init and SCR_Have_restart, without doing them.
class Forecaster {
 public:
  Forecaster(const RestartFacts& facts, const Settings& settings, const LookAtFiles& look)
      : facts_(facts),
        settings_(settings),
        look_(look),
        datasets_(settings.cache_purge ? std::vector<CachedDataset>{} : facts.cached_datasets()),
        current_(facts.prefix.current) {
    if (has_prefix() && !purges_prefix(settings)) listing_ = facts.prefix.listing;
  }

  Forecast run() {
    if (cannot_purge()) return result_;
    if (has_prefix() && !purges_prefix(settings_)) end_flushes();
    if (has_prefix() && !purges_prefix(settings_)) import_from_scr({});
    offer_what_others_wrote();
    if (is_refused()) return result_;
    if (settings_.global_restart) flush_newest();
    const Uuid newest_cached = newest();
    if (!has_prefix() || take_from_prefix(newest_cached)) return finish();
    return result_;
  }

 private:
  /// What is in there can be fetched, and what the caches have copied there.
  bool has_prefix() const { return facts_.prefix.trouble.empty(); }

  bool cannot_purge() {
    if (!purges_prefix(settings_) || facts_.prefix.trouble.empty()) return false;
    refuse(facts_.prefix.trouble);
    return true;
  }

  Uuid newest() const {
    const CachedDataset* choice = restart_choice(datasets_, settings_.global_restart);
    return choice == nullptr ? Uuid{} : choice->info.uuid;
  }

  /// It is in the prefix directory by the time of the choice.
  void add(const DatasetInfo& info, const std::string& how) {
    DatasetRecord record;
    record.info = info;
    record.settled = true;
    std::erase_if(listing_, [&](const auto& old) { return old.info.uuid == info.uuid; });
    const auto older = std::find_if(listing_.begin(), listing_.end(),
                                    [&](const auto& other) { return other.info.uuid < info.uuid; });
    listing_.insert(older, record);
    if (info.is_checkpoint()) current_ = info.name;
    arrives_[info.uuid] = how;
  }

  /// As far as is known, where something cannot be read.
  bool comes_too_late(const UnfinishedFlush& flush) const {
    return !refuse_names(facts_.prefix.unread, flush.plan.info.uuid);
  }

  void end_flushes() {
    for (const UnfinishedFlush& flush : facts_.prefix.unfinished)
      if (can_be_ended(flush, facts_.cached) && !comes_too_late(flush))
        add(flush.plan.info, "the next run ends its flush first");
  }

  /// As ScrImports::import_next().
  void import_from_scr(const std::set<Uuid>& tried) {
    while (!has_failed_of_scr_ || settings_.on_fetch_fail == OnFetchFail::older) {
      std::set<Uuid> passed_over = tried;
      passed_over.insert(failed_of_scr_.begin(), failed_of_scr_.end());
      const auto next = next_of_scr(facts_.prefix.scr, listing_, facts_.prefix.dropped, current_,
                                    settings_, passed_over);
      if (!next) return;
      const DatasetRecord record = record_of_scr(facts_.prefix.scr.datasets[*next]);
      if (!look_(record).empty()) {
        has_failed_of_scr_ = true;
        failed_of_scr_.insert(record.info.uuid);
        result_.failed.push_back(record.label());
        continue;
      }
      const std::string current = current_;
      const bool is_newest = listing_.empty() || listing_.front().info.uuid < record.info.uuid;
      add(record.info, "it is imported from SCR's records first");
      if (!is_newest) current_ = current;
    }
  }

  const CachedFacts* facts_of(const Uuid& uuid) const {
    const auto found = std::find_if(facts_.cached.begin(), facts_.cached.end(),
                                    [&](const auto& one) { return one.remains.uuid == uuid; });
    return found == facts_.cached.end() ? nullptr : &*found;
  }

  bool is_elastic() const { return settings_.elastic && settings_.fetch; }

  /// Nothing is rebuilt then: all parts are needed, and where one is damaged the copy fails.
  void offer_what_others_wrote() {
    while (const CachedDataset* newest =
               is_elastic() && has_prefix() ? only_others_have(datasets_) : nullptr) {
      CachedDataset& dataset = datasets_[static_cast<std::size_t>(newest - datasets_.data())];
      const CachedFacts* found = facts_of(dataset.info.uuid);
      if (found == nullptr || !found->state.absent.empty()) return;
      if (found->state.is_whole()) {
        dataset.state = CachedDataset::State::offered;
        return;
      }
      dataset.state = CachedDataset::State::unusable;
      result_.failed.push_back(dataset.label());
      not_copied_ = wrong_ranks(dataset, facts_.ranks).text;
    }
  }

  bool is_refused() {
    if (settings_.on_mismatch == OnMismatch::fresh) return false;
    const CachedDataset* other = mismatched(datasets_);
    const bool elsewhere = is_elastic() && only_others_have(datasets_) == nullptr;
    if (other == nullptr || elsewhere) return false;
    refuse(wrong_ranks(*other, facts_.ranks).text);
    return true;
  }

  void refuse(std::string reason) {
    result_.outcome = Forecast::Outcome::refused;
    result_.reason = std::move(reason);
  }

  /// SCR_GLOBAL_RESTART.
  void flush_newest() {
    const CachedDataset* newest = restart_choice(datasets_, false);
    if (newest != nullptr && !newest->flushed && has_prefix())
      add(newest->info, "it is copied from the caches to the prefix directory first");
  }

  void refuse_for(const UnreadDataset& unread) { refuse(text_of_refusal(unread.why, settings_)); }

  /// False if that has ended it.
  bool take_from_prefix(const Uuid& newest_cached) {
    std::set<Uuid> tried;
    const UnreadDataset* unread = unread_before(facts_.prefix.unread, listing_,
                                                next_to_fetch(listing_, settings_, current_, tried),
                                                newest_cached, settings_, current_);
    if (unread != nullptr && settings_.on_fetch_fail == OnFetchFail::stop) {
      refuse_for(*unread);
      return false;
    }
    if (unread != nullptr && settings_.on_fetch_fail == OnFetchFail::fresh) return true;
    if (has_failed_of_scr_ && settings_.on_fetch_fail != OnFetchFail::older) {
      if (settings_.on_fetch_fail == OnFetchFail::fresh) return true;
      refuse(fmt::format("{} cannot be imported, and CAIRN_ON_FETCH_FAIL=stop",
                         result_.failed.front()));
      return false;
    }
    while (true) {
      if (settings_.fetch && !purges_prefix(settings_)) import_from_scr(tried);
      const DatasetRecord* next = next_to_fetch(listing_, settings_, current_, tried);
      const FetchStep step = step_for(next, newest_cached, facts_.ranks, settings_);
      if (step == FetchStep::none) return true;
      tried.insert(next->info.uuid);
      if (step == FetchStep::refuse) {
        refuse(wrong_ranks(*next, facts_.ranks, settings_).text);
        return false;
      }
      if (step == FetchStep::pass_over) continue;
      if (takes(*next)) return false;
      if (settings_.on_fetch_fail == OnFetchFail::stop) {
        refuse(fmt::format("{} cannot be read in {}, and CAIRN_ON_FETCH_FAIL=stop", next->label(),
                           settings_.prefix));
        return false;
      }
      if (settings_.on_fetch_fail == OnFetchFail::fresh) return true;
    }
  }

  bool takes(const DatasetRecord& record) {
    const auto arrives = arrives_.find(record.info.uuid);
    if (arrives == arrives_.end() && !look_(record).empty()) {
      result_.failed.push_back(record.label());
      return false;
    }
    result_.outcome = Forecast::Outcome::prefix;
    result_.dataset = record.info;
    if (arrives != arrives_.end()) result_.before = arrives->second;
    return true;
  }

  Forecast finish() {
    const CachedDataset* choice = restart_choice(datasets_, settings_.global_restart);
    if (choice == nullptr) {
      const UnreadDataset* unread =
          unread_before(facts_.prefix.unread, listing_, nullptr, {}, settings_, current_);
      if (settings_.fetch && settings_.on_fetch_fail != OnFetchFail::fresh) {
        if (unread != nullptr) refuse_for(*unread);
        if (!has_prefix()) refuse(text_of_refusal(facts_.prefix.trouble, settings_));
      }
      if (!not_copied_.empty() && settings_.on_mismatch != OnMismatch::fresh) refuse(not_copied_);
      return result_;
    }
    const bool copied = choice->state == CachedDataset::State::offered;
    result_.outcome = copied ? Forecast::Outcome::prefix : Forecast::Outcome::cache;
    result_.dataset = choice->info;
    if (copied) result_.before = "it is copied from the caches to the prefix directory first";
    return result_;
  }

  const RestartFacts& facts_;
  const Settings& settings_;
  const LookAtFiles& look_;
  std::vector<CachedDataset> datasets_;
  Listing listing_;
  std::string current_;
  std::map<Uuid, std::string> arrives_;
  bool has_failed_of_scr_ = false;
  std::set<Uuid> failed_of_scr_;
  std::string not_copied_;  ///< what is told where nothing else is left
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
      // What is lost is rebuilt before.
      if (cached.dataset.usable()) return true;
    }
  return flush.is_done_but_for(there);
}

Forecast forecast(const RestartFacts& facts, const Settings& settings, const LookAtFiles& look) {
  return Forecaster(facts, settings, look).run();
}

}  // namespace cairn
