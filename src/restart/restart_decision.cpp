#include "restart/restart_decision.hpp"

#include <algorithm>
#include <array>

#include "prefix/fetch_order.hpp"
#include "prefix/scr_import.hpp"
#include "records/wire.hpp"
#include "restart/restart_choice.hpp"

namespace cairn {
namespace {

bool is_of_prefix(RestartStep step) {
  return step == RestartStep::fetch || step == RestartStep::read_in_place;
}

/// A fetch that found no room in the caches: the dataset can still be read in place.
bool has_another_way(const RestartAttempt& attempt) {
  return attempt.step == RestartStep::fetch && attempt.code == Code::no_space;
}

RestartDecision refuse(const Error& why) { return {RestartStep::refuse, {}, why.code, why.text}; }

class Decider {
 public:
  Decider(const RestartFacts& facts, const Settings& settings, const RestartAttempts& attempts)
      : facts_(facts),
        settings_(settings),
        attempts_(attempts),
        prefix_(
            choice_with_scr(facts.scr.unknown, facts.scr.current, facts.listing, facts.current)),
        cached_(restart_choice(facts.cached, settings.global_restart, facts.asked_for)),
        newest_cached_(cached_ != nullptr ? cached_->info.uuid : Uuid{}),
        left_out_(find_left_out()),
        next_(choose_next(step_of_next_)),
        unread_(find_unread()) {}

  RestartDecision run() const {
    if (facts_.is_over) return {};
    if (const CachedDataset* others = to_be_offered())
      return {RestartStep::offer_copy, others->info.uuid, {}, {}};
    if (left_out_ != nullptr && settings_.on_fetch_fail == OnFetchFail::stop)
      return refuse({failed_opening()->code, left_out_->reason});
    if (const CachedDataset* others = refused_for_its_ranks(facts_.cached, settings_))
      return refuse_others(*others);
    if (cached_ != nullptr && (was_taken(newest_cached_) || facts_.asked_for == newest_cached_))
      return {RestartStep::take_cached, newest_cached_, {}, {}};
    if (step_of_next_ == FetchStep::refuse && last_failure() == nullptr)
      return refuse(wrong_ranks(*next_, facts_.ranks, settings_));
    if (const CachedDataset* newest = to_be_copied_first())
      return {RestartStep::copy_first, newest->info.uuid, {}, {}};
    if (const auto decision = step_in_prefix()) return *decision;
    if (cached_ != nullptr) return {RestartStep::take_cached, newest_cached_, {}, {}};
    return without_any();
  }

  std::string why_current_is_ignored() const {
    if (settings_.current.empty() || !tried_datasets(attempts_).empty()) return {};
    if (facts_.is_over || !facts_.trouble.empty()) return {};
    const std::string useless = text_of_useless_current(prefix_.listing, facts_.unread, settings_);
    if (!useless.empty()) return useless;
    const DatasetRecord* named = find_named(prefix_.listing, settings_.current);
    if (named == nullptr || named->info.uuid >= newest_cached_) return {};
    return fmt::format(
        "SCR_CURRENT={} is ignored: the caches have a newer checkpoint. To use the named one "
        "nevertheless, delete the caches by setting SCR_CACHE_PURGE=1 for one run",
        settings_.current);
  }

 private:
  // --- the caches ---

  bool has_failed(RestartStep step, const Uuid& dataset) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [&](const RestartAttempt& attempt) {
      return attempt.step == step && attempt.dataset == dataset && attempt.has_failed();
    });
  }

