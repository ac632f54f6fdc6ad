// Files that a mount shows in its directories and that lie elsewhere: the checkpoint files of a
// mount with --scr, in the cache of the node.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/descriptor.hpp"

namespace cairn {

/// A name in a directory, which itself always lies in the backing directory.
struct MountedName {
  int directory;     ///< an O_PATH descriptor, owned by the inode
  const char* name;  ///< in the directory
  std::string path;  ///< from the backing directory on
  pid_t caller = 0;  ///< thread of the program; 0 if it is unknown
};

/// Thread-safe. Errors are errnos. A redirected file hides a file of the same name that lies in the
/// backing directory.
class Redirection {
 public:
  struct Listed {
    std::string name;
    dev_t device;
    ino_t number;
  };
  /// As long as it lives, a call of a program may change the file.
  class Change {
   public:
    virtual ~Change() = default;
  };

  virtual ~Redirection() = default;

  /// An O_PATH descriptor of a redirected file; -1 if no file of this name is redirected.
  virtual Descriptor find(const std::string& path) = 0;
  /// The redirected files of a directory.
  virtual std::vector<Listed> files_in(const std::string& directory) = 0;
  virtual bool has_files_below(const std::string& directory) = 0;

  /// The file of an O_PATH descriptor, which has several names, is redirected: the others are not
  /// the programs'.
  virtual bool hides_names(const Descriptor& file) = 0;
  /// Before the file of an O_PATH descriptor is opened, with the flags of open(), or resized. With
  /// O_PATH: before its attributes are changed.
  /// Returns 0 or an errno. With ESTALE the kernel looks the name up again, because it leads to
  /// another file now. `caller` as in MountedName.
  virtual int admit(const Descriptor& file, int flags, pid_t caller,
                    std::unique_ptr<Change>& change) = 0;
  /// A new file, open for reading and writing; -1 and errno on an error. Nothing if the file
  /// belongs in the backing directory.
  virtual std::optional<Descriptor> create(const MountedName& at, mode_t mode) = 0;
  /// After a directory, link, pipe or device was made in the backing directory.
  virtual void made(const MountedName& at) = 0;
  /// Removes a redirected file, and the file that it hides.
  virtual int remove(const MountedName& at) = 0;
  /// Nothing if the caller must rename in the backing directory, and then call renamed().
  virtual std::optional<int> rename(const MountedName& from, const MountedName& to,
                                    unsigned flags) = 0;
  virtual void renamed(const MountedName& from, const MountedName& to) = 0;
  /// A hard link. Nothing if the caller must make it in the backing directory.
  virtual std::optional<int> link(const Descriptor& file, const MountedName& to) = 0;
  /// After a directory was removed.
  virtual void removed_directory(const std::string& path) = 0;
  /// Data that a program has written to this file are lost.
  virtual void note_loss(const Descriptor& file) = 0;
};

/// The redirection of a mount, and what goes on behind it.
class RedirectingJob {
 public:
  virtual ~RedirectingJob() = default;
  virtual Redirection& redirection() = 0;
  /// All files are closed. Waits until everything that is due is done.
  virtual void finish() = 0;
};

}  // namespace cairn
