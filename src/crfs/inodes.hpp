// The files and directories that the kernel knows. A file with several names is in it once.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "crfs/shared_file.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// The version of a backing file when its attributes were read. Pages in the kernel's cache belong
/// to one version, and are valid as long as the file has that version.
struct Version {
  timespec mtime = {};
  timespec ctime = {};  ///< no program can set it back
  off_t size = -1;

  bool operator==(const Version& other) const {
    const auto same = [](const timespec& one, const timespec& two) {
      return one.tv_sec == two.tv_sec && one.tv_nsec == two.tv_nsec;
    };
    return same(mtime, other.mtime) && same(ctime, other.ctime) && size == other.size;
  }
};
Version version_of(const struct stat& status);

class Inode;

/// Its current path in the backing directory.
std::string name_of(const Inode& inode);

class Inode {
 public:
  Inode(Descriptor at, const struct stat& status)
      : path(std::move(at)),
        device(status.st_dev),
        number(status.st_ino),
        type(status.st_mode & S_IFMT) {}

  const Descriptor path;  ///< O_PATH; also keeps the number from being given to another file
  const dev_t device;
  const ino_t number;
  const mode_t type;

  std::mutex changing_mode;  ///< locked after `mutex`, while the mode of the file changes

  /// The mode may have bits that a write clears.
  std::atomic<bool> may_have_special_bits = false;
  /// It has no security.capability. The kernel would ask for that at each write.
  std::atomic<bool> has_no_capability = false;

  /// A program may still write to a mapping of it, unknown to the daemon, after it has closed the
  /// file.
  std::atomic<bool> may_be_mapped = false;

  std::mutex mutex;
  std::shared_ptr<SharedFile>
      file;  ///< guarded; while it is open, or what was written is on its way
  std::vector<std::unique_ptr<Handle>> handles;  ///< guarded
  Version cached;  ///< guarded; version when it was opened, or closed after a change

  std::shared_ptr<SharedFile> open_file() {
    const std::lock_guard lock(mutex);
    return file;
  }

 private:
  friend class Inodes;
  std::uint64_t lookups_ = 0;  ///< guarded by Inodes
};

/// Numbers that are near one another become ones that are not (Fibonacci hashing).
constexpr std::uint64_t far_apart(std::uint64_t number) { return number * 0x9E3779B97F4A7C15ULL; }

/// Keeps an inode as long as the kernel has looked it up and not forgotten it, or as long as this
/// process holds it.
class Inodes {
 public:
  explicit Inodes(Descriptor root);

  Inode& root() { return *root_; }
  /// The inode number that programs see. They see the mount as one device, also if other file
  /// systems are mounted within the backing directory, so numbers of other devices are changed. A
  /// number stays the same as long as its device is mounted.
  ino_t shown_number(dev_t device, ino_t number) const;
  ino_t shown_number(const Inode& inode) const { return shown_number(inode.device, inode.number); }
  /// Finds or adds the inode of the file `path`, and adds one lookup.
  Inode& look_up(Descriptor path, const struct stat& status);
  /// Null if the kernel does not know it; else adds one lookup.
  Inode* find(dev_t device, ino_t number);
  void hold(Inode& inode);
  void forget(Inode& inode, std::uint64_t lookups);
  /// All inodes; adds one lookup to each.
  std::vector<Inode*> hold_all();

 private:
  struct Key {
    dev_t device;
    ino_t number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(far_apart(key.number) ^ key.device);
    }
  };

  std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Inode>, Hash> all_;  ///< guarded
  Inode* root_;
};

}  // namespace cairn
