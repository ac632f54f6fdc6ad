// The halt file as a thread reads it, so that no call of the program waits for the prefix
// directory.
#pragma once

#include <memory>
#include <mutex>

#include "files/background.hpp"
#include "prefix/halt_file.hpp"

namespace cairn {

class HaltWatch {
 public:
  /// Null where there is no thread for it. `background` must outlive it.
  static std::unique_ptr<HaltWatch> start(HaltFile file, Background& background);

  /// As the thread has read it last, no longer than a second ago where the directory answers.
  Result<HaltRecord> last() const;
  /// The file has just been changed to this.
  void note(const HaltRecord& record);

 private:
  explicit HaltWatch(HaltFile file) : file_(std::move(file)), last_(file_.read()) {}
  void look();

  const HaltFile file_;
  mutable std::mutex mutex_;
  Result<HaltRecord> last_;           ///< guarded by mutex_, as the next
  std::uint64_t changes_ = 0;         ///< note() was called so often: what was read before is old
  std::unique_ptr<Repeated> thread_;  ///< the last member: it uses the others
};

}  // namespace cairn
