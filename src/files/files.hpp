// The file-system seam: everything Cairn does to files goes through a Files.
//
// POSIX implements it in production; wrappers stop at a chosen operation or make it fail. All paths
// are absolute. No call follows a symbolic link in the last component, and none changes a file that
// it does not name. Errors name the action and the path (errno_error). Modes are permission bits;
// the umask of the process applies to new files.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

enum class Kind { file, folder, link, other };

struct FileTimes {
  std::int64_t access_ns = 0;
  std::int64_t modify_ns = 0;
};

/// Equal for two names of one existing file or directory, as one node sees it.
struct FileId {
  std::uint64_t file_system = 0;
  std::uint64_t number = 0;

  auto operator<=>(const FileId&) const = default;
};

struct FileInfo {
  Kind kind = Kind::file;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  ///< permission bits, 07777
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  FileTimes times;
  std::int64_t change_ns =
      0;  ///< last change of content, attributes or names, by the file system's clock
  FileId id;
  std::uint64_t names = 1;  ///< number of hard links
};

/// The process of this node that has a file open or mapped for writing.
enum class Writer {
  none,             ///< also if it is unknown
  this_process,     ///< even if other processes have it open too
  another_process,  ///< such as a child that has inherited the open file
};

struct Space {
  std::uint64_t free_bytes = 0;  ///< free for an unprivileged user
  std::uint64_t total_bytes = 0;
  std::uint64_t file_system = 0;  ///< equal for two paths of one node that share this space
};

/// An open file. The destructor closes it; sync() reports errors of delayed writes.
class File {
 public:
  virtual ~File() = default;
  /// Fills all of `buffer`; a file that ends before that is an io error naming both sizes.
  virtual Status read_at(std::uint64_t offset, MutableBytes buffer) = 0;
  virtual Status write_at(std::uint64_t offset, Bytes data) = 0;
  virtual Status resize(std::uint64_t bytes) = 0;
  /// Makes the content and the size durable.
  virtual Status sync() = 0;
  /// Makes content, size, mode and times durable.
  virtual Status sync_all() = 0;
  /// Like Files::set_attributes, without resolving the path again. The file may be open for reading
  /// or writing.
  virtual Status set_attributes(std::uint32_t mode, const FileTimes& times) = 0;
  /// Like write_at, for much data that is not read again soon. If the file system and the alignment
  /// allow it, the device takes the bytes directly from `data`, which must not change meanwhile:
  /// that saves a copy and pages of the cache. Otherwise the kernel begins to write them at once,
  /// so that sync() has little left to do. The data are durable only after sync().
  virtual Status write_past_cache(std::uint64_t offset, Bytes data) {
    CAIRN_TRY(write_at(offset, data));
    start_writing(offset, data.size());
    return {};
  }
  /// A hint that these bytes will be synced later, so the kernel may begin to write them. Length 0:
  /// up to the end.
  virtual void start_writing(std::uint64_t /*offset*/, std::uint64_t /*length*/) {}
  /// For a file that is open for reading only, its size when it was opened.
  virtual Result<std::uint64_t> size() = 0;
};

/// A read-only window on a whole file: a mapping if the store is memory, else reads into a buffer.
/// at() checks the size each time, and fails if the file was truncated. If another process
/// truncates it while the result is in use, that may cause SIGBUS
/// (docs/adr/0011-a-file-cut-under-a-mapping.md).
class View {
 public:
  virtual ~View() = default;
  virtual std::uint64_t size() const = 0;
  /// The bytes [offset, offset + length). Points into the mapping, or into `scratch` (at least
  /// `length` bytes), which then must live as long as the result is used.
  virtual Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) = 0;
};

/// An open directory, for reading many files below it without resolving its path again. Several
/// threads may use it at once.
class Folder {
 public:
  virtual ~Folder() = default;
  /// Like read_file(), for the relative path `name`.
  virtual Result<Blob> read_file(const std::string& name, std::uint64_t limit_bytes) = 0;
};

