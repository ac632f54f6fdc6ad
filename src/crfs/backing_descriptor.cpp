#include "crfs/backing_descriptor.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <climits>

namespace cairn {
namespace {

template <class Call>
auto or_minus_errno(Call call) {
  const auto result = uninterrupted(call);
  return result == -1 ? decltype(result){-errno} : result;
}

/// An open() for both reading and writing fails so where one of the two is allowed.
bool is_forbidden(int error) { return error == EACCES || error == EPERM || error == EROFS; }

}  // namespace

std::string name_in_proc(const Descriptor& descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor.number());
}

Descriptor open_backing(const Descriptor& path, bool for_writing) {
  const std::string name = name_in_proc(path);
  const auto open_as = [&](int access) {
    return uninterrupted([&] { return ::open(name.c_str(), access | O_CLOEXEC); });
  };
  if (!for_writing) return Descriptor(open_as(O_RDONLY));
  const int both = open_as(O_RDWR);
  return Descriptor(both < 0 && is_forbidden(errno) ? open_as(O_WRONLY) : both);
}

void BackingDescriptor::add(Descriptor descriptor) {
  const int number = descriptor.number();
  const int access = ::fcntl(number, F_GETFL) & O_ACCMODE;
  const std::lock_guard lock(mutex_);
  owned_.push_back(std::move(descriptor));
  if (access != O_WRONLY && !reads()) reader_ = number;
  if (access != O_RDONLY && !writes()) writer_ = number;
}

int BackingDescriptor::flush() {
  const int copy = ::fcntl(written(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return sync(false);  // returns the same errors, and needs no descriptor
  return ::close(copy) == 0 || errno == EINTR ? 0 : -errno;
}

ssize_t BackingDescriptor::append(Bytes data) {
  const iovec piece = {const_cast<std::byte*>(data.data()), data.size()};
  return or_minus_errno([&] { return ::pwritev2(writer_, &piece, 1, 0, RWF_APPEND); });
}

ssize_t BackingDescriptor::write_at(std::uint64_t offset, Bytes data) {
  return or_minus_errno(
      [&] { return ::pwrite(writer_, data.data(), data.size(), static_cast<off_t>(offset)); });
}

ssize_t BackingDescriptor::write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) {
  iovec vectors[IOV_MAX];
  const int taken = std::min(count, IOV_MAX);
  for (int i = 0; i < taken; ++i)
    vectors[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  return or_minus_errno(
      [&] { return ::pwritev(writer_, vectors, taken, static_cast<off_t>(offset)); });
}

ssize_t BackingDescriptor::read_at(std::uint64_t offset, MutableBytes buffer) {
  return or_minus_errno(
      [&] { return ::pread(reader_, buffer.data(), buffer.size(), static_cast<off_t>(offset)); });
}

int BackingDescriptor::resize(std::uint64_t bytes) {
  return or_minus_errno([&] { return ::ftruncate(writer_, static_cast<off_t>(bytes)); });
}

int BackingDescriptor::sync(bool data_only) {
  return or_minus_errno([&] { return data_only ? ::fdatasync(written()) : ::fsync(written()); });
}

std::int64_t BackingDescriptor::size() {
  struct stat status = {};
  return ::fstat(number(), &status) == 0 ? std::int64_t{status.st_size} : -std::int64_t{errno};
}

}  // namespace cairn
