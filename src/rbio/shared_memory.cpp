#include "rbio/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "files/uninterrupted.hpp"

namespace cairn::rbio {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

tl::unexpected<Error> failed(int error_number, std::string_view action, const std::string& name) {
  return tl::unexpected<Error>(errno_error(error_number, action, "the shared memory " + name));
}

class MappedSegment final : public Segment {
 public:
  /// A maker has the descriptor and the name.
  MappedSegment(MutableBytes bytes, std::string name, std::optional<Descriptor> of_maker)
      : bytes_(bytes), name_(std::move(name)), of_maker_(std::move(of_maker)) {}
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  ~MappedSegment() override {
    // Else the memory stays until the last process has unmapped it, above the program's limit.
    // If that fails, it is unmapped a little later.
    if (of_maker_) static_cast<void>(::ftruncate(of_maker_->number(), 0));
    ::munmap(bytes_.data(), bytes_.size());
  }

  MutableBytes bytes() override { return bytes_; }
  const std::string& name() const override { return name_; }

 private:
  const MutableBytes bytes_;
  const std::string name_;
  const std::optional<Descriptor> of_maker_;
};

/// MAP_POPULATE: the first step that uses it must not pay for its pages one by one.
Result<MutableBytes> map(const Descriptor& descriptor, const std::string& name,
                         std::uint64_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       descriptor.number(), 0);
  if (start == MAP_FAILED) return failed(errno, "map", name);
  return MutableBytes(static_cast<std::byte*>(start), bytes);
}

/// "PID FD INODE": how another process of this user finds the memory, and knows it again.
std::string name_of(const Descriptor& descriptor, const struct stat& status) {
  return fmt::format("{} {} {}", ::getpid(), descriptor.number(), status.st_ino);
}

struct ParsedName {
  pid_t process = 0;
  int descriptor = -1;
  ino_t inode = 0;
};

Result<ParsedName> parse(const std::string& name) {
  std::istringstream text(name);
  ParsedName parsed;
  if (text >> parsed.process >> parsed.descriptor >> parsed.inode) return parsed;
  return fail(Code::bad_argument, "\"{}\" names no shared memory", name);
}

/// Space is taken now: a write to a page that is not there would end the program. In pieces,
/// because a signal makes older kernels undo the whole call: with a profiler's timer, a long one
/// would be repeated for ever.
Status take_space(const Descriptor& descriptor, const std::string& name, std::uint64_t bytes) {
  constexpr std::uint64_t piece_bytes = std::uint64_t{16} << 20;
  for (std::uint64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const std::uint64_t length = std::min(piece_bytes, bytes - begin);
    int error_number = EINTR;
    while (error_number == EINTR)
      error_number = ::posix_fallocate(descriptor.number(), static_cast<off_t>(begin),
                                       static_cast<off_t>(length));
    if (error_number != 0) return failed(error_number, "take space for", name);
  }
  return {};
}

/// Memory without a name in any file system: nothing is left behind, however the processes end.
class DescriptorMemory final : public SharedMemory {
 public:
  Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    Descriptor descriptor(::memfd_create("cairn-rbio", MFD_CLOEXEC));
    if (descriptor.number() < 0) return failed(errno, "create", "of a step");
    struct stat status = {};
    if (::fstat(descriptor.number(), &status) != 0) return failed(errno, "inspect", "of a step");
    const std::string name = name_of(descriptor, status);
    CAIRN_TRY(take_space(descriptor, name, bytes));
    CAIRN_ASSIGN(const MutableBytes mapped, map(descriptor, name, bytes));
    return std::make_unique<MappedSegment>(mapped, name, std::move(descriptor));
  }

  Result<std::unique_ptr<Segment>> attach(const std::string& name, std::uint64_t bytes) override {
    CAIRN_ASSIGN(const ParsedName parsed, parse(name));
    const std::string path = fmt::format("/proc/{}/fd/{}", parsed.process, parsed.descriptor);
    Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (descriptor.number() < 0) return failed(errno, "open", path);
    struct stat status = {};
    if (::fstat(descriptor.number(), &status) != 0) return failed(errno, "inspect", path);
    // In another container the same numbers may be another process's file.
    if (status.st_uid != ::geteuid() || status.st_ino != parsed.inode ||
        static_cast<std::uint64_t>(status.st_size) != bytes)
      return fail(Code::untrusted, "{} is not the shared memory of {} bytes that its writer offers",
                  path, bytes);
    CAIRN_ASSIGN(const MutableBytes mapped, map(descriptor, path, bytes));
    return std::make_unique<MappedSegment>(mapped, name, std::nullopt);
  }
};

class PrivateSegment final : public Segment {
 public:
  explicit PrivateSegment(MutableBytes bytes) : bytes_(bytes) {}
  PrivateSegment(const PrivateSegment&) = delete;
  PrivateSegment& operator=(const PrivateSegment&) = delete;
  ~PrivateSegment() override { ::munmap(bytes_.data(), bytes_.size()); }

  MutableBytes bytes() override { return bytes_; }
  const std::string& name() const override { return name_; }

 private:
  const MutableBytes bytes_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<SharedMemory> make_shared_memory() { return std::make_unique<DescriptorMemory>(); }

Result<std::unique_ptr<Segment>> make_segment(SharedMemory* memory, std::uint64_t bytes,
                                              const Log& log) {
  if (memory != nullptr) {
    auto shared = memory->create(bytes);
    if (shared) return shared;
    log.warning("{}; the ranks of this node send their data by messages, which is slower",
                shared.error().text);
  }
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (start == MAP_FAILED)
    return fail(
        Code::no_space,
        "a step needs a buffer of {} bytes, and there is not so much memory ({}); lower the "
        "number of ranks per writer (option group), or use mode=collective, which has no "
        "buffers",
        bytes, std::strerror(errno));
  return std::make_unique<PrivateSegment>(MutableBytes(static_cast<std::byte*>(start), bytes));
}

}  // namespace cairn::rbio
