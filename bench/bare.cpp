#include "bare.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <filesystem>

#include "base/checksum.hpp"
#include "files/background.hpp"
#include "mpi_timing.hpp"

namespace cairn::bench {
namespace {

constexpr std::size_t block_bytes = 256 << 10;
constexpr int most_parity = 2;

/// Of a set of all ranks.
ErasureCode code_of(const std::string& scheme) {
  if (scheme == "SINGLE") return {1, 0};
  if (scheme == "PARTNER") return {1, 1};
  const int parity = scheme == "RS" ? most_parity : 1;
  return {std::max(ranks() - parity, 1), parity};
}

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
      parity_(open_kept(base_ + ".parity", 0)),
      block_(block_bytes) {
  for (int i = 0; i < most_parity; ++i) sums_.emplace_back(block_bytes);
}

BareProgram::~BareProgram() {
  close(parity_);
  std::filesystem::remove(base_ + ".parity");
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
BareProgram::Place BareProgram::place_of_next(const void* mine) {
  const Place here{getpid(), reinterpret_cast<std::uint64_t>(mine)};
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

/// Of the next rank's file, stripe by stripe. The first block of a stripe is copied to its place.
/// Each sum is kept; instead of all but the first, as much that the next rank has added up.
void BareProgram::add_up(const ErasureCode& code, const Place& there, const Keep& keep) {
  const Combination combination = code.encoder();
  std::vector<Place> forwarded;
  for (std::size_t i = 1; i < static_cast<std::size_t>(code.parity()); ++i)
    forwarded.push_back(place_of_next(sums_[i].all().data()));
  for (std::size_t at = 0; at < data_.size();) {
    std::vector<MutableBytes> sums;
    for (int i = 0; i < code.parity(); ++i)
      sums.push_back(
          sums_[static_cast<std::size_t>(i)].first(std::min(block_bytes, data_.size() - at)));
    for (int slot = 0; slot < code.data() && at < data_.size(); ++slot) {
      const std::size_t length = std::min(block_bytes, data_.size() - at);
      const MutableBytes block = slot == 0 ? sums[0] : block_.first(length);
      copy(there, at, block);
      slot == 0 ? combination.begin(slot, block, sums) : combination.add(slot, block, sums);
      at += length;
    }
    keep(sums[0]);
    for (const Place& place : forwarded) {
      const MutableBytes block = block_.first(sums[0].size());
      copy(place, 0, block);
      keep(block);
    }
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

double BareProgram::checkpoint(const std::string& scheme) {
  const std::string path = fmt::format("{}.{}", base_, ++checkpoints_);
  const std::string older = fmt::format("{}.{}", base_, checkpoints_ - 1);
  const bool copies = scheme == "PARTNER";
  const ErasureCode code = code_of(scheme);
  const auto background = make_background_thread();
  off_t written = 0;
  const auto keep = [&](Bytes parity) {
    if (!copies) use(crc32c(parity));
    write_at(parity_, parity, written);
    written += static_cast<off_t>(parity.size());
  };
  barrier();
  const double begin = now();
  write_file(path, data_);
  {
    const Mapping file(path, data_.size());
    use(crc32c(file.all()));
    if (code.parity() > 0) {
      add_up(code, place_of_next(file.start), keep);
      barrier();  // others read this rank's memory
    }
  }
  background->post(data_.size(), [&] { std::filesystem::remove(older); });
  barrier();
  const double seconds = span(begin, now());
  background->wait();
  return seconds;
}

double BareProgram::rebuild() {
  const ErasureCode code = code_of("XOR");
  const std::size_t parity_bytes = data_.size() / static_cast<std::size_t>(code.data());
  write_file(base_ + ".kept", data_);
  write_file(base_ + ".kept_parity", std::span(data_).first(parity_bytes));
  const int lost = open_kept(base_ + ".lost", O_TRUNC);
  const int lost_parity = open_kept(base_ + ".lost_parity", O_TRUNC);
  barrier();
  const double begin = now();
  {
    const Mapping kept(base_ + ".kept", data_.size());
    const Place next = place_of_next(kept.start);
    if (rank() == 0) {
      copy_into(lost, next, data_.size());
      copy_into(lost_parity, next, parity_bytes);
    } else {
      const Mapping parity(base_ + ".kept_parity", parity_bytes);
      use(crc32c(kept.all()));
      use(crc32c(parity.all()));
      add_up(code, next, [](Bytes) {});
    }
    barrier();
  }
  const double seconds = span(begin, now());
  close(lost);
  close(lost_parity);
  for (const char* end : {".kept", ".kept_parity", ".lost", ".lost_parity"})
    std::filesystem::remove(base_ + end);
  return seconds;
}

}  // namespace cairn::bench
