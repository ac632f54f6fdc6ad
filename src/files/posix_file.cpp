#include "files/posix_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "files/turn.hpp"

namespace cairn {
namespace {

Result<std::uint64_t> size_of(const Descriptor& descriptor, const std::string& path) {
  CAIRN_ASSIGN(const struct stat status, stat_of(descriptor, "inspect", path));
  return static_cast<std::uint64_t>(status.st_size);
}

tl::unexpected<Error> too_short(const std::string& path, std::uint64_t actual, std::uint64_t offset,
                                std::uint64_t length) {
  return fail(Code::io, "cannot read {}: it has {} bytes where {} were expected from byte {} on",
              path, actual, length, offset);
}

Status read_all(const Descriptor& descriptor, const std::string& path, std::uint64_t offset,
                MutableBytes buffer) {
  const auto read_some = [&](MutableBytes part, std::uint64_t at) {
    return ::pread(descriptor.number(), part.data(), part.size(), static_cast<off_t>(at));
  };
  CAIRN_ASSIGN(const std::size_t done, read_on(path, offset, buffer, read_some));
  if (done == buffer.size()) return {};
  CAIRN_ASSIGN(const std::uint64_t actual, size_of(descriptor, path));
  return too_short(path, actual, offset, buffer.size());
}

Status write_all(const Descriptor& descriptor, const std::string& path, std::uint64_t offset,
                 Bytes data) {
  return write_on(path, offset, data, [&](Bytes part, std::uint64_t at) {
    return ::pwrite(descriptor.number(), part.data(), part.size(), static_cast<off_t>(at));
  });
}

/// Linux lets one thread at a time write to a file, and the others spin meanwhile: two threads that
/// share a file are a quarter slower than one, unless they take turns. A leaf in the lock order:
/// its holder only makes the system call. Files may share turns by chance. The turns are never
/// destroyed: a thread that hangs in a file system may still exist when the process ends.
Turns& turns_of(const struct stat& status) {
  static auto& all = *new std::array<Turns, 256>;
  return all[status.st_ino % all.size()];
}

/// After this time a write goes on without its turn: a write that hangs in its file system must not
/// block writes to other files that share the turns.
constexpr std::chrono::seconds longest_wait_for_turn(1);

class PosixFile final : public File {
 public:
  PosixFile(OpenFile file, std::string path, std::optional<std::uint64_t> size)
      : turns_(turns_of(file.status)),
        descriptor_(std::move(file.descriptor)),
        path_(std::move(path)),
        size_(size) {}

  Status read_at(std::uint64_t offset, MutableBytes buffer) override {
    return read_all(descriptor_, path_, offset, buffer);
  }

  Status write_at(std::uint64_t offset, Bytes data) override {
    const Turn turn(turns_, longest_wait_for_turn);
    return write_all(descriptor_, path_, offset, data);
  }

  /// Whole pages bypass the cache; the bytes before and after them do not. Another process may
  /// write those beside them through the cache, and in one page the two ways would overwrite each
  /// other.
  Status write_past_cache(std::uint64_t offset, Bytes data) override {
    const std::size_t page = page_bytes();
    const std::size_t head = std::min<std::size_t>((page - offset % page) % page, data.size());
    const std::size_t pages = (data.size() - head) / page * page;
    if (pages == 0 || !is_aligned(data.data() + head) || !open_past_cache())
      return File::write_past_cache(offset, data);
    CAIRN_TRY(File::write_past_cache(offset, data.first(head)));
    CAIRN_TRY(write_pages(offset + head, data.subspan(head, pages)));
    return File::write_past_cache(offset + head + pages, data.subspan(head + pages));
  }

  Status resize(std::uint64_t bytes) override {
    const auto resized =
        uninterrupted([&] { return ::ftruncate(descriptor_.number(), static_cast<off_t>(bytes)); });
    if (resized != 0) return tl::unexpected<Error>(errno_error(errno, "resize", path_));
    return {};
  }

