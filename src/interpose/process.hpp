#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>

#include "interpose/rules.hpp"
#include "interpose/steps_taken.hpp"
#include "wrapped/wrapped_calls.h"

namespace cairn::interpose {

/// What the preloaded library knows in a process. All of it follows from the environment, so that a
/// program that is started by this one knows the same.
class Process {
 public:
  /// From the environment. Null, after one line on stderr if the user has to know it, where nothing
  /// is to be done.
  static Process* make();

  /// Whether a call can go on with the path as it is: it names no checkpoint file. It allocates
  /// nothing and needs little stack. False is no promise.
  bool is_plain(int directory, const char* path);

  bool is_dry_run() const { return !log_directory_.empty(); }
  const std::string& cache() const { return cache_; }
  const std::string& files() const { return files_; }
  Rules& rules() { return rules_; }
  WorkingDirectory& working_directory() { return working_directory_; }

  /// Whether the cache has room for another file, and takes one of this step.
  bool has_room_for(std::string_view step);
  void take_no_new_steps() { steps_taken_.take_no_new_ones(); }
  bool takes_new_steps() const { return steps_taken_.takes_new_ones(); }

  /// One line on stderr, where that is still the program's. `once` keeps it from being repeated.
  void say(std::atomic<bool>& once, const char* path, const char* what) const;

  /// Adds a line to the log of the dry run.
  void log(const char* line, std::size_t length);

  /// Of a program with MPI, between MPI_Init and MPI_Finalize. Null in a child made by fork: the
  /// job's thread is not there.
  const cairn_wrapped_calls* job() const { return job_.load(std::memory_order_acquire); }
  void begin_job(const cairn_wrapped_calls* job);
  /// Null where there was none, or another thread has ended it.
  const cairn_wrapped_calls* end_job();
  /// Whether files with several names are parts of checkpoints: a program with MPI has this cache,
  /// or has had it.
  bool keeps_checkpoints() const { return job() != nullptr || has_mark_of_job(); }
  /// `has_all_ranks`: all their files are where they belong. Otherwise all stay in the cache, and
  /// the next run decides.
  void note_end_of_job(bool has_all_ranks);
  /// Moves what an earlier run has not closed to its plain places.
  void settle_files_set_aside();

  /// Around a fork of the program, and in its child. From before the fork on, the child holds the
  /// lock by a descriptor of its own: it counts as a process of the node before it runs.
  void lock_for_child();
  void release_lock_of_child();
  void adopt_child();
  void end();

 private:
  Process() = default;
  std::string configure();
  void watch_stderr();
  bool take_lock();
  int open_lock(int operation) const;
  void note_prefix();
  void set_mark(const char* mark);
  bool has_mark(const char* mark) const;
  bool has_mark_of_job() const;
  bool is_in_checkpoint(std::string_view name) const;
  void set_open_files_aside();
  bool has_lock() const;

  Rules rules_;
  WorkingDirectory working_directory_;
  std::string cache_;
  std::string files_;
  std::string log_directory_;
  std::string rank_ = "-";
  unsigned long free_percent_ = 10;
  int lock_ = -1;
  int lock_of_child_ = -1;  // of the thread that forks: one at a time
  std::atomic<const cairn_wrapped_calls*> job_{nullptr};
  bool has_had_job_ = false;
  StepsTaken steps_taken_;
  struct stat lock_state_ {};
  std::atomic<int> log_{-1};
  std::atomic<pid_t> id_{0};
  struct stat stderr_ {};
  bool has_stderr_ = false;
};

/// Null before the library has been initialised, and where it does nothing.
Process* process();
/// From now on all calls go on with the paths as they are. What is in the cache stays there,
/// hidden.
void stop_redirecting();

/// False while libraries that come before this one are initialised: then no symbol may be looked
/// up, as that may allocate memory, and the call may come from the allocator.
bool has_started();

}  // namespace cairn::interpose
