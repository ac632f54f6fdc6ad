// The state of one mount, and what several kinds of operations need.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "crfs/closing.hpp"
#include "crfs/fuse.hpp"
#include "crfs/inodes.hpp"
#include "crfs/kernel.hpp"
#include "crfs/mount_options.hpp"
#include "crfs/statistics.hpp"
#include "crfs/unreported_errors.hpp"
#include "crfs/write_profile.hpp"

namespace cairn {

class FileSystem {
 public:
  /// `root`: O_PATH, the backing folder.
  FileSystem(const MountOptions& options, Descriptor root);
  /// Drains.
  ~FileSystem();

  const MountOptions options;
  Aggregator aggregator;
  UnreportedErrors unreported;
  Inodes inodes;
  WriteProfile profile;
  Closing closing;
  Promises promises;
  /// To whom it may concern.
  std::function<void(const std::string&)> complain = [](const std::string&) {};
  /// Set before the first operation; to tell the kernel what it must forget.
  fuse_session* session = nullptr;
  /// The errno with which the kernel handed over no more requests; 0 where the mount was ended.
  std::atomic<int> receive_error = 0;

  Inode& inode(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? inodes.root() : *reinterpret_cast<Inode*>(number);
  }
  fuse_ino_t number(Inode& inode) {
    return &inode == &inodes.root() ? FUSE_ROOT_ID : reinterpret_cast<fuse_ino_t>(&inode);
  }

  /// The attributes of `inode`; 0 or an errno. `valid_s`: for how long the kernel may take them for
  /// true.
  int look_at(Inode& inode, struct stat& status, double& valid_s);
  /// What is called `name` in `folder`, which the kernel has looked up once more from here on.
  int look_up(Inode& folder, const char* name, fuse_entry_param& entry);
  int enter(Descriptor path, fuse_entry_param& entry);

  /// What the kernel may take for true as long as nothing happens here. Another node may change the
  /// backing folder; with the kernel's write-back cache none may.
  double valid_s() const { return options.writeback() ? 1e9 : 1.0; }

  struct Opened {
    Handle* handle = nullptr;
    bool cache_is_true = false;  ///< pages that the kernel has of the file
  };
  /// 0 or an errno. `flags` as those of open(). close_file() is the end of a handle.
  int open_file(Inode& inode, int flags, Opened& opened);
  /// The same, of a file that was just created, and is open.
  int adopt_file(Inode& inode, Descriptor created, int flags, Opened& opened);
  void close_file(Inode& inode, Handle& handle);
  /// The error of the file that no program was told yet, or 0; it counts as told then.
  int take_unreported_error(Inode& inode);
  /// The same for who opens it to read it. Others are told as well.
  int tell_reader(Inode& inode);
  /// 0 or an errno. Whoever may truncate by name need not have the file open.
  int resize(Inode& inode, off_t bytes);
  /// Waits until the kernel has handed over what programs wrote to mappings or to its cache, and
  /// takes nothing more through that. By another thread than those that answer.
  void take_from_kernel();
  /// Whether the kernel would take a write that no take_from_kernel() would follow.
  bool takes_no_more() const { return ends_ && options.writeback(); }
  /// The same for who asks; not for the process that takes.
  bool takes_no_more(fuse_req_t request) const { return takes_no_more() && !is_taker(request); }
  /// Who asks is no program, but who has the kernel hand over its pages: it is told of no errors.
  bool is_taker(fuse_req_t request) const {
    const pid_t taker = taker_;  // 0 is also who lives where this process sees no processes
    return taker > 0 && fuse_req_ctx(request)->pid == taker;
  }
  MountStatistics statistics() const;
  /// The errno for a program where the daemon has no more descriptors; it tells so once.
  int out_of_descriptors();
  /// Waits until all that was written to all files is in the backing folder. The mount is at its
  /// end: open handles count no more.
  void drain();

 private:
  bool passes_through() const { return promises.has_passthrough() && !refused_; }
  void take_pages();
  bool sync_in_child(const std::vector<Inode*>& written);

  std::atomic<bool> ends_ = false;
  std::atomic<pid_t> taker_ = 0;  ///< the process that has the kernel hand over its pages
  std::atomic<std::uint64_t> passed_through_ = 0;
  std::atomic<bool> refused_ = false;  ///< by the kernel, to read and write files by itself
  std::atomic<bool> told_of_descriptors_ = false;

  // With the lock on `inode`.
  int attach(Inode& inode, bool for_writing, bool& cache_is_true);
  void attach(Inode& inode, Descriptor opened, const struct stat& now);
  void decide_on(Inode& inode);
  Handle& add_handle(Inode& inode, int flags);
};

}  // namespace cairn
