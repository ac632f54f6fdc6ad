// The end of a file's being open.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "crfs/inodes.hpp"
#include "crfs/unreported_errors.hpp"

namespace cairn {

/// Brings what was written to files that nobody has open any more to the backing folder.
class Closing {
 public:
  /// With `threads` that do it beside the programs; with none, finish_later() does it at once.
  Closing(Inodes& inodes, UnreportedErrors& unreported, int threads);
  /// All is done by then.
  ~Closing();

  void finish_later(Inode& inode);
  /// Does nothing if the file was opened again.
  void finish(Inode& inode);
  bool is_asynchronous() const { return !threads_.empty(); }

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
