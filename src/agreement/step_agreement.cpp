#include "agreement/step_agreement.hpp"

#include <algorithm>
#include <limits>

namespace cairn {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

std::int64_t progress_if(bool counts, Progress progress) {
  return static_cast<std::int64_t>(counts ? progress : Progress::passed);
}

CommonReport common_report(const StepFacts& facts) {
  CommonReport all;
  all.writers = static_cast<Progress>(facts[0]);
  all.others = static_cast<Progress>(facts[1]);
  all.loss = static_cast<Loss>(-facts[2]);
  all.changed = facts[3] != 0;
  all.crowded = facts[4] != 0;
  all.differ = facts[5] != none && facts[5] != -facts[6];
  return all;
}

}  // namespace

Look look_of(const CommonReport& report) {
  if (report.loss != Loss::none || report.differ) return Look::hopeless;
  if (report.others < Progress::quiet || report.writers < Progress::quiet) return Look::undecided;
  return report.writers == Progress::passed ? Look::passed : Look::whole;
}

/// Reports of one round are not made at one time: a rank may open its first file of a step after it
/// has reported, and another close its last one before. So what one look shows must be there in the
/// next one too, all of which is made later.
///
/// Where a rank is several steps ahead, the oldest step waits no longer.
std::optional<StepNews::What> verdict_of(const LookAt& before, const LookAt& now, bool changed) {
  using enum StepNews::What;
  if (now.look == Look::hopeless) return given_up;
  const Look both = changed ? Look::undecided : std::min(before.look, now.look);
  if (both == Look::passed || (both == Look::whole && before.is_crowded)) return certain;
  if (both == Look::whole) return provisional;
  if (before.is_crowded && now.look == Look::undecided) return given_up;
  return std::nullopt;
}

OldestSteps oldest_steps(const StepTracker& tracker) {
  return {tracker.oldest_undecided().value_or(none), tracker.oldest_late().value_or(none),
          tracker.has_ended() ? 1 : 0};
}

bool is_over(const OldestSteps& oldest) { return oldest == OldestSteps{none, none, 1}; }

StepFacts step_facts(const OldestSteps& oldest, StepTracker& tracker) {
  if (oldest[0] == none) return {};
  const StepReport mine = tracker.report(oldest[0]);
  // The smallest of all ranks counts, so what one rank has is negative.
  return {progress_if(mine.is_writer, mine.progress),
          progress_if(!mine.is_writer, mine.progress),
          -static_cast<std::int64_t>(mine.loss),
          mine.changed ? -1 : 0,
          tracker.undecided() > most_undecided ? -1 : 0,
          mine.is_writer ? std::int64_t{mine.mark} : none,
          mine.is_writer ? -std::int64_t{mine.mark} : none};
}

std::vector<StepNews> StepAgreement::conclude(const OldestSteps& oldest, const StepFacts& facts,
                                              StepTracker& tracker) {
  using enum StepNews::What;
  const std::int64_t step = oldest[0];
  const std::int64_t late = oldest[1];
  std::vector<StepNews> news;
  if (late != none) {
    tracker.forget_late(late);
    news.push_back({late, given_up});
  }
  if (step == none) return news;

  const CommonReport report = common_report(facts);
  const LookAt before = last_.step == step ? last_ : LookAt{};
  last_ = {step, look_of(report), report.crowded};
  const bool was_provisional = provisional_ == step;
  const auto verdict = verdict_of(before, last_, report.changed);
  provisional_ = verdict == provisional ? std::optional(step) : std::nullopt;
  if (was_provisional && !verdict) news.push_back({step, withdrawn});
  const bool is_overwritten = verdict == given_up && report.loss == Loss::overwritten;
  const bool is_mixed = verdict == given_up && report.loss == Loss::mixed;
  if (verdict && !(was_provisional && provisional_))
    news.push_back({step, *verdict, is_overwritten, is_mixed});
  if (verdict == certain) tracker.decided(step, Decision::certain);
  if (verdict == given_up) tracker.decided(step, Decision::given_up);
  return news;
}

Round StepAgreement::round(Communicator& comm, StepTracker& tracker, std::mutex& mutex) {
  const auto locked = [&mutex](const auto& look) {
    const std::scoped_lock lock(mutex);
    return look();
  };
  OldestSteps oldest = locked([&] { return oldest_steps(tracker); });
  comm.allreduce(oldest, Reduce::min);
  StepFacts facts = locked([&] { return step_facts(oldest, tracker); });
  if (oldest[0] != none) comm.allreduce(facts, Reduce::min);
  return {locked([&] { return conclude(oldest, facts, tracker); }), is_over(oldest)};
}

}  // namespace cairn
