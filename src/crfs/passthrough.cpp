#include "crfs/passthrough.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/magic.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "crfs/backing_descriptor.hpp"

namespace cairn {
namespace {

// Parts of the kernel's interface that older headers lack.
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

/// The backing number for the answer that this thread is about to send.
thread_local int backing_of_answer = 0;

/// About the time of a request to the daemon on an idle machine.
constexpr std::chrono::microseconds quick{20};
constexpr int tries = 33;
constexpr std::size_t page = 4096;

/// A write to this file system ends in the memory of this node. With a network file system or FUSE
/// a write may be fast and close() slow.
bool is_local(const Descriptor& directory) {
  struct statfs of = {};
  if (::fstatfs(directory.number(), &of) != 0) return false;
  for (const long local : {long{TMPFS_MAGIC}, long{RAMFS_MAGIC}, long{EXT4_SUPER_MAGIC},
                           long{XFS_SUPER_MAGIC}, long{BTRFS_SUPER_MAGIC}, long{F2FS_SUPER_MAGIC}})
    if (of.f_type == local) return true;
  return false;
}

bool takes_pages_quickly(const Descriptor& directory) {
  const Descriptor file(
      ::openat(directory.number(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.number() < 0) return false;
  const std::array<char, page> data = {};
  return is_quick([&] {
    return ::write(file.number(), data.data(), data.size()) == static_cast<ssize_t>(page);
  });
}

/// As long as this lives, the calling thread has no privileges on files: it cannot keep set-id
/// bits, or use blocks reserved for root.
class UnprivilegedThread {
 public:
  UnprivilegedThread() {
    if (::syscall(SYS_capget, &header_, before_) != 0) return;
    ::setfsuid(unprivileged);
    __user_cap_data_struct fewer[2];
    if (::syscall(SYS_capget, &header_, fewer) != 0) return;
    fewer[0].effective &= ~(std::uint32_t{1} << CAP_FSETID);
    has_ = ::syscall(SYS_capset, &header_, fewer) == 0 &&
           ::setfsuid(unprivileged) == int{unprivileged};
  }
  ~UnprivilegedThread() {
    ::setfsuid(::geteuid());
    (void)::syscall(SYS_capset, &header_, before_);
  }
  UnprivilegedThread(const UnprivilegedThread&) = delete;
  UnprivilegedThread& operator=(const UnprivilegedThread&) = delete;

  explicit operator bool() const { return has_; }

 private:
  static constexpr uid_t unprivileged = 65534;
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
  bool has_ = false;
};

template <class Reply>
int reply_with(int backing, Reply reply) {
  backing_of_answer = backing;
  const int error = reply();
  backing_of_answer = 0;
  return error;
}

}  // namespace

bool is_quick(const std::function<bool()>& write_page) {
  std::array<std::chrono::nanoseconds, tries> times = {};
  for (std::chrono::nanoseconds& time : times) {
    const auto began = std::chrono::steady_clock::now();
    if (!write_page()) return false;
    time = std::chrono::steady_clock::now() - began;
  }
  const auto middle = times.begin() + tries / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle < quick;
}

bool wants_passthrough(const MountOptions& options, const Descriptor& directory) {
  if (options.mode != Mode::automatic) return options.mode == Mode::passthrough;
  return !options.gathers_only() && ::geteuid() == 0 && is_local(directory) &&
         takes_pages_quickly(directory);
}

KernelBacking::KernelBacking(fuse_session* session, int backing)
    : device_(fuse_session_fd(session)) {
  const BackingMap map = {backing, 0, 0};
  const UnprivilegedThread rights;
  number_ = rights ? ::ioctl(device_, open_backing_file, &map) : -1;
  if (number_ < 0) number_ = rights ? -errno : -EPERM;
}

KernelBacking::~KernelBacking() {
  const auto number = static_cast<std::uint32_t>(number_);
  if (number_ > 0) (void)::ioctl(device_, close_backing_file, &number);
}

int reply_open(fuse_req_t request, const fuse_file_info& info, int backing) {
  return reply_with(backing, [&] { return fuse_reply_open(request, &info); });
}

int reply_create(fuse_req_t request, const fuse_entry_param& entry, const fuse_file_info& info,
                 int backing) {
  return reply_with(backing, [&] { return fuse_reply_create(request, &entry, &info); });
}

void put_backing(const iovec& answer) {
  OpenAnswer open;  // the last part of the answer
  if (backing_of_answer == 0 || answer.iov_len < sizeof open) return;
  char* const place = static_cast<char*>(answer.iov_base) + answer.iov_len - sizeof open;
  std::memcpy(&open, place, sizeof open);
  open.flags |= open_passthrough;
  open.backing = backing_of_answer;
  std::memcpy(place, &open, sizeof open);
}

}  // namespace cairn
