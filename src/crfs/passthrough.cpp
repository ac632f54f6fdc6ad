#include "crfs/passthrough.hpp"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "crfs/backing_descriptor.hpp"

namespace cairn {
namespace {

// Of the kernel's interface, where its headers are older.
constexpr std::uint32_t open_passthrough = 1U << 7;
struct BackingMap {
  std::int32_t descriptor;
  std::uint32_t flags;
  std::uint64_t padding;
};
constexpr unsigned long open_backing_file = _IOW(229, 1, BackingMap);
constexpr unsigned long close_backing_file = _IOW(229, 2, std::uint32_t);
struct OpenAnswer {
  std::uint64_t handle;
  std::uint32_t flags;
  std::int32_t backing;
};
static_assert(sizeof(OpenAnswer) == sizeof(fuse_open_out));

/// Of the answer that this thread is about to give.
thread_local int backing_of_answer = 0;

/// A request to the daemon takes about as long, on an idle machine.
constexpr std::chrono::microseconds quick{20};
constexpr std::size_t page = 4096;

/// How long it takes to write a page, most times; a long time where that cannot be told.
std::chrono::nanoseconds time_to_write(const Descriptor& folder) {
  const auto never = std::chrono::nanoseconds::max();
  // File systems of a network have no files without a name.
  const Descriptor file(
      ::openat(folder.number(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.number() < 0) return never;
  const std::array<char, page> data = {};
  std::array<std::chrono::nanoseconds, 33> times = {};
  for (std::chrono::nanoseconds& time : times) {
    const auto began = std::chrono::steady_clock::now();
    if (::write(file.number(), data.data(), data.size()) != static_cast<ssize_t>(page))
      return never;
    time = std::chrono::steady_clock::now() - began;
  }
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

template <class Reply>
int reply_with(int backing, Reply reply) {
  backing_of_answer = backing;
  const int error = reply();
  backing_of_answer = 0;
  return error;
}

}  // namespace

bool wants_passthrough(const MountOptions& options, const Descriptor& folder) {
  if (options.mode != Mode::automatic) return options.mode == Mode::passthrough;
  return !options.needs_all_writes() && ::geteuid() == 0 && time_to_write(folder) < quick;
}

KernelBacking::KernelBacking(fuse_session* session, int backing)
    : device_(fuse_session_fd(session)) {
  const BackingMap map = {backing, 0, 0};
  number_ = std::max(0, ::ioctl(device_, open_backing_file, &map));
}

KernelBacking::~KernelBacking() {
  const auto number = static_cast<std::uint32_t>(number_);
  if (number_ != 0) (void)::ioctl(device_, close_backing_file, &number);
}

int reply_open(fuse_req_t request, const fuse_file_info& info, int backing) {
  return reply_with(backing, [&] { return fuse_reply_open(request, &info); });
}

int reply_create(fuse_req_t request, const fuse_entry_param& entry, const fuse_file_info& info,
                 int backing) {
  return reply_with(backing, [&] { return fuse_reply_create(request, &entry, &info); });
}

void put_backing(const iovec& answer) {
  OpenAnswer open;  // it is the last of what is answered
  if (backing_of_answer == 0 || answer.iov_len < sizeof open) return;
  char* const place = static_cast<char*>(answer.iov_base) + answer.iov_len - sizeof open;
  std::memcpy(&open, place, sizeof open);
  open.flags |= open_passthrough;
  open.backing = backing_of_answer;
  std::memcpy(place, &open, sizeof open);
}

}  // namespace cairn
