// Directories: open, list, close, sync.
#include <dirent.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "crfs/operations.hpp"

namespace cairn {
namespace {

/// An open directory and its position in the listing. The kernel lets one thread at a time list it.
class OpenDirectory {
 public:
  explicit OpenDirectory(DIR* entries) : entries_(entries) {}
  ~OpenDirectory() { ::closedir(entries_); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  /// From now on the directory also has these files, and none of the backing directory with their
  /// names. A position is then the number of an entry.
  void add(FileSystem& files, const Inode& directory) {
    redirected_from_ = [&files, &directory] {
      std::vector<dirent> entries;
      for (const auto& file : files.redirection->files_in(files.path_of(directory)))
        entries.push_back(
            entry_of(files.inodes.shown_number(file.device, file.number), DT_REG, file.name));
      return entries;
    };
  }
  void go_to(off_t offset) {
    if (redirected_from_) {
      if (offset == 0) gather();
      offset_ = offset;
      return;
    }
    if (offset == offset_) return;
    ::seekdir(entries_, offset);
    offset_ = offset;
    next_ = nullptr;
  }
  /// The next entry, until take() is called; null at the end, or after an error (errno).
  const dirent* next() {
    errno = 0;
    if (redirected_from_) {
      const auto index = static_cast<std::size_t>(offset_);
      return index < gathered_.size() ? &gathered_[index] : nullptr;
    }
    if (next_ == nullptr) next_ = ::readdir(entries_);
    return next_;
  }
  void take() {
    offset_ = redirected_from_ ? offset_ + 1 : next_->d_off;
    next_ = nullptr;
  }
  int descriptor() const { return ::dirfd(entries_); }

 private:
  static dirent entry_of(ino_t number, unsigned char type, const std::string& name) {
    dirent entry = {};
    entry.d_ino = number;
    entry.d_type = type;
    name.copy(entry.d_name, sizeof entry.d_name - 1);
    return entry;
  }
  /// Reads the whole directory again.
  void gather() {
    gathered_ = redirected_from_();
    std::unordered_set<std::string> hidden;
    for (const dirent& entry : gathered_) hidden.insert(entry.d_name);
    ::rewinddir(entries_);
    while (const dirent* const entry = ::readdir(entries_))
      if (!hidden.contains(entry->d_name))
        gathered_.push_back(entry_of(entry->d_ino, entry->d_type, entry->d_name));
    for (std::size_t i = 0; i < gathered_.size(); ++i)
      gathered_[i].d_off = static_cast<off_t>(i + 1);
  }

  DIR* entries_;
  const dirent* next_ = nullptr;
  off_t offset_ = 0;
  std::function<std::vector<dirent>()> redirected_from_;  ///< none if no file is redirected
  std::vector<dirent> gathered_;
};

OpenDirectory& open_directory_of(const fuse_file_info* info) {
  return *reinterpret_cast<OpenDirectory*>(info->fh);
}

int open_directory(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Descriptor opened(uninterrupted([&] {
    return ::openat(files.inode(number).path.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  if (opened.number() < 0) return errno;
  DIR* entries = ::fdopendir(opened.number());
  if (entries == nullptr) return errno;
  (void)opened.release();  // closed by closedir()
  auto directory = std::make_unique<OpenDirectory>(entries);
  if (files.redirection != nullptr) directory->add(files, files.inode(number));
  info->fh = reinterpret_cast<std::uint64_t>(directory.get());
  if (fuse_reply_open(request, info) == 0) (void)directory.release();
  return 0;
}

bool is_dot(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

/// Fills a buffer with entries in the format of libfuse.
class Listing {
 public:
  Listing(FileSystem& files, fuse_req_t request, Inode& inode, std::size_t size)
      : files_(files), request_(request), inode_(inode), buffer_(size) {}

  /// False where it is full.
  bool add(const dirent& entry) {
    const struct stat status = attributes_of(entry);
    return took(fuse_add_direntry(request_, buffer_.data() + used_, buffer_.size() - used_,
                                  entry.d_name, &status, entry.d_off));
  }
  bool add_with_attributes(const dirent& entry) {
    fuse_entry_param found = {};
    found.attr = attributes_of(entry);
    if (!is_dot(entry.d_name) && files_.look_up(inode_, entry.d_name, found) != 0) {
      found = {};  // gone, or not accessible: the kernel looks it up when a program asks
      found.attr = attributes_of(entry);
    }
    const bool fits =
        took(fuse_add_direntry_plus(request_, buffer_.data() + used_, buffer_.size() - used_,
                                    entry.d_name, &found, entry.d_off));
    if (!fits && found.ino != 0) files_.inodes.forget(files_.inode(found.ino), 1);
    return fits;
  }
  bool is_empty() const { return used_ == 0; }
  int answer() const { return fuse_reply_buf(request_, buffer_.data(), used_); }

 private:
  /// The attributes that the directory itself contains.
  struct stat attributes_of(const dirent& entry) const {
    struct stat status = {};
    status.st_ino = files_.inodes.shown_number(inode_.device, entry.d_ino);
    status.st_mode = static_cast<mode_t>(DTTOIF(entry.d_type));
    return status;
  }
  bool took(std::size_t bytes) {
    if (bytes > buffer_.size() - used_) return false;
    used_ += bytes;
    return true;
  }

  FileSystem& files_;
  fuse_req_t request_;
  Inode& inode_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
};

template <bool with_attributes>
int list(FileSystem& files, fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
         fuse_file_info* info) {
  OpenDirectory& directory = open_directory_of(info);
  Listing listing(files, request, files.inode(number), size);
  directory.go_to(offset);
  int error = 0;
  for (;;) {
    const dirent* entry = directory.next();
    if (entry == nullptr) {
      error = errno;
      break;
    }
    if (!(with_attributes ? listing.add_with_attributes(*entry) : listing.add(*entry))) break;
    directory.take();
  }
  if (error != 0 && listing.is_empty()) return error;
  listing.answer();
  return 0;
}

int close_directory(FileSystem&, fuse_req_t, fuse_ino_t, fuse_file_info* info) {
  delete &open_directory_of(info);
  return 0;
}

/// A sync of the topmost directory syncs all files, also closed ones: Linux informs a FUSE file
/// system neither of sync() nor of its unmount.
int sync_directory(FileSystem& files, fuse_req_t, fuse_ino_t number, int data_only,
                   fuse_file_info* info) {
  if (number == FUSE_ROOT_ID) files.aggregator.settle_all();
  const int descriptor = open_directory_of(info).descriptor();
  const int error = errno_of(data_only != 0 ? ::fdatasync(descriptor) : ::fsync(descriptor));
  return error == 0 && number == FUSE_ROOT_ID ? errno_of(::syncfs(descriptor)) : error;
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = answering<open_directory>;
  operations.readdir = answering<list<false>>;
  operations.readdirplus = answering<list<true>>;
  operations.releasedir = returning<close_directory>;
  operations.fsyncdir = returning<sync_directory>;
}

}  // namespace cairn
