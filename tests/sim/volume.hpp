// One file system in memory, with what a power failure would leave of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chance.hpp"
#include "files/files.hpp"

namespace cairn::sim {

/// A file or folder. Of a file the bytes, mode and times as last synced are kept beside the present
/// ones; of a folder the names, with the changes made since in order.
struct Inode {
  Kind kind = Kind::file;
  std::uint64_t number = 1;  ///< in its volume; 1 is the root
  std::uint32_t mode = 0;
  FileTimes times;
  std::int64_t change_ns = 0;
  std::uint32_t synced_mode = 0;
  FileTimes synced_times;

  Blob content;
  Blob synced_content;
  int writers = 0;  ///< open files that may write to it

  using Names = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;
  /// `removed` goes, then `inode` appears as `added`; either name may be empty. One such change is
  /// whole after a power failure, or not there at all.
  struct Change {
    std::string removed;
    std::string added;
    std::shared_ptr<Inode> inode;
    /// Of the two changes that a rename between folders makes: both are there after a power
    /// failure or neither, and which, once that is known. Null for others.
    std::shared_ptr<std::optional<bool>> both;
  };
  Names names;
  Names synced_names;
  std::vector<Change> changes;

  bool linked = false;  ///< it has, or has had, a second name
  bool locked = false;
};

using InodePtr = std::shared_ptr<Inode>;

/// The file system of one node, or one that all nodes see. Paths are relative to its root and begin
/// with "/".
class Volume {
 public:
  enum class Medium {
    memory,  ///< keeps nothing when its node goes down; there is nothing to sync
    disk,    ///< keeps what was synced, and of the rest whatever it likes
  };

  /// `node`: whose it is; empty for one that all nodes see.
  explicit Volume(Medium medium, std::string node = {});

  Medium medium() const { return medium_; }
  const InodePtr& root() const { return root_; }

  /// Null if there is nothing of that name.
  InodePtr find(std::string_view path) const;
  /// The folder that a path is in; null if that is missing or is not a folder.
  InodePtr folder_of(std::string_view path) const;

  void change_names(Inode& folder, Inode::Change change) const;
  void sync_content(Inode& file) const;
  void sync_attributes(Inode& inode) const;
  void sync_names(Inode& folder) const;
  /// Writes as much as there is space for; false if that was not all.
  bool write(Inode& file, std::uint64_t offset, Bytes data, std::int64_t now_ns);

  /// New bytes that may still be written; plenty, unless limited.
  std::uint64_t free_bytes() const { return free_bytes_; }
  void limit_free_bytes(std::uint64_t bytes) { free_bytes_ = bytes; }
  void lift_limit() { free_bytes_ = plenty; }

  const std::string& node() const { return node_; }
  /// Which start of its node this is: of a volume in memory each start makes it anew.
  std::string boot() const { return node_ + "." + std::to_string(starts_); }

  /// For a new file or folder: never given twice.
  std::uint64_t next_number() { return ++last_number_; }

  /// How many names there are for this file.
  std::uint64_t count_names(const Inode& file) const;

  /// All that is there is durable from now on.
  void sync_all() const;

  /// Its present state, for somebody who only reads the present.
  Volume copy() const;
  /// The file is gone, for good.
  void lose(const std::string& path) const;
  /// The node goes down without a word and comes back.
  void power_failure(Chance& chance);
  /// The storage is replaced by an empty one.
  void wipe();

  /// Every path below `folder` that is a file, in order.
  std::vector<std::string> files_below(const std::string& folder = "") const;

 private:
  static constexpr std::uint64_t plenty = std::uint64_t{1} << 40;

  Medium medium_;
  std::string node_;
  std::uint64_t starts_ = 1;
  InodePtr root_;
  std::uint64_t last_number_ = 1;
  std::uint64_t free_bytes_ = plenty;
};

/// A node goes down that had this file open on a disk that other nodes see, which stay up.
void lose_unsynced(Inode& file, Chance& chance);

/// A bit flips in a file, or it loses its end, for good; which, in words.
std::string damage(Inode& file, Chance& chance);

}  // namespace cairn::sim
