// What encoding and rebuilding take of main memory, against docs/reference/space-and-memory.md.
// Not under sanitizers, which have an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "base/heap_meter.hpp"
#include "redundancy/set_on_disk.hpp"

namespace cairn {
namespace {

constexpr int many_members = 17;
/// Records, checksums, requests and the Team, for each member.
constexpr std::uint64_t beside_bytes = 4 << 10;

/// What the member that takes most has taken, at its highest.
std::uint64_t peak_of(const std::function<void(Communicator&, Files&)>& action) {
  std::atomic<std::int64_t> largest = 0;
  Team(many_members).run([&](Communicator& set) {
    const auto files = make_posix_files();
    heap::begin_peak_of_thread();
    action(set, *files);
    const std::int64_t mine = heap::peak_of_thread_since_begin();
    std::int64_t before = largest;
    while (mine > before && !largest.compare_exchange_weak(before, mine)) continue;
  });
  return static_cast<std::uint64_t>(largest);
}

struct Peaks {
  std::uint64_t to_encode;
  std::uint64_t to_rebuild;
};

Peaks measure(const Protection& scheme, std::size_t member_bytes, std::uint64_t encode) {
  TemporaryFolder base("/dev/shm");
  SetOnDisk set(base.path(), std::vector<std::vector<std::size_t>>(many_members, {member_bytes}),
                scheme);
  Peaks peaks{};
  peaks.to_encode = peak_of([&](Communicator& comm, Files& files) {
    const int me = comm.rank();
    EXPECT_TRUE(protect(comm, files, set.folder(me), set.record(me), encode));
  });
  std::filesystem::remove_all(set.folder(3).path);
  peaks.to_rebuild = peak_of([&](Communicator& comm, Files& files) {
    HealOptions options;
    options.encode_bytes = encode;
    const int me = comm.rank();
    EXPECT_TRUE(heal(comm, files, set.folder(me), set.record(me), options));
  });
  set.expect_intact();
  return peaks;
}

std::uint64_t promised(std::uint64_t encode, std::uint32_t failures) {
  return std::max<std::uint64_t>(encode, 2 * (3 * failures + 4) * block_bytes) + beside_bytes;
}

TEST(Memory, EncodingAndRebuildingTakeWhatIsPromisedHoweverMuchDataThereAre) {
  constexpr std::uint64_t encode = 16 << 10;
  for (const Protection& scheme : {Protection{Scheme::xor_, 1}, Protection{Scheme::partner, 2},
                                   Protection{Scheme::rs, 2}, Protection{Scheme::rs, 8}})
    for (const std::size_t member_bytes : {64 << 10, 1 << 20}) {
      SCOPED_TRACE(fmt::format("{}, {}, {} bytes for each", name_of(scheme.scheme), scheme.failures,
                               member_bytes));
      const Peaks peaks = measure(scheme, member_bytes, encode);
      EXPECT_LE(peaks.to_encode, promised(encode, scheme.failures));
      EXPECT_LE(peaks.to_rebuild, promised(encode, scheme.failures));
      EXPECT_GT(std::min(peaks.to_encode, peaks.to_rebuild), block_bytes) << "nothing was measured";
    }
}

}  // namespace
}  // namespace cairn

#endif
