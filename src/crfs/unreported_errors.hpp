// Errors that occurred when no program had the file open any more.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cairn {

class UnreportedErrors {
 public:
  struct Lost {
    std::string file;  ///< the path in the backing directory
    int error = 0;     ///< minus an errno
    bool was_returned_to_reader = false;
  };

  void add(dev_t device, ino_t number, Lost lost);
  /// Returns and removes the error of a file, for a program that has it open; 0 if there is none.
  int take(dev_t device, ino_t number);
  /// Returns the error to the first program that opens the file for reading; else 0. Keeps it for
  /// the next sync, rename or link, as the reader may be a program that does not care about it.
  int report_to_reader(dev_t device, ino_t number);
  /// Like take(), for all files whose path begins so; returns one of the errors.
  int take_below(const std::string& directory);
  /// Call when a new file has got this number: an error under it belongs to a file that is gone.
  void leave_to_the_end(dev_t device, ino_t number);
  /// The errors that no program has taken.
  std::vector<Lost> all() const;

 private:
  std::atomic<bool> any_ = false;  ///< so that a close() need not lock
  mutable std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Lost> lost_;  ///< guarded
  std::vector<Lost> gone_;                        ///< guarded; of files that do not exist any more
};

}  // namespace cairn