  Status set_attributes(std::uint32_t mode, const FileTimes& times) override {
    constexpr std::string_view action = "set the attributes of";
    const std::array<timespec, 2> both = timespecs_of(times);
    if (uninterrupted([&] { return ::fchmod(descriptor_.number(), mode); }) != 0 ||
        uninterrupted([&] { return ::futimens(descriptor_.number(), both.data()); }) != 0)
      return tl::unexpected<Error>(errno_error(errno, action, path_));
    return {};
  }

  // fdatasync makes the bytes durable, with the size and block map needed to read them back, and
  // saves the journal a commit for the mode and the times.
  Status sync() override { return synced(::fdatasync); }
  Status sync_all() override { return synced(::fsync); }

  void start_writing(std::uint64_t offset, std::uint64_t length) override {
    (void)::sync_file_range(descriptor_.number(), static_cast<off_t>(offset),
                            static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE);
  }

  Result<std::uint64_t> size() override {
    return size_ ? Result<std::uint64_t>(*size_) : size_of(descriptor_, path_);
  }

 private:
  static constexpr std::size_t alignment = 4096;  // of direct writes, in memory and in the file

  static bool is_aligned(const std::byte* place) {
    return reinterpret_cast<std::uintptr_t>(place) % alignment == 0;
  }

