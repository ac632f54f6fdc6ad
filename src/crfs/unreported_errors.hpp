// Errors of files that nobody had open any more when they came up.
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
    std::string file;  ///< by its path in the backing folder
    int error = 0;     ///< minus an errno
    bool reader_was_told = false;
  };

  void add(dev_t device, ino_t number, Lost lost);
  /// For who has the file open now, and is told; 0 if there is none.
  int take(dev_t device, ino_t number);
  /// For who opens it to read it, if none was told before. Who syncs, renames or links it next is
  /// told all the same: a reader may be anybody.
  int tell_reader(dev_t device, ino_t number);
  /// As take(), of all files whose path begins so; one error of several.
  int take_below(const std::string& folder);
  /// The number is that of a new file now; what is kept is another's, which is gone.
  void leave_to_the_end(dev_t device, ino_t number);
  /// Those that nobody took.
  std::vector<Lost> all() const;

 private:
  std::atomic<bool> any_ = false;  ///< so that a close() need not lock
  mutable std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Lost> lost_;  ///< guarded
  std::vector<Lost> gone_;                        ///< guarded; of files that are not there any more
};

}  // namespace cairn
