// What encoding and rebuilding take of main memory, against docs/concepts.md, "Memory and space
// needed". Not under sanitizers, which have an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "base/heap_meter.hpp"
#include "redundancy/set_on_disk.hpp"

namespace cairn {
namespace {

constexpr int members = 17;
constexpr std::size_t member_bytes = 256 << 10;
/// Records, checksums, requests and the Team, for each member.
constexpr std::uint64_t beside_bytes = 32 << 10;

/// What each member takes at most while all do this, on the average.
std::uint64_t peak_of(const std::function<void()>& action) {
  heap::begin_peak();
  action();
  return static_cast<std::uint64_t>(heap::peak_since_begin()) / members;
}

void protect_all(SetOnDisk& set, std::uint64_t encode) {
  Team(members).run([&](Communicator& comm) {
    const auto files = make_posix_files();
    const int me = comm.rank();
    EXPECT_TRUE(protect(comm, *files, set.folder(me), set.record(me), encode));
  });
}

void heal_all(SetOnDisk& set, std::uint64_t encode) {
  Team(members).run([&](Communicator& comm) {
    const auto files = make_posix_files();
    const int me = comm.rank();
    HealOptions options;
    options.encode_bytes = encode;
    EXPECT_TRUE(heal(comm, *files, set.folder(me), set.record(me), options));
  });
}

std::uint64_t promised(std::uint64_t encode, std::uint32_t failures) {
  return std::max<std::uint64_t>(encode, 2 * (3 * failures + 4) * block_bytes) + beside_bytes;
}

TEST(Memory, EncodingAndRebuildingTakeWhatIsPromisedHoweverMuchDataThereAre) {
  constexpr std::uint64_t encode = 16 << 10;
  for (const Protection& scheme : {Protection{Scheme::xor_, 1}, Protection{Scheme::partner, 2},
                                   Protection{Scheme::rs, 2}, Protection{Scheme::rs, 8}}) {
    SCOPED_TRACE(fmt::format("{}, {}", name_of(scheme.scheme), scheme.failures));
    TemporaryFolder base("/dev/shm");
    SetOnDisk set(base.path(), std::vector<std::vector<std::size_t>>(members, {member_bytes}),
                  scheme);
    const std::uint64_t to_encode = peak_of([&] { protect_all(set, encode); });
    EXPECT_LE(to_encode, promised(encode, scheme.failures));
    std::filesystem::remove_all(set.folder(3).path);
    const std::uint64_t to_rebuild = peak_of([&] { heal_all(set, encode); });
    EXPECT_LE(to_rebuild, promised(encode, scheme.failures));
    EXPECT_GT(std::min(to_encode, to_rebuild), block_bytes) << "nothing was measured";
    set.expect_intact();
  }
}

}  // namespace
}  // namespace cairn

#endif
