// Where every call of a rank to communicator, files and clock comes by.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "scheduler.hpp"
#include "trace.hpp"

namespace cairn::sim {

/// A property that does not hold. The text says which, and what was seen.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Counts the calls, lets others go first, and makes things happen at a chosen call. A run of more
/// than `most_calls` calls hangs, as far as anybody can tell: a Violation.
class Seam {
 public:
  Seam(Scheduler& scheduler, Trace& trace) : scheduler_(scheduler), trace_(trace) {}

  /// Before a run.
  void begin(int ranks) {
    calls_ = 0;
    events_.clear();
    calls_left_.assign(static_cast<std::size_t>(ranks), -1);
  }

  /// The rank that runs is about to do something. Throws Ended if its process has ended.
  void pass(std::string_view what, std::string_view where = {}, std::string_view to = {});

  /// `event` happens `calls` calls from now.
  void after(std::uint64_t calls, std::function<void()> event) {
    events_.emplace(calls_ + calls, std::move(event));
  }
  /// The process of `rank` ends after so many calls more.
  void end_after(int rank, int calls) { calls_left_[static_cast<std::size_t>(rank)] = calls; }

  std::uint64_t calls() const { return calls_; }
  Scheduler& scheduler() { return scheduler_; }
  Trace& trace() { return trace_; }

 private:
  static constexpr std::uint64_t most_calls = 2'000'000;

  void fire_events();

  Scheduler& scheduler_;
  Trace& trace_;
  std::uint64_t calls_ = 0;
  std::multimap<std::uint64_t, std::function<void()>> events_;
  std::vector<int> calls_left_;  ///< by rank; negative: no end in sight
};

}  // namespace cairn::sim