  /// Some kernels have pages of 64 KiB.
  static std::size_t page_bytes() {
    return std::max<std::size_t>(alignment, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  }

  /// False if the file system does not support O_DIRECT. In memory it would gain nothing. Several
  /// threads may write one file.
  bool open_past_cache() {
    std::call_once(tried_past_cache_, [this] {
      const auto type = file_system_of(descriptor_, path_);
      if (!type || is_memory_file_system(*type)) return;
      const std::string same_file = fmt::format("/proc/self/fd/{}", descriptor_.number());
      const int number = ::open(same_file.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
      if (number >= 0) past_cache_.emplace(number);
    });
    return past_cache_.has_value() && !is_refused_past_cache_;
  }

  /// A file system may open the file with O_DIRECT, and then fail such a write, or stop in the
  /// middle of a page. The rest is written through the cache, which also returns the error if that
  /// fails.
  Status write_pages(std::uint64_t offset, Bytes data) {
    std::size_t done = 0;
    {
      const Turn turn(turns_, longest_wait_for_turn);
      while (done < data.size() && done % alignment == 0) {
        const auto put = uninterrupted([&] {
          return ::pwrite(past_cache_->number(), data.data() + done,
                          std::min(data.size() - done, longest_transfer_bytes),
                          static_cast<off_t>(offset + done));
        });
        if (put <= 0) break;
        done += static_cast<std::size_t>(put);
      }
    }
    if (done == data.size()) return {};
    is_refused_past_cache_ = true;  // it stays open, as other threads may be writing to it
    return File::write_past_cache(offset + done, data.subspan(done));
  }

  Status synced(int (*call)(int)) const {
    if (uninterrupted([&] { return call(descriptor_.number()); }) != 0)
      return tl::unexpected<Error>(errno_error(errno, "sync", path_));
    return {};
  }

  Turns& turns_;
  Descriptor descriptor_;
  std::once_flag tried_past_cache_;
  std::optional<Descriptor> past_cache_;  ///< the same file
  std::atomic<bool> is_refused_past_cache_ = false;
  std::string path_;
  const std::optional<std::uint64_t> size_;  ///< if it is open for reading only
};

/// A mapping; with `mapping` null it reads into the caller's scratch. Keeps no descriptor open: a
/// rank may have more files in a dataset than a process may open.
class PosixView final : public View {
 public:
  PosixView(std::string path, std::uint64_t size, std::byte* mapping)
      : path_(std::move(path)), size_(size), mapping_(mapping) {}
  ~PosixView() override {
    if (mapping_ != nullptr) ::munmap(mapping_, size_);
  }
  PosixView(const PosixView&) = delete;
  PosixView& operator=(const PosixView&) = delete;

  std::uint64_t size() const override { return size_; }

  Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) override {
    if (length > size_ || offset > size_ - length) return too_short(path_, size_, offset, length);
    if (mapping_ != nullptr) return mapped(offset, length);
    if (scratch.size() < length)
      return fail(Code::bad_argument, "cannot read {} bytes of {} into a buffer of {}", length,
                  path_, scratch.size());
    CAIRN_ASSIGN(const OpenFile file, open_regular(path_, O_RDONLY, "read"));
    CAIRN_TRY(read_all(file.descriptor, path_, offset, scratch.first(length)));
    return scratch.first(length);
  }

 private:
  // Access to a mapping behind the end of its file causes SIGBUS, which would end the application.
  // One lstat per block, which is cheap compared with the block's checksum, turns a truncated file
  // into an error. A truncation while the block is being read remains possible.
  Result<Bytes> mapped(std::uint64_t offset, std::size_t length) const {
    struct stat status {};
    if (look_at(path_, status) != 0) return tl::unexpected<Error>(path_error(errno, "view", path_));
    const auto actual = static_cast<std::uint64_t>(status.st_size);
    if (actual < offset + length) return too_short(path_, actual, offset, length);
    return Bytes(mapping_ + offset, length);
  }

  std::string path_;
  std::uint64_t size_;
  std::byte* mapping_;
};

/// Some bytes of the file have no block yet. The number of blocks alone does not show that, as
/// blocks may lie behind the end.
bool has_holes(const Descriptor& descriptor, const struct stat& status) {
  constexpr std::uint64_t stat_block_bytes = 512;
  const off_t first = ::lseek(descriptor.number(), 0, SEEK_HOLE);
  return (first >= 0 && first < status.st_size) ||
         static_cast<std::uint64_t>(status.st_blocks) * stat_block_bytes <
             static_cast<std::uint64_t>(status.st_size);
}

/// True if reading a mapping of the whole file neither waits for a device nor allocates. Reading a
/// hole through a mapping takes a page of tmpfs, and causes SIGBUS if none is left. (ramfs counts
/// no blocks and has no limit.)
bool worth_mapping(const Descriptor& descriptor, std::uint64_t file_system,
                   const struct stat& status) {
  if (status.st_size == 0 || !is_memory_file_system(file_system)) return false;
  return file_system == RAMFS_MAGIC || !has_holes(descriptor, status);
}

timespec timespec_of(std::int64_t ns) {
  std::int64_t seconds = ns / ns_per_s;
  if (ns % ns_per_s < 0) --seconds;  // nanoseconds are never negative, also before 1970
  timespec time = {};
  time.tv_sec = seconds;
  time.tv_nsec = ns - seconds * ns_per_s;
  return time;
}

}  // namespace

std::array<timespec, 2> timespecs_of(const FileTimes& times) {
  return {timespec_of(times.access_ns), timespec_of(times.modify_ns)};
}

std::unique_ptr<File> make_posix_file(OpenFile file, std::string path) {
  return std::make_unique<PosixFile>(std::move(file), std::move(path), std::nullopt);
}

std::unique_ptr<File> make_posix_reader(OpenFile file, std::string path) {
  const std::uint64_t size = file.size();
  return std::make_unique<PosixFile>(std::move(file), std::move(path), size);
}

Result<std::unique_ptr<View>> make_posix_view(const OpenFile& file, std::string path) {
  CAIRN_ASSIGN(const std::uint64_t file_system, file_system_of(file.descriptor, path));
  const std::uint64_t size = file.size();
  void* mapping = MAP_FAILED;
  if (worth_mapping(file.descriptor, file_system, file.status))
    mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor.number(), 0);
  // Without enough address space for a mapping, reading still works.
  auto* start = mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
  return std::make_unique<PosixView>(std::move(path), size, start);
}

bool is_memory_file_system(std::uint64_t type) {
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC;
}

bool is_local_disk_file_system(std::uint64_t type) {
  constexpr std::uint64_t xfs = 0x58465342;  // not in the headers of older kernels
  return type == EXT4_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC || type == xfs;
}

}  // namespace cairn
