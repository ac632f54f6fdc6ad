// What happens after the last handle of a file is closed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "crfs/inodes.hpp"
#include "crfs/unreported_errors.hpp"

namespace cairn {

/// Writes the data of files without open handles to the backing directory.
class Closing {
 public:
  /// `threads` threads do this in the background; with 0, finish_later() does it at once.
  Closing(Inodes& inodes, UnreportedErrors& unreported, int threads);
  /// Waits until all is written.
  ~Closing();

  void finish_later(Inode& inode);
  /// Writes and closes the file; does nothing if it was opened again.
  void finish(Inode& inode);
  bool is_asynchronous() const { return !threads_.empty(); }
  /// Called before a file is closed whose data are not all written. Set before the first file is
  /// opened.
  std::function<void(const Inode&)> lost;

 private:
  void work();
  void cancel(Inode& inode, const std::shared_ptr<SharedFile>& file);

  Inodes& inodes_;
  UnreportedErrors& unreported_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Inode*> waiting_;  ///< guarded; each is held in inodes_
  bool stop_ = false;           ///< guarded
  std::vector<std::thread> threads_;
};

}  // namespace cairn
