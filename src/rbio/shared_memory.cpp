#include "rbio/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "files/clock.hpp"
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
  MappedSegment(MutableBytes bytes, std::string name, bool is_maker, Descriptor descriptor)
      : bytes_(bytes),
        name_(std::move(name)),
        is_maker_(is_maker),
        descriptor_(std::move(descriptor)) {}
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  ~MappedSegment() override {
    if (is_maker_) {
      remove_name();
      // Else the memory stays until the last process has unmapped it, above the program's limit.
      // If that fails, it is unmapped a little later.
      static_cast<void>(::ftruncate(descriptor_.number(), 0));
    }
    ::munmap(bytes_.data(), bytes_.size());
  }

  MutableBytes bytes() override { return bytes_; }
  const std::string& name() const override { return name_; }
  void remove_name() override {
    if (is_maker_ && is_named_) ::shm_unlink(name_.c_str());
    is_named_ = false;
  }

 private:
  const MutableBytes bytes_;
  const std::string name_;
  const bool is_maker_;
  bool is_named_ = true;
  Descriptor descriptor_;
};

/// MAP_POPULATE: the first step that uses it must not pay for its pages one by one.
Result<MutableBytes> map(const Descriptor& descriptor, const std::string& name,
                         std::uint64_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       descriptor.number(), 0);
  if (start == MAP_FAILED) return failed(errno, "map", name);
  return MutableBytes(static_cast<std::byte*>(start), bytes);
}

class PosixSharedMemory final : public SharedMemory {
 public:
  Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    const std::string name =
        fmt::format("/cairn-rbio.{}.{:016x}", ::getpid(), make_system_clock()->random());
    Descriptor descriptor(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (descriptor.number() < 0) return failed(errno, "create", name);
    // Space is taken now: a write to a page that is not there would end the program.
    int error_number = 0;
    do {
      error_number = ::posix_fallocate(descriptor.number(), 0, static_cast<off_t>(bytes));
    } while (error_number == EINTR);
    auto mapped = error_number == 0 ? map(descriptor, name, bytes)
                                    : failed(error_number, "take space for", name);
    if (!mapped) {
      ::shm_unlink(name.c_str());
      return tl::unexpected(std::move(mapped).error());
    }
    return std::make_unique<MappedSegment>(*mapped, name, true, std::move(descriptor));
  }

  Result<std::unique_ptr<Segment>> attach(const std::string& name, std::uint64_t bytes) override {
    Descriptor descriptor(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (descriptor.number() < 0) return failed(errno, "open", name);
    struct stat status = {};
    if (::fstat(descriptor.number(), &status) != 0) return failed(errno, "inspect", name);
    if (status.st_uid != ::geteuid())
      return fail(Code::untrusted, "the shared memory {} belongs to user {}", name, status.st_uid);
    if (static_cast<std::uint64_t>(status.st_size) != bytes)
      return fail(Code::io, "the shared memory {} has {} bytes; {} are expected", name,
                  status.st_size, bytes);
    CAIRN_ASSIGN(const MutableBytes mapped, map(descriptor, name, bytes));
    return std::make_unique<MappedSegment>(mapped, name, false, Descriptor(-1));
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
  void remove_name() override {}

 private:
  const MutableBytes bytes_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<SharedMemory> make_posix_shared_memory() {
  return std::make_unique<PosixSharedMemory>();
}

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
    return tl::unexpected<Error>(errno_error(errno, "take memory for", "a step"));
  return std::make_unique<PrivateSegment>(MutableBytes(static_cast<std::byte*>(start), bytes));
}

}  // namespace cairn::rbio
