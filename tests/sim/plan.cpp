#include "plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace cairn::sim {

PlannedRun Planner::stormy() {
  PlannedRun planned;
  planned.run = draw_run(chance_.between(0, 3));
  planned.run.restart = !chance_.one_in(10);
  planned.run.reject_restart = chance_.one_in(25);
  planned.run.finalize = !chance_.one_in(4);
  if (rare_.one_in(8)) planned.run.before_restart = draw_what_is_no_checkpoint();
  for (DatasetPlan& dataset : planned.run.datasets) dataset = draw_dataset();
  if (!chance_.one_in(3)) draw_crash(planned.run);
  if (chance_.one_in(4)) draw_faults(planned.run);
  draw_weather(planned);
  draw_named_calls(planned.run);
  planned.run.purge = rare_.one_in(40);
  draw_behind(planned.run);
  draw_change(planned.run);
  return planned;
}

std::optional<PlannedRun> Planner::visit() {
  if (first_ || !rare_.one_in(6)) return std::nullopt;
  static const std::vector<Visit> kinds = {Visit::other_ranks, Visit::other_ranks_fresh,
                                           Visit::left_alone};
  PlannedRun planned;
  RunPlan& run = planned.run;
  run.visit = rare_.pick(kinds);
  run.nodes = run.visit == Visit::left_alone ? placement_ : draw_others();
  if (rare_.one_in(4)) run.crash = Crash::job;
  run.crash_at = {init_phase, rare_.of_any_size_below(200 * run.nodes.size())};
  return planned;
}

/// Too many ranks, or too few.
Nodes Planner::draw_others() {
  Nodes others = placement_;
  const bool fewer = others.size() > 1 && rare_.one_in(2);
  if (fewer) others.resize(1 + rare_.below(others.size() - 1));
  for (int more = fewer ? 0 : rare_.between(1, 3); more > 0; --more)
    others.push_back(rare_.pick(shape_.nodes));
  return others;
}

PlannedRun Planner::calm(int datasets) {
  PlannedRun planned;
  planned.run = draw_run(datasets);
  planned.calm = true;
  for (DatasetPlan& dataset : planned.run.datasets) dataset.key = ++last_key_;
  draw_named_calls(planned.run);
  return planned;
}

RunPlan Planner::draw_run(int datasets) {
  RunPlan run;
  if (!first_) placement_ = draw_placement(shape_, placement_, chance_);
  first_ = false;
  run.nodes = placement_;
  run.datasets.resize(static_cast<std::size_t>(datasets));
  return run;
}

DatasetPlan Planner::draw_dataset() {
  DatasetPlan dataset;
  dataset.key = ++last_key_;
  if (chance_.one_in(10)) dataset.flags = flag_checkpoint | flag_output;
  if (chance_.one_in(12)) dataset.flags = flag_output;
  if (chance_.one_in(12)) dataset.invalid_rank = chance_.between(0, shape_.ranks() - 1);
  if (rare_.one_in(15)) dataset.flags = 0;
  return dataset;
}

DatasetPlan Planner::draw_what_is_no_checkpoint() {
  DatasetPlan dataset;
  dataset.key = ++last_key_;
  dataset.flags = rare_.one_in(2) ? flag_output : 0;
  return dataset;
}

Moment Planner::draw_moment(const RunPlan& run) {
  constexpr std::uint64_t calls_per_rank = 400;
  const int last_phase = restart_phase + static_cast<int>(run.datasets.size());
  const int phase = chance_.one_in(3) ? init_phase : chance_.between(init_phase, last_phase);
  return {phase,
          chance_.of_any_size_below(calls_per_rank * static_cast<std::uint64_t>(shape_.ranks()))};
}

void Planner::draw_crash(RunPlan& run) {
  static const std::vector<Crash> kinds = {Crash::process, Crash::job,     Crash::node,
                                           Crash::power,   Crash::storage, Crash::storage};
  run.crash = chance_.pick(kinds);
  run.crash_at = draw_moment(run);
}

void Planner::draw_faults(RunPlan& run) {
  constexpr std::uint64_t operations_per_rank = 150;
  FaultPlan& faults = run.faults;
  faults.from =
      chance_.of_any_size_below(operations_per_rank * static_cast<std::uint64_t>(shape_.ranks()));
  faults.to = faults.from + 1 + (chance_.one_in(2) ? 0 : chance_.of_any_size_below(300));
  faults.one_in = 1 + chance_.below(8);
  if (faults.to == faults.from + 1) faults.one_in = 1;
  if (!chance_.one_in(3)) return;
  run.full = true;
  run.full_from = draw_moment(run);
  run.full_calls = chance_.of_any_size_below(4000);
}

