#include "wrapped_plan.hpp"

#include <algorithm>
#include <utility>

namespace cairn::sim {
namespace {

constexpr int files_most = 3;
constexpr int steps_most = 6;
constexpr int longest_wait = 19;  ///< power of two, in microseconds
constexpr std::int64_t slow_wait_us = 2'000'000;

/// One rank's steps.
class RankPlanner {
 public:
  RankPlanner(const ProgramShape& shape, int rank, Chance& chance)
      : shape_(shape), files_(shape.files[static_cast<std::size_t>(rank)]), chance_(chance) {
    usual_wait_ = chance_.between(4, 16);
    if (chance_.one_in(5)) usual_wait_ = longest_wait;  // a laggard
  }

  void add_step(int index) {
    waits_long_ = shape_.is_slow;
    for (int file = 0; file < files_; ++file) {
      if (!shape_.kind.has_same_shapes && chance_.one_in(3)) continue;
      add(first_kind(), index, file);
      while (!shape_.kind.opens_once && chance_.one_in(3)) add(later_kind(), index, file);
    }
    if (shape_.removes && index > 2 && files_ > 0)
      add(Action::Kind::remove, index - 2, chance_.between(0, files_ - 1));
    // Where names repeat, an older name is that of a new step.
    if (shape_.kind.pace == Pace::alone && has_numbers(shape_.naming) && chance_.one_in(6))
      add_late(index);
  }
  /// On to the step from which the run started.
  void add_to_restored(int index, const std::set<int>& there) {
    for (const int file : there)
      if (chance_.one_in(2)) add(later_kind(), index, file);
  }
  void leave_one_open(int index) {
    if (files_ > 0) add(Action::Kind::leave_open, index, files_);
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  Action::Kind first_kind() {
    if (shape_.is_refused && chance_.one_in(12)) return Action::Kind::refused;
    return shape_.renames ? Action::Kind::rename : Action::Kind::write;
  }
  Action::Kind later_kind() {
    return chance_.one_in(2) ? Action::Kind::append : Action::Kind::touch;
  }
  /// A file of an earlier step that this rank has written in this run.
  void add_late(int index) {
    for (const Action& before : actions_)
      if (before.index < index && is_of_step(before) && chance_.one_in(2) &&
          std::none_of(actions_.begin(), actions_.end(), [&](const Action& other) {
            return !is_of_step(other) && other.index == before.index && other.file == before.file;
          }))
        return add(later_kind(), before.index, before.file);
  }
  void add(Action::Kind kind, int index, int file) {
    Action action{kind, index, file};
    if (chance_.one_in(2)) action.waits_us = draw_us();
    if (chance_.one_in(2)) action.open_us = draw_us();
    if (std::exchange(waits_long_, false)) action.waits_us = slow_wait_us;
    actions_.push_back(action);
  }
  std::int64_t draw_us() {
    return static_cast<std::int64_t>(chance_.below(std::uint64_t{1} << usual_wait_));
  }

  const ProgramShape& shape_;
  const int files_;
  Chance& chance_;
  int usual_wait_ = 0;
  bool waits_long_ = false;
  std::vector<Action> actions_;
};

}  // namespace

ProgramShape draw_program(int ranks, Chance& chance, Chance speed) {
  ProgramShape shape;
  const bool is_numbered = !chance.one_in(3);
  shape.naming = is_numbered ? (chance.one_in(3) ? Naming::directories : Naming::numbers)
                             : (chance.one_in(2) ? Naming::one_name : Naming::two_names);
  shape.kind.pace = static_cast<Pace>(chance.below(3));
  shape.kind.has_same_shapes = !is_numbered || chance.one_in(2);
  shape.kind.opens_once = chance.one_in(2);
  for (int rank = 0; rank < ranks; ++rank)
    shape.files.push_back(chance.one_in(5) ? 0 : chance.between(1, files_most));
  if (*std::max_element(shape.files.begin(), shape.files.end()) == 0) shape.files[0] = 1;
  shape.renames = chance.one_in(3);
  shape.removes = is_numbered && chance.one_in(4);
  shape.is_refused = is_numbered && chance.one_in(4);
  shape.is_slow = !is_numbered && speed.one_in(2);
  return shape;
}

ProgramPlan draw_steps(const ProgramShape& shape, int restored,
                       const std::vector<std::set<int>>& there, bool is_calm, Chance& chance) {
  ProgramPlan plan;
  plan.naming = shape.naming;
  plan.waits_for_each = shape.kind.pace == Pace::in_step;
  plan.waits_for_first = shape.kind.pace == Pace::first_in_step;
  plan.ends_together = shape.kind.pace == Pace::in_step || !chance.one_in(4);
  const bool is_from_start = !has_numbers(shape.naming) || chance.one_in(10);
  const int first = is_from_start ? 1 : restored + 1;
  const int last = first - 1 + chance.between(is_calm ? 2 : 1, steps_most);
  const bool writes_on = has_numbers(shape.naming) && !is_from_start && restored > 0 &&
                         plan.waits_for_each && !shape.kind.is_provisional_whole() &&
                         chance.one_in(4);
  const bool leaves_one_open = !is_calm && has_numbers(shape.naming) &&
                               !shape.kind.is_provisional_whole() && chance.one_in(4);
  const auto ranks = static_cast<int>(shape.files.size());
  for (int rank = 0; rank < ranks; ++rank) {
    RankPlanner planner(shape, rank, chance);
    if (writes_on) planner.add_to_restored(restored, there[static_cast<std::size_t>(rank)]);
    for (int index = first; index <= last; ++index) planner.add_step(index);
    if (leaves_one_open && chance.one_in(2)) planner.leave_one_open(last);
    plan.actions.push_back(planner.take());
  }
  return plan;
}

std::vector<std::map<int, int>> count_actions(const ProgramPlan& plan) {
  std::vector<std::map<int, int>> counts;
  for (const std::vector<Action>& actions : plan.actions) {
    auto& of_rank = counts.emplace_back();
    for (const Action& action : actions) of_rank[action.index] += is_of_step(action) ? 1 : 0;
  }
  return counts;
}

}  // namespace cairn::sim