/// A lock. It ends when this is destroyed, or when the process ends in any way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Syncs a whole file system. sync() returns errors of all files written since this was opened,
/// even if another process has received them already. So open it before the files are written.
class FileSystemSync {
 public:
  virtual ~FileSystemSync() = default;
  virtual Status sync() = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  /// Opens for reading. A directory, link or device is an error.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  /// Opens for reading and writing; must exist.
  virtual Result<std::unique_ptr<File>> open_for_update(const std::string& path) = 0;
  /// Creates, or empties, a regular file; one that has other names too is replaced by a new one.
  virtual Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) = 0;
  /// Like create(), but keeps the content: another process may be writing the same bytes to it now.
  virtual Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                                       std::uint32_t mode) = 0;
  /// Appends to a regular file, and creates it if it is missing. Several processes of one node may
  /// append at the same time. Does not sync.
  virtual Status append(const std::string& path, Bytes data, std::uint32_t mode) = 0;
  /// See View for files that are truncated meanwhile.
  virtual Result<std::unique_ptr<View>> view(const std::string& path) = 0;

  /// not_found if the path does not exist. Of a link it returns the link's own information.
  virtual Result<FileInfo> info(const std::string& path) = 0;
  /// The process of this node that has the file open or mapped for writing. Returns Writer::none
  /// also if that is unknown: on some file systems, and if the file belongs to another user
  /// (docs/adr/0026-an-open-file-is-found-by-a-lease.md).
  virtual Result<Writer> find_writer(const std::string& path) = 0;
  /// Names in a directory without "." and "..", sorted.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;

  virtual Result<std::unique_ptr<Folder>> open_folder(const std::string& path);

  /// Makes one directory; succeeds if the directory exists.
  virtual Status make_folder(const std::string& path, std::uint32_t mode) = 0;
  /// False if the name exists. If several processes make it at once, exactly one gets true.
  virtual Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) = 0;
  /// Replaces `to`, which must be on the same file system.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Makes a hard link to a regular file; `to` must not exist. An io error if the file system has
  /// no hard links.
  virtual Status link(const std::string& from, const std::string& to) = 0;
  /// Succeeds if the file does not exist.
  virtual Status remove_file(const std::string& path) = 0;
  /// Succeeds if the directory does not exist; an io error if it is not empty.
  virtual Status remove_folder(const std::string& path) = 0;
  virtual Status set_attributes(const std::string& path, std::uint32_t mode,
                                const FileTimes& times) = 0;
  /// Makes the names in a directory durable.
  virtual Status sync_folder(const std::string& directory) = 0;

  /// Opens the file system of `directory` for a sync of all files that are written to it from now
  /// on. Null if that is unreliable there: then the caller must sync each file.
  virtual Result<std::unique_ptr<FileSystemSync>> open_file_system(
      const std::string& /*directory*/) {
    return nullptr;
  }

  virtual Result<Space> space(const std::string& path) = 0;
  /// True if the store is main memory: its files survive the process but not the node, so a sync
  /// gains nothing.
  virtual Result<bool> is_memory(const std::string& path) = 0;
  /// The error that this user would get on making files in the directory, as far as permissions and
  /// read-only mounts show without trying.
  virtual Status may_change(const std::string& /*directory*/) { return {}; }
  /// Creates the file if it is missing; fails with busy while another process or object holds the
  /// lock.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  /// The effective user id of this process.
  virtual std::uint32_t effective_user() = 0;
  /// Which start of which node this is: no two are equal. What was written and not synced before
  /// another start may be gone, or be zeros. Empty where that is not known.
  virtual std::string boot() { return ""; }
};

// --- built on the seam, the same for every implementation ---

/// Makes a directory and its missing parents, each with `mode`.
Status make_folders(Files& files, const std::string& path, std::uint32_t mode);

/// Removes a file or directory and everything in it; removes links without following them. Succeeds
/// if it does not exist.
Status remove_all(Files& files, const std::string& path);

/// The same, unless it has the kind `wanted`: so that a file or directory can be made there.
Status remove_unless(Files& files, Kind wanted, const std::string& path);

/// If the file has other names, replaces it by a copy, so that later writes do not change the file
/// under its other names.
Status make_own(Files& files, const std::string& path);

/// The whole content of a file of at most `limit_bytes`; a larger one is an io error.
Result<Blob> read_file(Files& files, const std::string& path, std::uint64_t limit_bytes);
/// The same for an open file; `path` is for the error.
Result<Blob> read_whole(File& file, const std::string& path, std::uint64_t limit_bytes);

/// Writes `content` to `path` so that after a crash either the old file or the complete new one
/// exists: writes a temporary file (PATH.tmp), syncs and renames it, and syncs the directory. With
/// `durable` false it does not sync, for stores that are memory. After an error the old file still
/// exists, unless the sync of the directory failed. Only one writer of a path at a time.
Status write_file_atomically(Files& files, const std::string& path, Bytes content, bool durable);

/// The parent directory of a path ("/a/b" -> "/a"), and its last component ("b"). The parent of "/"
/// is "/", and its name is empty.
std::string folder_of(const std::string& path);
std::string name_of_path(const std::string& path);

/// Works on the text only: makes the path absolute against `base`, and removes ".", "..", double
/// and trailing slashes. The parent of "/" is "/".
std::string normalise(const std::string& path, const std::string& base);

/// True if `path` lies below `directory`; then sets `relative`, if not null, to the path below it.
/// A directory does not lie below itself. Both must be normalised.
bool lies_below(const std::string& path, const std::string& directory, std::string* relative);

}  // namespace cairn
