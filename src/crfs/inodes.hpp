// The files and folders that the kernel knows, each once, whatever names it has.
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

/// What a backing file was like when it was looked at. Pages in the kernel's cache are of one
/// version, and true as long as that is the file's.
struct Version {
  timespec mtime = {};
  timespec ctime = {};  ///< nobody can set it back
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

/// Where it lies in the backing folder, as the system tells now.
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

  std::mutex changing_mode;  ///< after that below; held while the backing folder changes it

  /// Bits of the mode that a write takes away are set, or may be.
  std::atomic<bool> may_have_special_bits = false;
  /// It has no security.capability, which the kernel would ask for at each write.
  std::atomic<bool> has_no_capability = false;

  /// A program may write to a mapping of it without our knowing, though it has closed the file.
  std::atomic<bool> may_be_mapped = false;

  std::mutex mutex;
  std::shared_ptr<SharedFile>
      file;  ///< guarded; while it is open, or what was written is on its way
  std::vector<std::unique_ptr<Handle>> handles;  ///< guarded
  Version cached;  ///< guarded; of when it was opened, or closed after a change

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

/// Those are kept that the kernel has looked up and not forgotten, or that somebody here holds.
class Inodes {
 public:
  explicit Inodes(Descriptor root);

  Inode& root() { return *root_; }
  /// The number under which programs see a file. The mount is one device to them, whatever is
  /// mounted within the backing folder: of each other device the numbers are different ones, and as
  /// long as it is mounted the same.
  ino_t shown_number(dev_t device, ino_t number) const;
  ino_t shown_number(const Inode& inode) const { return shown_number(inode.device, inode.number); }
  /// One lookup more of the file that `path` is.
  Inode& look_up(Descriptor path, const struct stat& status);
  /// Null where the kernel does not know it; else one lookup more.
  Inode* find(dev_t device, ino_t number);
  void hold(Inode& inode);
  void forget(Inode& inode, std::uint64_t lookups);
  /// All, each with one lookup more.
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
