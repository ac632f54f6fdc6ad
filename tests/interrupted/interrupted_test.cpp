// System calls that signals interrupt, and reads and writes that do less than they were asked for:
// nobody above the files may notice. This program defines the C library's calls itself; the loader
// gives them to Cairn.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "files/page_cache.hpp"
#include "rbio/test_series.hpp"
#include "support/job_bed.hpp"

namespace {

std::atomic<bool> disturbing{false};
std::atomic<unsigned> transfers{0};
std::atomic<unsigned> cut_short{0};
std::atomic<unsigned> cut_direct{0};

/// All that a signal can interrupt and that Cairn makes of files: on a local file system fewer, on
/// one over the network or in user space any but close, which is never made again.
enum Call {
  reading,
  writing,
  opening,
  resizing,
  syncing,
  syncing_folder,
  locking,
  asking_type,
  asking_space,
  inspecting,
  inspecting_open,
  listing,
  making_folder,
  renaming,
  removing,
  removing_folder,
  changing_mode,
  changing_times,
  changing_mode_open,
  changing_times_open,
  calls
};
std::array<std::atomic<unsigned>, calls> made{};
std::array<std::atomic<unsigned>, calls> interrupted{};

/// Of each kind the first call and one in three is interrupted, now and then several times in a
/// row.
bool interrupt(Call call) {
  if (!disturbing || (made[call]++ * 2654435761U >> 16) % 3 != 0) return false;
  ++interrupted[call];
  errno = EINTR;
  return true;
}

/// One call in two does only some of its work.
std::size_t length_of(std::size_t wanted) {
  if (!disturbing || wanted < 2 || (transfers++ * 2654435761U >> 16) % 2 != 0) return wanted;
  ++cut_short;
  return 1 + wanted / 3;
}

/// A direct write stops only where a block of the device ends: with a page, or within one.
std::size_t direct_length_of(std::size_t wanted) {
  const std::size_t block = transfers % 4 < 2 ? 4096 : 512;
  const std::size_t length = length_of(wanted) / block * block;
  if (length == 0) return wanted;
  if (length < wanted) ++cut_direct;
  return length;
}

}  // namespace

#define IN_PLACE extern "C" __attribute__((visibility("default")))

IN_PLACE ssize_t pread(int file, void* buffer, size_t bytes, off_t offset) {
  if (interrupt(reading)) return -1;
  return ::syscall(SYS_pread64, file, buffer, length_of(bytes), offset);
}

IN_PLACE ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (interrupt(writing)) return -1;
  const bool is_direct = (::fcntl(file, F_GETFL) & O_DIRECT) != 0;
  const size_t length = is_direct ? direct_length_of(bytes) : length_of(bytes);
  return ::syscall(SYS_pwrite64, file, data, length, offset);
}

IN_PLACE int openat(int folder, const char* path, int flags, ...) {
  if (interrupt(opening)) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

IN_PLACE int ftruncate(int file, off_t bytes) noexcept {
  return interrupt(resizing) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, file, bytes));
}

IN_PLACE int fdatasync(int file) {
  return interrupt(syncing) ? -1 : static_cast<int>(::syscall(SYS_fdatasync, file));
}

IN_PLACE int fsync(int file) {
  return interrupt(syncing_folder) ? -1 : static_cast<int>(::syscall(SYS_fsync, file));
}

IN_PLACE int flock(int file, int operation) noexcept {
  return interrupt(locking) ? -1 : static_cast<int>(::syscall(SYS_flock, file, operation));
}

IN_PLACE int fstatfs(int file, struct statfs* status) noexcept {
  return interrupt(asking_type) ? -1 : static_cast<int>(::syscall(SYS_fstatfs, file, status));
}

IN_PLACE int fstatvfs(int file, struct statvfs* status) noexcept {
  if (interrupt(asking_space)) return -1;
  struct statfs known = {};
  if (::syscall(SYS_fstatfs, file, &known) != 0) return -1;
  *status = {};
  status->f_frsize = static_cast<unsigned long>(known.f_frsize);
  status->f_blocks = known.f_blocks;
  status->f_bavail = known.f_bavail;
  return 0;
}

IN_PLACE int lstat(const char* path, struct stat* status) noexcept {
  if (interrupt(inspecting)) return -1;
  return ::fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

IN_PLACE int fstat(int file, struct stat* status) noexcept {
  return interrupt(inspecting_open) ? -1 : ::fstatat(file, "", status, AT_EMPTY_PATH);
}

IN_PLACE dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  return interrupt(listing) ? nullptr : real(folder);
}

IN_PLACE int mkdir(const char* path, mode_t mode) noexcept {
  return interrupt(making_folder) ? -1 : ::mkdirat(AT_FDCWD, path, mode);
}

