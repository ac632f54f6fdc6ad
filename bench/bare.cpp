#include "bare.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <filesystem>

#include "base/checksum.hpp"
#include "codec/xor.hpp"
#include "files/background.hpp"
#include "mpi_timing.hpp"

namespace cairn::bench {
namespace {

constexpr std::size_t block_bytes = 256 << 10;

void write_at(int file, Bytes bytes, off_t offset) {
  check(pwrite(file, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()),
        "cannot write a block");
}

int open_kept(const std::string& path, int flags) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | flags, 0600);
  check(file >= 0, "cannot open " + path);
  return file;
}

/// So that it is worked out.
void use(std::uint32_t checksum) {
  static volatile std::uint32_t last = 0;
  last = last + checksum;
}

}  // namespace

/// Where a process has a file's bytes.
struct BareProgram::Place {
  std::int64_t process = 0;
  std::uint64_t address = 0;
};

/// A whole file, to be read.
struct BareProgram::Mapping {
  Mapping(const std::string& path, std::size_t size) : bytes(size) {
    const int file = open(path.c_str(), O_RDONLY);
    start = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    check(start != MAP_FAILED, "cannot map " + path);
    close(file);
  }
  ~Mapping() { munmap(start, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  Bytes all() const { return {static_cast<const std::byte*>(start), bytes}; }

  std::size_t bytes;
  void* start = nullptr;
};

BareProgram::BareProgram(const std::string& folder, const std::vector<char>& data)
    : data_(data),
      base_(fmt::format("{}/bare.{}", folder, rank())),
      sums_(open_kept(base_ + ".sums", 0)),
      sum_(block_bytes),
      block_(block_bytes) {}

BareProgram::~BareProgram() {
  close(sums_);
  std::filesystem::remove(base_ + ".sums");
  std::filesystem::remove(fmt::format("{}.{}", base_, checkpoints_));
}

double BareProgram::checksums() {
  write_file(base_, data_);
  barrier();
  const double begin = now();
  {
    const Mapping file(base_, data_.size());
    use(crc32c(file.all()));
  }
  barrier();
  const double seconds = span(begin, now());
  std::filesystem::remove(base_);
  return seconds;
}

double BareProgram::removal() {
  write_file(base_, data_);
  barrier();
  const double begin = now();
  std::filesystem::remove(base_);
  barrier();
  return span(begin, now());
}

double BareProgram::agreements() {
  constexpr int agreements = 6;
  barrier();
  const double begin = now();
  for (int i = 0; i < agreements; ++i) {
    std::int64_t sum = 1;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    finish(request);
  }
  barrier();
  return span(begin, now());
}

/// All ranks have come here when one returns.
BareProgram::Place BareProgram::place_of_next(const Mapping& mine) {
  const Place here{getpid(), reinterpret_cast<std::uint64_t>(mine.start)};
  std::vector<Place> all(static_cast<std::size_t>(ranks()));
  MPI_Request request;
  MPI_Iallgather(&here, sizeof here, MPI_BYTE, all.data(), sizeof here, MPI_BYTE, MPI_COMM_WORLD,
                 &request);
  finish(request);
  return all[static_cast<std::size_t>((rank() + 1) % ranks())];
}

void BareProgram::copy(const Place& there, std::size_t at, MutableBytes into) {
  const iovec here{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(there.address + at), into.size()};
  check(process_vm_readv(static_cast<pid_t>(there.process), &here, 1, &remote, 1, 0) ==
            static_cast<ssize_t>(into.size()),
        "cannot read the next rank's memory");
}

/// An XOR set of all ranks.
std::size_t BareProgram::blocks_in_sum() const {
  return static_cast<std::size_t>(std::max(ranks() - 1, 1));
}

/// The sums of each blocks_in_sum() blocks. The first of a sum is copied to its place.
void BareProgram::sum_into(int file, const Place& there) {
  off_t written = 0;
  std::size_t summed = 0;
  std::size_t longest = 0;
  for (std::size_t at = 0; at < data_.size(); at += block_bytes) {
    const std::size_t length = std::min(block_bytes, data_.size() - at);
    longest = std::max(longest, length);
    if (summed == 0) {
      copy(there, at, sum_.first(length));
    } else {
      copy(there, at, block_.first(length));
      xor_into(sum_.first(longest), block_.first(length));
    }
    if (++summed < blocks_in_sum() && at + length < data_.size()) continue;
    write_at(file, sum_.first(longest), written);
    written += static_cast<off_t>(longest);
    summed = longest = 0;
  }
}

void BareProgram::copy_into(int file, const Place& there, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += block_bytes) {
    const MutableBytes block = block_.first(std::min(block_bytes, bytes - at));
    copy(there, at, block);
    use(crc32c(block));
    write_at(file, block, static_cast<off_t>(at));
  }
}

double BareProgram::checkpoint(bool with_xor) {
  const std::string path = fmt::format("{}.{}", base_, ++checkpoints_);
  const std::string older = fmt::format("{}.{}", base_, checkpoints_ - 1);
  const auto background = make_background_thread();
  barrier();
  const double begin = now();
  write_file(path, data_);
  {
    const Mapping file(path, data_.size());
    use(crc32c(file.all()));
    if (with_xor) {
      sum_into(sums_, place_of_next(file));
      barrier();  // others read this rank's mapping
    }
  }
  background->post(data_.size(), [&] { std::filesystem::remove(older); });
  barrier();
  const double seconds = span(begin, now());
  background->wait();
  return seconds;
}

double BareProgram::rebuild() {
  write_file(base_ + ".kept", data_);
  const int lost = open_kept(base_ + ".lost", O_TRUNC);
  const int lost_parity = open_kept(base_ + ".parity", O_TRUNC);
  barrier();
  const double begin = now();
  {
    const Mapping kept(base_ + ".kept", data_.size());
    const Place next = place_of_next(kept);
    if (rank() == 0) {
      copy_into(lost, next, data_.size());
      copy_into(lost_parity, next, data_.size() / blocks_in_sum());
    } else {
      use(crc32c(kept.all()));
      sum_into(sums_, next);
    }
    barrier();
  }
  const double seconds = span(begin, now());
  close(lost);
  close(lost_parity);
  for (const char* end : {".kept", ".lost", ".parity"}) std::filesystem::remove(base_ + end);
  return seconds;
}

}  // namespace cairn::bench