  /// This run has brought it from the prefix directory.
  bool was_taken(const Uuid& dataset) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [&](const RestartAttempt& attempt) {
      return is_of_prefix(attempt.step) && attempt.dataset == dataset && !attempt.has_failed();
    });
  }

  /// Nothing would be rebuilt, for which all its ranks are needed.
  const CachedDataset* to_be_offered() const {
    const CachedDataset* others = is_elastic(settings_) ? only_others_have(facts_.cached) : nullptr;
    if (others == nullptr || has_failed(RestartStep::offer_copy, others->info.uuid)) return nullptr;
    return others;
  }

  /// SCR_GLOBAL_RESTART: what only the caches have could not be restarted from.
  const CachedDataset* to_be_copied_first() const {
    const CachedDataset* newest =
        settings_.global_restart ? restart_choice(facts_.cached, false) : nullptr;
    if (newest == nullptr || newest->flushed()) return nullptr;
    return has_failed(RestartStep::copy_first, newest->info.uuid) ? nullptr : newest;
  }

  /// Of the one that the program was offered last; null if it could be opened.
  const RestartAttempt* failed_opening() const {
    const auto found = std::find_if(
        attempts_.rbegin(), attempts_.rend(),
        [](const RestartAttempt& attempt) { return attempt.step == RestartStep::take_cached; });
    return found == attempts_.rend() ? nullptr : &*found;
  }

  /// What could not be opened then, if it is still there.
  const CachedDataset* find_left_out() const {
    const RestartAttempt* opening = failed_opening();
    if (opening == nullptr) return nullptr;
    const auto found = std::find_if(
        facts_.cached.begin(), facts_.cached.end(),
        [&](const CachedDataset& dataset) { return dataset.info.uuid == opening->dataset; });
    return found == facts_.cached.end() ? nullptr : &*found;
  }

  bool is_written_by_others(const DatasetInfo& dataset) const {
    return dataset.ranks != facts_.ranks;
  }

  // --- the prefix directory ---

  /// What is newer than the one that the program asked for would be fetched, and not offered.
  bool is_too_new(const DatasetRecord* next) const {
    return next != nullptr && facts_.asked_for && *facts_.asked_for < next->info.uuid;
  }

  /// With CAIRN_ON_MISMATCH=fresh those of other ranks are passed over.
  const DatasetRecord* choose_next(FetchStep& step) const {
    std::set<Uuid> tried = tried_datasets(attempts_);
    while (true) {
      const DatasetRecord* next = next_to_fetch(prefix_.listing, settings_, prefix_.current, tried);
      // How many ranks wrote it is known when it is imported.
      const bool is_of_scr =
          next != nullptr && find_in(facts_.scr.unknown, next->info.uuid) != nullptr;
      const std::uint32_t ranks = is_of_scr ? next->info.ranks : facts_.ranks;
      step = is_too_new(next) ? FetchStep::pass_over
                              : step_for(next, newest_cached_, ranks, settings_);
      if (step != FetchStep::pass_over) return next;
      tried.insert(next->info.uuid);
    }
  }

  const UnreadDataset* find_unread() const {
    if (!settings_.fetch) return nullptr;
    return unread_before(facts_.unread, prefix_.listing, next_, newest_cached_, settings_,
                         prefix_.current);
  }

  /// Of those that were to come from the prefix directory; null if none has failed.
  const RestartAttempt* last_failure() const {
    const auto found =
        std::find_if(attempts_.rbegin(), attempts_.rend(), [](const RestartAttempt& attempt) {
          return is_of_prefix(attempt.step) && attempt.has_failed() && !has_another_way(attempt);
        });
    return found == attempts_.rend() ? nullptr : &*found;
  }

  /// What stood in the way before anything was looked for in the prefix directory.
  Trouble trouble_before() const {
    const auto copy =
        std::find_if(attempts_.begin(), attempts_.end(), [](const RestartAttempt& attempt) {
          return attempt.step == RestartStep::copy_first && attempt.has_failed();
        });
    if (copy != attempts_.end()) return copy->trouble;
    // One that these ranks have written is read in the prefix directory, if it is there too.
    if (left_out_ != nullptr && is_written_by_others(left_out_->info))
      return {left_out_->reason, false};
    if (settings_.fetch && !facts_.trouble.empty()) return {facts_.trouble, true};
    return {};
  }

  /// What SCR left and a restart would take before all else, if it could not be imported.
  Trouble trouble_of_scr() const {
    if (!settings_.fetch) return {};
    for (const RestartAttempt& attempt : attempts_)
      if (attempt.step == RestartStep::import_first && attempt.has_failed() &&
          attempt.dataset > newest_cached_ &&
          find_in(facts_.scr.unknown, attempt.dataset) != nullptr)
        return attempt.trouble;
    const bool knows_any =
        std::any_of(facts_.listing.begin(), facts_.listing.end(),
                    [](const DatasetRecord& record) { return record.info.is_checkpoint(); });
    return cached_ == nullptr && !knows_any ? facts_.scr.trouble : Trouble{};
  }

  /// All that keeps this run from knowing, or having, the checkpoint that comes next.
  Trouble trouble() const {
    Trouble found = trouble_before();
    if (found.text.empty() && unread_ != nullptr) found = {unread_->why, true};
    if (found.text.empty()) found = trouble_of_scr();
    for (const RestartAttempt& attempt : attempts_)
      if (is_of_prefix(attempt.step) && attempt.has_failed() && !has_another_way(attempt))
        found = {attempt.trouble.text, found.may_pass || attempt.trouble.may_pass};
    return found;
  }

  std::optional<RestartDecision> step_in_prefix() const {
    if (settings_.on_fetch_fail == OnFetchFail::stop)
      if (const auto refusal = refuse_to_go_on()) return refusal;
    if (const auto in_place = way_that_is_left()) return in_place;
    if (!trouble().text.empty() && settings_.on_fetch_fail != OnFetchFail::older) return {};
    switch (step_of_next_) {
      case FetchStep::none:
      case FetchStep::pass_over:
        return {};
      case FetchStep::refuse:
        return refuse(wrong_ranks(*next_, facts_.ranks, settings_));
      case FetchStep::take:
        break;
    }
    const Uuid& uuid = next_->info.uuid;
    if (find_in(facts_.scr.unknown, uuid) != nullptr)
      return RestartDecision{RestartStep::import_first, uuid, {}, {}};
    return RestartDecision{
        is_read_in_place(*next_) ? RestartStep::read_in_place : RestartStep::fetch, uuid, {}, {}};
  }

  /// CAIRN_ON_FETCH_FAIL=stop: nothing older will do.
  std::optional<RestartDecision> refuse_to_go_on() const {
    if (const RestartAttempt* failed = last_failure()) {
      if (failed->trouble.may_pass) return refuse_for_now(failed->trouble.text);
      const DatasetRecord* record = find_in(prefix_.listing, failed->dataset);
      const Code code = failed->code == Code::not_found ? Code::lost : failed->code;
      return refuse({code, record == nullptr
                               ? failed->trouble.text
                               : text_of_stop(*record, failed->trouble.text, settings_)});
    }
    if (unread_ != nullptr) return refuse_for_now(unread_->why);
    const Trouble scr = trouble_of_scr();
    if (scr.text.empty()) return {};
    if (scr.may_pass) return refuse_for_now(scr.text);
    return refuse(
        {Code::lost, fmt::format("{}. The run does not start, because CAIRN_ON_FETCH_FAIL=stop. "
                                 "Correct the cause, or set CAIRN_ON_FETCH_FAIL=older to restart "
                                 "from an older checkpoint, or from scratch",
                                 scr.text)});
  }

  std::optional<RestartDecision> way_that_is_left() const {
    if (attempts_.empty() || !has_another_way(attempts_.back())) return {};
    return RestartDecision{RestartStep::read_in_place, attempts_.back().dataset, {}, {}};
  }

  /// Rather than copied to the caches.
  bool is_read_in_place(const DatasetRecord& candidate) const {
    const Uuid& uuid = candidate.info.uuid;
    const auto lies_in_the_way = [&](const CachedDataset& dataset) {
      return dataset.info.uuid == uuid && (is_left_alone(dataset.state) || &dataset == left_out_);
    };
    return candidate.info.in_place() || settings_.fetch_bypass ||
           is_written_by_others(candidate.info) ||
           std::find(facts_.bypassing.begin(), facts_.bypassing.end(), uuid) !=
               facts_.bypassing.end() ||
           std::any_of(facts_.cached.begin(), facts_.cached.end(), lies_in_the_way);
  }

  // --- the end ---

  /// What could not be copied now may be copied the next time.
  RestartDecision refuse_others(const CachedDataset& others) const {
    RestartDecision refusal = refuse(wrong_ranks(others, facts_.ranks));
    if (has_failed(RestartStep::offer_copy, others.info.uuid))
      refusal.step = RestartStep::refuse_for_now;
    return refusal;
  }

  RestartDecision refuse_for_now(const std::string& why) const {
    return {RestartStep::refuse_for_now, {}, Code::io, text_of_refusal(why, settings_)};
  }

  RestartDecision without_any() const {
    Trouble found = trouble();
    if (found.text.empty() && left_out_ != nullptr) found = {left_out_->reason, true};
    if (found.text.empty()) return {};
    if (stands_in_the_way(left_out_)) return refuse(wrong_ranks(*left_out_, facts_.ranks));
    if (unread_ != nullptr) found = {unread_->why, true};
    if (found.may_pass && settings_.on_fetch_fail != OnFetchFail::fresh)
      return refuse_for_now(found.text);
    return {RestartStep::start_fresh, {}, {}, why_nothing_was_taken(found.text)};
  }

  /// To begin from scratch would be to remove, later, what could not be copied.
  bool stands_in_the_way(const CachedDataset* left_out) const {
    return left_out != nullptr && is_written_by_others(left_out->info) &&
           settings_.on_mismatch != OnMismatch::fresh &&
           settings_.on_fetch_fail == OnFetchFail::older;
  }

  std::string why_nothing_was_taken(const std::string& trouble) const {
    if (left_out_ != nullptr)
      return fmt::format("the caches have {}, but it cannot be used: {}", left_out_->label(),
                         trouble);
    const auto tried =
        std::count_if(attempts_.begin(), attempts_.end(), [](const RestartAttempt& attempt) {
          return is_of_prefix(attempt.step) && !has_another_way(attempt);
        });
    if (tried == 0 && trouble == trouble_of_scr().text)
      return fmt::format("SCR left checkpoints in {}, but none can be imported: {}",
                         settings_.prefix, trouble);
    if (tried == 0)
      return fmt::format("it is unknown whether {} has a checkpoint: {}", settings_.prefix,
                         trouble);
    return fmt::format("{} {} tried in {}, and the last one could not be used: {}{}", tried,
                       tried == 1 ? "checkpoint was" : "checkpoints were", settings_.prefix,
                       trouble,
                       settings_.on_fetch_fail == OnFetchFail::fresh
                           ? "; no older one is tried, because CAIRN_ON_FETCH_FAIL=fresh"
                           : "");
  }

  const RestartFacts& facts_;
  const Settings& settings_;
  const RestartAttempts& attempts_;
  const ChoiceWithScr prefix_;         ///< what would be there if all of SCR's were imported
  const CachedDataset* const cached_;  ///< what the caches offer; null if nothing
  const Uuid newest_cached_;           ///< of that; zeros if null
  const CachedDataset* const left_out_;
  FetchStep step_of_next_ = FetchStep::none;
  const DatasetRecord* const next_;  ///< to try in the prefix directory; null if none is left
  const UnreadDataset* const unread_;
};

}  // namespace

