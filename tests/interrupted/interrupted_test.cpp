// System calls that signals interrupt, and reads and writes that do less than they were asked for:
// nobody above the files may notice. This program defines the C library's calls itself; the loader
// gives them to Cairn.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "session/session_harness.hpp"

namespace {

std::atomic<bool> disturbing{false};
std::atomic<unsigned> calls{0};
std::atomic<unsigned> interrupted{0};
std::atomic<unsigned> cut_short{0};

/// One call in three is interrupted, now and then several times in a row.
bool interrupt() {
  if (!disturbing || (calls++ * 2654435761U >> 16) % 3 != 0) return false;
  ++interrupted;
  errno = EINTR;
  return true;
}

/// One call in two does only some of its work.
std::size_t length_of(std::size_t wanted) {
  if (!disturbing || wanted < 2 || (calls++ * 2654435761U >> 16) % 2 != 0) return wanted;
  ++cut_short;
  return 1 + wanted / 3;
}

}  // namespace

#define IN_PLACE extern "C" __attribute__((visibility("default")))

IN_PLACE ssize_t pread(int file, void* buffer, size_t bytes, off_t offset) {
  if (interrupt()) return -1;
  return ::syscall(SYS_pread64, file, buffer, length_of(bytes), offset);
}

IN_PLACE ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (interrupt()) return -1;
  return ::syscall(SYS_pwrite64, file, data, length_of(bytes), offset);
}

IN_PLACE int open(const char* path, int flags, ...) {
  if (interrupt()) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

IN_PLACE int ftruncate(int file, off_t bytes) noexcept {
  return interrupt() ? -1 : static_cast<int>(::syscall(SYS_ftruncate, file, bytes));
}

IN_PLACE int fdatasync(int file) {
  return interrupt() ? -1 : static_cast<int>(::syscall(SYS_fdatasync, file));
}

IN_PLACE int fsync(int file) {
  return interrupt() ? -1 : static_cast<int>(::syscall(SYS_fsync, file));
}

IN_PLACE int flock(int file, int operation) noexcept {
  return interrupt() ? -1 : static_cast<int>(::syscall(SYS_flock, file, operation));
}

IN_PLACE int fstatfs(int file, struct statfs* status) noexcept {
  return interrupt() ? -1 : static_cast<int>(::syscall(SYS_fstatfs, file, status));
}

namespace cairn {
namespace {

class Interrupted : public testing::TestWithParam<Scheme> {
 protected:
  Interrupted() { disturbing = true; }
  ~Interrupted() override { disturbing = false; }
};

TEST_P(Interrupted, ACheckpointIsWrittenLostInPartAndRestoredAsEver) {
  for (const std::string& base : {Cluster::memory(), std::string()}) {
    interrupted = cut_short = 0;
    Cluster cluster(base);
    cluster.settings.checkpoints[0].scheme = GetParam();
    cluster.write(four_nodes(), {1, 2});
    const bool protects = GetParam() != Scheme::single;
    if (protects) cluster.lose("n2");
    EXPECT_EQ(cluster.restart(four_nodes()), 2);
    const Nodes moved = {"n3", "n3", "n2", "n2", "n1", "n1", "n0", "n0"};
    EXPECT_EQ(cluster.restart(moved), 2);
    EXPECT_GT(interrupted, 100U) << "this test has seen to no interruptions";
    EXPECT_GT(cut_short, 30U);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Interrupted,
                         testing::Values(Scheme::single, Scheme::partner, Scheme::xor_,
                                         Scheme::rs));

}  // namespace
}  // namespace cairn
