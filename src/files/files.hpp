// The file-system seam: everything Cairn does to files goes through a Files.
//
// POSIX implements it in production; wrappers stop it at a chosen operation or make it fail. All
// paths are absolute. No call follows a symbolic link in the last component, and none changes a
// file it did not name. Errors name the action and the path (errno_error). Modes are permission
// bits, less the process's umask where something is created.
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

/// Equal for two names of one file or folder that is there, as seen by one node.
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
  std::uint64_t names = 1;  ///< of the file: links to it
};

/// The process of this node that has a file open or mapped for writing.
enum class Writer {
  none,             ///< also where that cannot be known
  this_process,     ///< whatever other processes do
  another_process,  ///< such as a child that has inherited the open file
};

struct Space {
  std::uint64_t free_bytes = 0;  ///< what an unprivileged user may still write
  std::uint64_t total_bytes = 0;
  std::uint64_t file_system = 0;  ///< equal for two paths of one node that share this space
};

/// An open file. Closing happens on destruction; errors of delayed writing show up in sync().
class File {
 public:
  virtual ~File() = default;
  /// Fills all of `buffer`; a file that ends before that is an io error naming both sizes.
  virtual Status read_at(std::uint64_t offset, MutableBytes buffer) = 0;
  virtual Status write_at(std::uint64_t offset, Bytes data) = 0;
  virtual Status resize(std::uint64_t bytes) = 0;
  /// Makes the content and the size durable.
  virtual Status sync() = 0;
  /// Those, and the mode and the times.
  virtual Status sync_all() = 0;
  /// As Files::set_attributes, of a file that is open in any way, and the way to it not walked
  /// again.
  virtual Status set_attributes(std::uint32_t mode, const FileTimes& times) = 0;
  /// As write_at, of much data that is not read again soon. Where the file system and the places in
  /// memory and file allow it, the device takes the bytes from `data` itself, which must not change
  /// meanwhile: that spares the processor a copy, and the memory its pages. Else the kernel begins
  /// to write them at once, so that little is left to the sync. Durable only after sync().
  virtual Status write_past_cache(std::uint64_t offset, Bytes data) {
    CAIRN_TRY(write_at(offset, data));
    start_writing(offset, data.size());
    return {};
  }
  /// A hint: these bytes will be synced later, and may be on their way already. Length 0: all from
  /// there on.
  virtual void start_writing(std::uint64_t /*offset*/, std::uint64_t /*length*/) {}
  /// Of a file that is open for reading only, what it was when that was opened.
  virtual Result<std::uint64_t> size() = 0;
};

/// A read-only window on a whole file: a mapping where the store is memory, else reads into a
/// buffer. A file that has been cut short since is an error of at(), which looks at its size each
/// time; one that another process cuts while the result is in use may be SIGBUS
/// (docs/adr/0011-a-file-cut-under-a-mapping.md).
class View {
 public:
  virtual ~View() = default;
  virtual std::uint64_t size() const = 0;
  /// The bytes [offset, offset + length). Points into the mapping, or into `scratch` (at least
  /// `length` bytes), which then must live as long as the result is used.
  virtual Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) = 0;
};

/// A folder that was found once, for reading many files below it. Several threads may do so at a
/// time.
class Folder {
 public:
  virtual ~Folder() = default;
  /// As read_file() of the file that is called `name` from there.
  virtual Result<Blob> read_file(const std::string& name, std::uint64_t limit_bytes) = 0;
};

