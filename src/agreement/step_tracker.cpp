#include "agreement/step_tracker.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

StepTracker::Work& StepTracker::work_at(Step step) {
  const bool late = is_decided(step.number);
  if (late) late_news_.insert(step.number);
  Work& work = (late ? late_ : steps_)[step.number];
  work.mark = step.mark;
  work.changed = true;
  newest_ = std::max(newest_, step.number);
  return work;
}

/// A file that was late in one step will be in the next ones too: so from now on the rank counts as
/// quiet only after it has closed such a file.
StepTracker::Work& StepTracker::add_file(Step step, const std::string& shape) {
  if (is_decided(step.number)) usual_.insert(shape);
  Work& work = work_at(step);
  work.shapes.insert(shape);
  return work;
}

void StepTracker::opened(Step step, const std::string& shape) {
  add_file(step, shape).open.insert(shape);
}

void StepTracker::left_out(Step step, const std::string& shape) {
  Loss& loss = add_file(step, shape).loss;
  loss = std::max(loss, Loss::left_out);
}

void StepTracker::lost(std::int64_t number, Loss loss) {
  const auto known = steps_.find(number);
  const std::uint32_t mark = known == steps_.end() ? 0 : known->second.mark;
  Work& work = work_at({number, mark});
  work.loss = std::max(work.loss, loss);
}

void StepTracker::closed(Step step, const std::string& shape) {
  const bool late = late_.contains(step.number);
  auto& steps = late ? late_ : steps_;
  const auto found = steps.find(step.number);
  if (found == steps.end()) return;
  auto& open = found->second.open;
  if (const auto one = open.find(shape); one != open.end()) open.erase(one);
  if (late && open.empty()) late_.erase(found);
}

std::optional<std::int64_t> StepTracker::oldest_undecided() const {
  if (steps_.empty()) return std::nullopt;
  return steps_.begin()->first;
}

std::optional<std::int64_t> StepTracker::oldest_late() const {
  if (late_news_.empty()) return std::nullopt;
  return *late_news_.begin();
}

Progress StepTracker::progress(std::int64_t number, const Work* work) const {
  if (work != nullptr && !work->open.empty()) return Progress::open;
  if (has_ended_ || newest_ > number) return Progress::passed;
  const bool is_usual = work != nullptr ? work->shapes == usual_ : usual_.empty();
  return is_usual ? Progress::quiet : Progress::working;
}

StepReport StepTracker::report(std::int64_t number) {
  const auto found = steps_.find(number);
  if (found == steps_.end()) return {progress(number, nullptr)};
  Work& work = found->second;
  return {progress(number, &work), true, work.loss, std::exchange(work.changed, false), work.mark};
}

/// A step may be given up while this rank still writes to it: those of its files that come later
/// are late, and add_file() learns their shapes. A rank writes the next step only after them.
void StepTracker::decided(std::int64_t number, Decision decision) {
  last_decided_ = number;
  const auto it = steps_.find(number);
  if (it != steps_.end() && !it->second.shapes.empty()) usual_ = it->second.shapes;
  while (!steps_.empty() && steps_.begin()->first <= number) {
    auto node = steps_.extract(steps_.begin());
    const Work& work = node.mapped();
    const bool is_it = node.key() == number;
    if (!is_it) usual_.insert(work.shapes.begin(), work.shapes.end());
    // The ranks did not know of a file that was opened after the last report.
    if (!is_it || (decision == Decision::certain && work.changed)) late_news_.insert(node.key());
    if (!work.open.empty()) late_.insert(std::move(node));
  }
}

}  // namespace cairn
