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
#include "crfs/redirection.hpp"
#include "crfs/statistics.hpp"
#include "crfs/unreported_errors.hpp"
#include "crfs/write_profile.hpp"

namespace cairn {

class FileSystem {
 public:
  /// `root`: O_PATH, the backing directory.
  FileSystem(const MountOptions& options, Descriptor root);
  /// Drains first.
  ~FileSystem();

  const MountOptions options;
  Aggregator aggregator;
  UnreportedErrors unreported;
  Inodes inodes;
  WriteProfile profile;
  Closing closing;
  Promises promises;
  /// Reports a problem of the mount; set by its owner.
  std::function<void(const std::string&)> complain = [](const std::string&) {};
  /// Null if all files lie in the backing directory. Set before the first operation.
  Redirection* redirection = nullptr;
  /// Set before the first operation; for notifications of the kernel about invalid pages and
  /// attributes.
  fuse_session* session = nullptr;
  /// The errno of reading requests from the kernel; 0 after a normal end of the mount.
  std::atomic<int> receive_error = 0;

  Inode& inode(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? inodes.root() : *reinterpret_cast<Inode*>(number);
  }
  fuse_ino_t number(Inode& inode) {
    return &inode == &inodes.root() ? FUSE_ROOT_ID : reinterpret_cast<fuse_ino_t>(&inode);
  }

  /// Gets the attributes of `inode`; 0 or an errno. `valid_s`: how long the kernel may cache them.
  int look_at(Inode& inode, struct stat& status, double& valid_s);
  /// Looks up `name` in `directory`; counts one more lookup of the kernel. 0 or an errno.
  int look_up(Inode& directory, const char* name, fuse_entry_param& entry);
  int enter(Descriptor path, fuse_entry_param& entry);
  /// A name, for `redirection`.
  MountedName named(const Inode& directory, const char* name, fuse_req_t request = nullptr);
  /// The same for the directory itself.
  std::string path_of(const Inode& directory);
  /// An O_PATH descriptor of what has this name; -1 and errno on an error.
  Descriptor find(const Inode& directory, const char* name);

  /// How long the kernel may cache names and attributes that this mount does not change. Other
  /// nodes may change the backing directory, except with the kernel's write-back cache.
  double valid_s() const { return options.writeback() ? 1e9 : 1.0; }

  struct Opened {
    Handle* handle = nullptr;
    bool cache_is_true = false;  ///< the pages in the kernel's cache are valid
  };
  /// 0 or an errno. `flags` as those of open(). close_file() ends the handle.
  int open_file(Inode& inode, int flags, Opened& opened);
  /// The same for a file that was just created; `created` is its descriptor.
  int adopt_file(Inode& inode, Descriptor created, int flags, Opened& opened);
  void close_file(Inode& inode, Handle& handle);
  /// The errno that no program has received yet for this file, or 0; it counts as received then.
  int take_unreported_error(Inode& inode);
  /// Returns that errno to the first program that opens the file for reading. It still counts as
  /// not received.
  int report_to_reader(Inode& inode);
  /// 0 or an errno. The file need not be open.
  int resize(Inode& inode, off_t bytes);
  /// Waits until the kernel has handed over what programs wrote to mappings or to its cache, and
  /// takes no more such writes. Not to be called by a thread that serves requests.
  void take_from_kernel();
  /// The mount ends with a write-back cache: a write taken now would never reach the daemon.
  bool takes_no_more() const { return ends_ && options.writeback(); }
  /// The same, except for the process that syncs the files at the end.
  bool takes_no_more(fuse_req_t request) const { return takes_no_more() && !is_taker(request); }
  /// The request comes from the process that syncs the files at the end. It must not receive
  /// errors, as it would not report them.
  bool is_taker(fuse_req_t request) const {
    const pid_t taker = taker_;  // processes of an invisible namespace have the pid 0 too
    return taker > 0 && fuse_req_ctx(request)->pid == taker;
  }
  MountStatistics statistics() const;
  /// The errno for a program when the daemon has no descriptor left. The first call reports that.
  int out_of_descriptors();
  /// Waits until the backing directory has all written data. For the end of the mount: drops open
  /// handles. After a signal programs may still have files open, which are then incomplete.
  void drain();

 private:
  bool passes_through() const { return promises.has_passthrough() && !refused_; }
  void wait_for_writers();
  void take_pages();
  bool sync_in_child(const std::vector<Inode*>& written);

  std::atomic<bool> ends_ = false;
  std::atomic<pid_t> taker_ = 0;  ///< the child process that syncs the files at the end
  std::atomic<std::uint64_t> passed_through_ = 0;
  std::atomic<bool> refused_ = false;  ///< the kernel refused passthrough
  std::atomic<bool> has_logged_descriptor_limit_ = false;

  // The caller holds the lock of `inode`.
  int attach(Inode& inode, bool for_writing, bool& cache_is_true);
  void attach(Inode& inode, Descriptor opened, const struct stat& now);
  void decide_on(Inode& inode);
  Handle& add_handle(Inode& inode, int flags);
};

}  // namespace cairn