/// Held until destroyed, or until the process ends however it ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// A file system, open since before the files were written of which sync() is to tell: it tells of
/// what went wrong with any file since then, also where somebody else has been told of it first.
class FileSystemSync {
 public:
  virtual ~FileSystemSync() = default;
  virtual Status sync() = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  /// Opens for reading. A folder, link or device is an error.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  /// Opens for reading and writing; must exist.
  virtual Result<std::unique_ptr<File>> open_for_update(const std::string& path) = 0;
  /// Creates, or empties, a regular file; one that has other names too is replaced by a new one.
  virtual Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) = 0;
  /// As create(), but keeps what the file holds: another process may be writing the same bytes to
  /// it now.
  virtual Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                                       std::uint32_t mode) = 0;
  /// Adds to the end of a regular file, which is created if need be. Several processes of one node
  /// may do so at the same time; nothing is synced.
  virtual Status append(const std::string& path, Bytes data, std::uint32_t mode) = 0;
  /// See View for what is promised of a file that is cut meanwhile.
  virtual Result<std::unique_ptr<View>> view(const std::string& path) = 0;

  /// not_found when there is nothing of that name; a link is told as a link.
  virtual Result<FileInfo> info(const std::string& path) = 0;
  /// Which process of this node has the file open or mapped for writing. None also where that
  /// cannot be known: on some file systems, and if the file belongs to another user
  /// (docs/adr/0026-an-open-file-is-found-by-a-lease.md).
  virtual Result<Writer> find_writer(const std::string& path) = 0;
  /// Names in a folder without "." and "..", sorted.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;

  virtual Result<std::unique_ptr<Folder>> open_folder(const std::string& path);

  /// Makes one folder; success if it is there already as a folder.
  virtual Status make_folder(const std::string& path, std::uint32_t mode) = 0;
  /// False where something of that name is there already: of all who make it, one gets true.
  virtual Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) = 0;
  /// Replaces what is at `to`; both in one folder tree of one file system.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// A second name for a regular file, on the same file system; nothing may be at `to`. An io error
  /// where the file system has no such thing.
  virtual Status link(const std::string& from, const std::string& to) = 0;
  /// Success if it is not there.
  virtual Status remove_file(const std::string& path) = 0;
  /// Success if it is not there, not_empty is an io error.
  virtual Status remove_folder(const std::string& path) = 0;
  virtual Status set_attributes(const std::string& path, std::uint32_t mode,
                                const FileTimes& times) = 0;
  /// Makes the names in a folder durable.
  virtual Status sync_folder(const std::string& folder) = 0;

  /// What makes all files durable that are written to the file system of `folder` from now on, and
  /// tells if some could not be. Null where that is not promised: each file is to be synced then.
  virtual Result<std::unique_ptr<FileSystemSync>> open_file_system(const std::string& /*folder*/) {
    return nullptr;
  }

  virtual Result<Space> space(const std::string& path) = 0;
  /// True where the store is main memory: what survives the process but not the node anyway, so
  /// syncing gains nothing.
  virtual Result<bool> is_memory(const std::string& path) = 0;
  /// The error that would keep this user from making files in the folder, as far as that is known
  /// without trying: rights, and a file system that is mounted to be read only.
  virtual Status may_change(const std::string& /*folder*/) { return {}; }
  /// Creates the file if need be; fails with busy while another holder lives.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  /// The user this process acts for.
  virtual std::uint32_t effective_user() = 0;
  /// Which start of which node this is: no two are equal. What was written and not synced before
  /// another start may be gone, or be zeros. Empty where that is not known.
  virtual std::string boot() { return ""; }
};

// --- built on the seam, the same for every implementation ---

/// Makes a folder and the missing ones above it, each with `mode`.
Status make_folders(Files& files, const std::string& path, std::uint32_t mode);

/// Removes a file or folder and everything in it; links are removed, not followed. Success if it is
/// not there.
Status remove_all(Files& files, const std::string& path);

/// The same, unless what is there is of this kind: makes way for a file or folder.
Status remove_unless(Files& files, Kind wanted, const std::string& path);

/// Makes a file that has other names too one of its own, with the same content: what is written to
/// it then is not written to those.
Status make_own(Files& files, const std::string& path);

/// The whole content of a file of at most `limit_bytes`; a larger one is an io error.
Result<Blob> read_file(Files& files, const std::string& path, std::uint64_t limit_bytes);
/// The same of one that is open; `path` is for the error.
Result<Blob> read_whole(File& file, const std::string& path, std::uint64_t limit_bytes);

/// Writes `content` to `path` so that after a crash there is either the old file or all of the new
/// one: temporary name (PATH.tmp), sync, rename, sync of the folder. `durable` false leaves the
/// syncs out, for stores that are memory. On an error the old file is still there, unless it was
/// the sync of the folder that failed. One writer of a path at a time.
Status write_file_atomically(Files& files, const std::string& path, Bytes content, bool durable);

/// The folder that a path is in ("/a/b" -> "/a"), and its last component ("b"). "/" is in itself
/// and has no name.
std::string folder_of(const std::string& path);
std::string name_of_path(const std::string& path);

/// Lexically: makes absolute against `base`, removes ".", "..", double and trailing slashes. What
/// is above "/" is "/".
std::string normalise(const std::string& path, const std::string& base);

/// `path` relative to `folder` if it lies below it, else nothing; a folder does not lie below
/// itself. Both normalised. `relative` may be null.
bool lies_below(const std::string& path, const std::string& folder, std::string* relative);

}  // namespace cairn
