// The halt file as a thread reads and changes it, so that no call of the program waits for the
// prefix directory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "files/background.hpp"
#include "prefix/halt_file.hpp"

namespace cairn {

class HaltWatch {
 public:
  /// Null where there is no thread for it. `background` must outlive it.
  static std::unique_ptr<HaltWatch> start(HaltFile file, Background& background);

  using Change = std::function<void(HaltRecord&)>;

  /// As the thread has read it last, no longer than a second ago where the directory answers, with
  /// all changes.
  Result<HaltRecord> last() const;
  /// The thread changes the file so, as soon as the directory answers.
  void change(Change change);
  /// Why it could not be changed when that was tried last.
  Status trouble() const;
  /// Ends the thread. What it has not changed yet, oldest first.
  std::vector<Change> end();

 private:
  explicit HaltWatch(HaltFile file) : file_(std::move(file)), last_(file_.read()) {}
  std::int64_t step();
  bool change_file();

  HaltFile file_;  ///< the thread's
  mutable std::mutex mutex_;
  Result<HaltRecord> last_;  ///< guarded by mutex_, as the next
  Status trouble_;
  std::vector<Change> changes_;       ///< that are not in the file
  int steps_to_look_ = 0;             ///< the thread's
  std::unique_ptr<Repeated> thread_;  ///< the last member: it uses the others
};

}  // namespace cairn