void Planner::draw_weather(PlannedRun& planned) {
  constexpr std::size_t most_damages = 6;
  if (chance_.one_in(5)) planned.lost_before.push_back(chance_.pick(shape_.nodes));
  if (chance_.one_in(8)) planned.rebooted_before.push_back(chance_.pick(shape_.nodes));
  if (chance_.one_in(3))
    planned.damages_before = 1 + static_cast<int>(chance_.of_any_size_below(most_damages));
  if (chance_.one_in(4)) {
    planned.run.damages.resize(1 + chance_.of_any_size_below(most_damages));
    for (Moment& damage : planned.run.damages) damage = draw_moment(planned.run);
  }
}

/// What happens while a dataset is protected behind the program.
void Planner::draw_behind(RunPlan& run) {
  constexpr std::uint64_t calls_per_rank = 300;
  if (!is_behind_) return;
  run.computes_calls = behind_.between(0, 6);
  const auto ranks = run.nodes.size();
  const auto moment = [&] {
    const int last = restart_phase + static_cast<int>(run.datasets.size());
    return Moment{behind_.between(restart_phase, last),
                  behind_.of_any_size_below(calls_per_rank * ranks)};
  };
  run.breaks_behind = behind_.one_in(6);
  run.breaks_at = moment();
  if (run.crash == Crash::none || run.datasets.empty() || !behind_.one_in(2)) return;
  run.crash_at = moment();
  run.crash_at.phase = std::max(run.crash_at.phase, first_dataset_phase);
}

void Planner::draw_change(RunPlan& run) {
  if (!is_behind_ || run.datasets.empty() || !changes_.one_in(6)) return;
  run.change = FileChange{changes_.between(0, static_cast<int>(run.nodes.size()) - 1),
                          static_cast<std::size_t>(changes_.below(run.datasets.size())),
                          changes_.between(0, run.computes_calls), changes_.one_in(2)};
}

/// Of datasets that may be there; where the run crashes, often in the middle of such a call.
void Planner::draw_named_calls(RunPlan& run) {
  constexpr int newest_of = 4;
  constexpr std::uint64_t calls_per_rank = 60;
  if (!rare_.one_in(3)) return;
  const auto datasets = static_cast<int>(run.datasets.size());
  for (int before = 0; before <= datasets; ++before) {
    const int newest = last_key_ - (datasets - before);
    if (newest == 0 || !rare_.one_in(2)) continue;
    NamedCall& call = run.named_calls.emplace_back();
    call.kind = rare_.one_in(3) ? NamedCall::Kind::current : NamedCall::Kind::remove;
    call.key = rare_.between(std::max(1, newest - newest_of + 1), newest);
    call.before = static_cast<std::size_t>(before);
  }
  if (run.named_calls.empty() || run.crash == Crash::none || !rare_.one_in(2)) return;
  const auto last = static_cast<int>(run.named_calls.size()) - 1;
  run.crash_at = {first_named_phase - rare_.between(0, last),
                  rare_.of_any_size_below(calls_per_rank * run.nodes.size())};
}

std::string describe(const RunPlan& run) {
  if (run.visit != Visit::none)
    return fmt::format("a visit of kind {} by ranks on {}", static_cast<int>(run.visit),
                       fmt::join(run.nodes, " "));
  static const std::vector<std::string> crashes = {"no crash",   "process crash", "job crash",
                                                   "node crash", "power failure", "storage lost"};
  return fmt::format(
      "ranks on {}; {} datasets; {} calls by name; {} at phase {} + {}; faults {}..{} one in {}; "
      "{} damages{}{}{}",
      fmt::join(run.nodes, " "), run.datasets.size(), run.named_calls.size(),
      crashes[static_cast<std::size_t>(run.crash)], run.crash_at.phase, run.crash_at.calls,
      run.faults.from, run.faults.to, run.faults.one_in, run.damages.size(),
      run.full ? "; a full store" : "", run.purge ? "; purged" : "",
      run.change ? "; a file is changed" : "");
}

}  // namespace cairn::sim