IN_PLACE int rename(const char* from, const char* to) noexcept {
  return interrupt(renaming) ? -1 : ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

IN_PLACE int unlink(const char* path) noexcept {
  return interrupt(removing) ? -1 : ::unlinkat(AT_FDCWD, path, 0);
}

IN_PLACE int rmdir(const char* path) noexcept {
  return interrupt(removing_folder) ? -1 : ::unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

IN_PLACE int chmod(const char* path, mode_t mode) noexcept {
  return interrupt(changing_mode) ? -1 : ::fchmodat(AT_FDCWD, path, mode, 0);
}

IN_PLACE int utimensat(int folder, const char* path, const timespec* times, int flags) noexcept {
  if (interrupt(changing_times)) return -1;
  return static_cast<int>(::syscall(SYS_utimensat, folder, path, times, flags));
}

IN_PLACE int fchmod(int file, mode_t mode) noexcept {
  return interrupt(changing_mode_open) ? -1 : static_cast<int>(::syscall(SYS_fchmod, file, mode));
}

IN_PLACE int futimens(int file, const timespec* times) noexcept {
  if (interrupt(changing_times_open)) return -1;
  return static_cast<int>(::syscall(SYS_utimensat, file, nullptr, times, 0));
}

namespace cairn {
namespace {

/// The ranks are disturbed, not the test that handles their files.
template <class Action>
void disturb(Action action) {
  disturbing = true;
  action();
  disturbing = false;
}

class Interrupted : public testing::TestWithParam<Scheme> {};

TEST_P(Interrupted, ACheckpointIsWrittenLostInPartAndRestoredAsEver) {
  for (const std::string& base : {memory_base(), std::string()}) {
    for (auto& count : made) count = 0;
    for (auto& count : interrupted) count = 0;
    cut_short = 0;
    JobBed bed(base);
    bed.settings.checkpoints[0].scheme = GetParam();
    bed.settings.prefix = bed.node("pfs");
    std::filesystem::create_directories(bed.settings.prefix);
    bed.settings.flush = true;
    bed.settings.flush_interval = 1;
    disturb([&] { bed.write(four_nodes(), {1, 2}); });
    const bool protects = GetParam() != Scheme::single;
    if (protects) bed.lose("n2");
    disturb([&] { EXPECT_EQ(bed.restart(four_nodes()), 2); });
    const Nodes moved = {"n3", "n3", "n2", "n2", "n1", "n1", "n0", "n0"};
    disturb([&] { EXPECT_EQ(bed.restart(moved), 2); });
    unsigned all = 0;
    for (const auto& count : interrupted) all += count;
    EXPECT_GT(all, 100U) << "this test has seen to no interruptions";
    const bool durable = base.empty();
    for (std::size_t call = 0; call < interrupted.size(); ++call) {
      const bool made = call == resizing                            ? protects
                        : call == syncing || call == syncing_folder ? durable
                                                                    : true;
      EXPECT_TRUE(!made || interrupted[call] > 0) << "nobody has interrupted call " << call;
    }
    EXPECT_GT(cut_short, 30U);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Interrupted,
                         testing::Values(Scheme::single, Scheme::partner, Scheme::xor_,
                                         Scheme::rs));

TEST(InterruptedFile, AWritePastTheCacheIsWholeWhereverItStops) {
  constexpr std::size_t page = 4096;
  alignas(page) static std::array<std::byte, 50 * page> memory;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i % 251);
  const TemporaryFolder folder;
  const auto files = make_posix_files();
  cut_short = cut_direct = 0;
  for (const std::size_t offset : {std::size_t{0}, page - 100}) {
    for (const std::size_t bytes :
         {page, 7 * page, 13 * page, 20 * page, 31 * page, 49 * page + 77}) {
      const auto file = files->create(folder / "f", 0600).value();
      const Bytes data = Bytes(memory).subspan(offset % page, bytes - offset % page);
      disturb([&] { EXPECT_TRUE(file->write_past_cache(offset, data)); });
      Blob read(data.size());
      ASSERT_TRUE(file->read_at(offset, read));
      EXPECT_TRUE(std::equal(read.begin(), read.end(), data.begin())) << offset << " " << bytes;
      EXPECT_EQ(file->size().value(), offset + data.size());
    }
  }
  EXPECT_GT(cut_short, 3U);
  EXPECT_TRUE(cut_direct > 3U || !takes_direct_writes(folder.path()));
}

class InterruptedRbio : public testing::TestWithParam<rbio::Mode> {};

TEST_P(InterruptedRbio, AStepIsWrittenAndRestoredAsEver) {
  for (const std::string& base : {rbio::fast_folder(), std::string()}) {
    const TemporaryFolder folder(base);
    const auto files = make_posix_files();
    rbio::Shape shape;
    shape.options.mode = GetParam();
    shape.options.files = 1;
    cut_short = 0;
    disturb([&] {
      rbio::write_steps(*files, folder / "series", shape, {1, 2});
      rbio::expect_restored(*files, folder / "series", shape, 2);
    });
    EXPECT_GT(cut_short, 10U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, InterruptedRbio, testing::ValuesIn(rbio::tested_modes),
                         rbio::name_of_mode);

}  // namespace
}  // namespace cairn
