#include "prefix_books.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::sim {

// --- runs ---

void PrefixBooks::begin_run(RunFacts run) {
  if (run.job_id != run_.job_id || run.placement != run_.placement) newest_cached_ = 0;
  run_ = std::move(run);
  in_flight_.clear();
  begun_restarts_.clear();
  was_complete_.clear();
  last_.reset();
  goes_on_ = false;
}

void PrefixBooks::end_run() {
  nodes_are_empty_ = false;
  for (auto& [key, told] : told_)
    if (told == Told::begun) told = Told::unsure;
}

void PrefixBooks::purge_begins() {
  for (auto& [key, told] : told_) {
    told = Told::unsure;
    purged_.insert(key);
  }
  copied_ = 0;
  newest_cached_ = 0;
}

/// What was seen, and not synced, may be gone.
void PrefixBooks::power_fails() {
  newest_cached_ = 0;
  for (const int key : found_whole_) told_[key] = Told::unsure;
  found_whole_.clear();
}

void PrefixBooks::nodes_lost() {
  nodes_are_empty_ = true;
  newest_cached_ = 0;
  never_offered_ = gone_;
}

// --- datasets ---

void PrefixBooks::begin(int key, bool is_output) {
  told_[key] = Told::begun;
  if (is_output) outputs_.insert(key);
  if (!is_output && last_) before_[key] = *last_;
  current_ = 0;
}

bool PrefixBooks::is_there_at_once(int key, bool in_place) const {
  return in_place || (!run_.is_async && (is_output(key) || interval_ == 1));
}

void PrefixBooks::completed(int key, bool well, bool sure, bool in_place) {
  Told& told = told_[key];
  if (told != Told::begun) return;
  told = sure && is_there_at_once(key, in_place) ? Told::complete : Told::unsure;
  if (sure && is_output(key)) in_flight_.insert(key);
  if (is_output(key)) return;
  last_.reset();
  if (well) last_ = key;
  if (sure && (in_place || !run_.is_async)) expect_copied(key);
  if (sure && run_.keeps_in_caches) newest_cached_ = key;
}

bool PrefixBooks::found_whole(int key) {
  Told& told = told_[key];
  if (told != Told::unsure || doubted_.contains(key) || purged_.contains(key)) return false;
  told = Told::complete;
  found_whole_.insert(key);
  return true;
}

void PrefixBooks::finalized() {
  for (const int key : in_flight_)
    if (!doubted_.contains(key)) told_[key] = Told::complete;
  if (!last_ || purged_.contains(*last_)) return;
  copied_ = std::max(copied_, *last_);
  if (!doubted_.contains(*last_)) told_[*last_] = Told::complete;
}

/// As the number of one of the last `interval_` says.
void PrefixBooks::expect_copied(int newest) {
  int oldest = newest;
  for (int i = 1; i < interval_; ++i) {
    const auto before = before_.find(oldest);
    if (before == before_.end()) return;
    oldest = before->second;
  }
  if (!purged_.contains(oldest)) copied_ = std::max(copied_, oldest);
}

void PrefixBooks::goes_on_from(int key, bool sure, bool asked) {
  if (std::exchange(goes_on_, true)) return;
  last_ = key;
  if (sure) expect_copied(key);
  if (sure && asked && !purged_.contains(key)) copied_ = std::max(copied_, key);
}

void PrefixBooks::doubt(int key) {
  told_[key] = Told::unsure;
  doubted_.insert(key);
  forget_current(key);
}

void PrefixBooks::damaged(int key) {
  damaged_.insert(key);
  doubt(key);
}

void PrefixBooks::forget_current(int key) {
  if (key == newest_cached_) newest_cached_ = 0;
  if (key == current_) current_ = 0;
}

// --- calls by name ---

void PrefixBooks::call_begins(const PrefixCall& call) {
  const auto told = told_.find(call.key);
  const bool complete = told != told_.end() && told->second == Told::complete;
  if (!was_complete_.emplace(call.before, complete).second) return;
  if (told == told_.end()) return;
  current_ = 0;
  if (call.kind != PrefixCall::Kind::current) return doubt(call.key);
  for (int key = call.key + 1; key <= count(); ++key)
    if (!is_output(key)) doubt(key);
}