std::string_view name_of(RestartStep step) {
  constexpr std::array<std::string_view, 10> names = {
      "begin_anew", "take_cached", "start_fresh",  "refuse", "refuse_for_now",
      "offer_copy", "copy_first",  "import_first", "fetch",  "read_in_place"};
  return names.at(static_cast<std::size_t>(step));
}

RestartDecision decide_restart(const RestartFacts& facts, const Settings& settings,
                               const RestartAttempts& attempts) {
  return Decider(facts, settings, attempts).run();
}

void share(Communicator& comm, RestartDecision& decision) {
  Encoder out;
  out.u32(static_cast<std::uint32_t>(decision.step));
  put(out, decision.dataset);
  out.u32(static_cast<std::uint32_t>(decision.code));
  out.text(decision.why);
  Blob blob = out.take();
  bcast_blob(comm, blob, 0);
  Decoder in(blob);
  decision.step = static_cast<RestartStep>(in.u32());
  decision.dataset = get_uuid(in);
  decision.code = static_cast<Code>(in.u32());
  decision.why = in.text();
}

std::set<Uuid> tried_datasets(const RestartAttempts& attempts) {
  std::set<Uuid> tried;
  for (const RestartAttempt& attempt : attempts) {
    const bool is_lost = attempt.step == RestartStep::import_first && attempt.has_failed();
    if (is_of_prefix(attempt.step) || is_lost) tried.insert(attempt.dataset);
  }
  return tried;
}

void forget_retryable(RestartAttempts& attempts) {
  std::erase_if(attempts, [](const RestartAttempt& attempt) {
    const bool is_for_good = attempt.step == RestartStep::import_first && !attempt.trouble.may_pass;
    return attempt.step != RestartStep::take_cached && !(attempt.has_failed() && is_for_good);
  });
}

std::string why_current_is_ignored(const RestartFacts& facts, const Settings& settings,
                                   const RestartAttempts& attempts) {
  return Decider(facts, settings, attempts).why_current_is_ignored();
}

}  // namespace cairn
