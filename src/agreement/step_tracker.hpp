// How far one rank has come with the steps of its program.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agreement/step_order.hpp"

namespace cairn {

/// Of a rank with a step. The lowest of all ranks counts.
enum class Progress : std::uint8_t {
  open,     ///< it has a file of the step open
  working,  ///< it has not closed the files that it had in the last decided step, or has others
  quiet,    ///< it has closed these files; that may be none
  passed,   ///< it has opened a file of a later step, or has ended
};

/// How the ranks have decided a step.
enum class Decision : std::uint8_t { certain, given_up };

/// Why a step cannot become a dataset. The greatest of all ranks counts.
enum class Loss : std::uint8_t {
  none,
  left_out,     ///< a file of it is not in the cache, or not closed at the end
  overwritten,  ///< the program has written a file of it again, for a later step
  mixed,        ///< it may have files of several steps of the program
};

/// What a rank knows of a step, for the others.
struct StepReport {
  Progress progress = Progress::passed;
  bool is_writer = false;  ///< it has opened a file of the step
  Loss loss = Loss::none;
  bool changed = false;    ///< since the report before
  std::uint32_t mark = 0;  ///< of the step, if it is a writer
};

/// Local. Knows no files, only when the program opens and closes them. Not thread-safe: who uses it
/// from several threads holds a lock.
class StepTracker {
 public:
  /// The program opens a file of this step for writing. `shape` is the file's name without what
  /// differs from step to step.
  void opened(Step step, const std::string& shape);
  /// One that opened() was called for.
  void closed(Step step, const std::string& shape);
  /// The program writes a file of the step that cannot be in a dataset: the cache is full, for
  /// instance. That it is closed need not be known.
  void left_out(Step step, const std::string& shape);
  /// A file that opened() was called for cannot be in a dataset of the step any more.
  void lost(std::int64_t number, Loss loss);
  /// The program opens no more files.
  void ended() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }

  /// Of those that this rank has opened files of.
  std::optional<std::int64_t> oldest_undecided() const;
  std::size_t undecided() const { return steps_.size(); }
  /// The oldest decided step of which this rank has opened files since, until forget_late().
  std::optional<std::int64_t> oldest_late() const;
  bool is_late(std::int64_t number) const { return late_news_.contains(number); }
  void forget_late(std::int64_t number) { late_news_.erase(number); }
  StepReport report(std::int64_t number);
  /// The ranks have agreed by their last reports of it. With it, the steps before it are decided.
  void decided(std::int64_t number, Decision decision);

  auto operator<=>(const StepTracker&) const = default;

 private:
  struct Work {
    std::uint32_t mark = 0;
    std::set<std::string> shapes;  ///< of all its files
    std::multiset<std::string> open;
    Loss loss = Loss::none;
    bool changed = false;

    auto operator<=>(const Work&) const = default;
  };

  bool is_decided(std::int64_t number) const { return number <= last_decided_; }
  Work& work_at(Step step);
  Work& add_file(Step step, const std::string& shape);
  Progress progress(std::int64_t number, const Work* work) const;

  std::map<std::int64_t, Work> steps_;  ///< undecided
  std::map<std::int64_t, Work> late_;   ///< files of decided steps that are open
  std::set<std::int64_t> late_news_;
  /// The shapes of the last decided step in which it had some, also those that came late.
  std::set<std::string> usual_;
  std::int64_t last_decided_ = -1;
  std::int64_t newest_ = -1;
  bool has_ended_ = false;
};

}  // namespace cairn