void PrefixBooks::call_returns(const PrefixCall& call, bool kept, bool cached) {
  if (!std::exchange(was_complete_.at(call.before), false)) return;
  switch (call.kind) {
    case PrefixCall::Kind::current:
      if (kept && !is_output(call.key)) current_ = call.key;
      return;
    case PrefixCall::Kind::drop:
      if (kept) gone_.insert(call.key);
      return;
    case PrefixCall::Kind::remove:
      if (cached) return;  // a node that was away brings it back
      gone_.insert(call.key);
      deleted_.insert(call.key);
      never_offered_.insert(call.key);
      return;
  }
}

// --- restarts ---

bool PrefixBooks::may_be_held_back(int key) const {
  const auto attempts = attempts_.find(key);
  return most_attempts_ > 0 && attempts != attempts_.end() &&
         attempts->second.at_most >= most_attempts_;
}

/// By newer ones, none of which need be there any more. Where nothing was done to these, one of
/// them is.
bool PrefixBooks::may_be_pushed_out(int key) const {
  if (window_ > 0 && held_back_.contains(key)) return true;  // such go first
  int newer = 0;
  bool doubtful = false;
  for (int other = key + 1; other <= count(); ++other) {
    if (is_output(other)) continue;
    ++newer;
    doubtful = doubtful || doubted_.contains(other) || may_be_held_back(other);
  }
  return window_ > 0 && doubtful && newer >= window_ && !is_output(key);
}

int PrefixBooks::newest_expected() const {
  int newest = interval_ > 1 ? copied_ : 0;
  if (!may_be_held_back(newest_cached_)) newest = std::max(newest, newest_cached_);
  for (const auto& [key, told] : told_)
    if (must_be_there(key) && !is_output(key) && !may_be_held_back(key))
      newest = std::max(newest, key);
  return newest;
}

std::string PrefixBooks::wrong_offer(int key, bool disturbed) const {
  if (key != 0 && (!told_.contains(key) || is_output(key)))
    return fmt::format("(a) d{} is offered", key);
  if (never_offered_.contains(key))
    return fmt::format("(d) d{} was dropped or deleted, and is offered", key);
  if (disturbed) return {};
  if (key < newest_expected())
    return fmt::format("(b) d{} was complete, and d{} is offered", newest_expected(), key);
  const auto attempts = attempts_.find(key);
  if (most_attempts_ > 0 && attempts != attempts_.end() && told_.at(key) == Told::complete &&
      attempts->second.surely >= most_attempts_)
    return fmt::format("(b) {} restarts from d{} have died, and it is offered",
                       attempts->second.surely, key);
  if (nodes_are_empty_ && current_ != 0 && key != current_ && !may_be_held_back(current_))
    return fmt::format("(b) d{} is current, and d{} is offered", current_, key);
  return {};
}

std::string PrefixBooks::silent_offer(int key, const std::string& said) const {
  const int expected = newest_expected();
  if (key >= expected) return {};
  const auto is_said = [&](const std::string& what) {
    return said.find(what) != std::string::npos;
  };
  if (key == 0 && !is_said("FROM SCRATCH"))
    return fmt::format("(b) d{} was complete, and the run starts from scratch without a word",
                       expected);
  // A directory that is away names none of those that are in it.
  bool named = key == 0 || is_said("cannot fetch or flush now");
  for (int newer = expected; newer <= count(); ++newer)
    named = named || is_said(fmt::format("(d{})", newer));
  if (named) return {};
  return fmt::format("(b) d{} was complete, and d{} is offered without a reason", expected, key);
}

void PrefixBooks::restart_begins(int key) {
  if (begun_restarts_.insert(key).second) ++attempts_[key].at_most;
  if (may_be_held_back(key)) held_back_.insert(key);
}

}  // namespace cairn::sim
