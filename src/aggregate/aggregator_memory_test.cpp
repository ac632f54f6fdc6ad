// When the system has no more memory: a write is taken as a whole or not at all, and what was taken
// is written.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "aggregate/test_files.hpp"

namespace cairn {
namespace {

constexpr int all = std::numeric_limits<int>::max();
std::atomic<int> granted = all;  // allocations that succeed from now on

bool is_granted() {
  int left = granted;
  while (left != all && left > 0 && !granted.compare_exchange_weak(left, left - 1)) continue;
  return left > 0;
}

}  // namespace
}  // namespace cairn

// Not inlined, as GCC would take them apart and warn of a new without its delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* const memory = cairn::is_granted() ? std::malloc(bytes) : nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cairn {
namespace {

AggregateOptions options_of(int threads) { return small_options(chunk, 16, 4, threads); }

TEST(AggregatorMemory, AWriteIsTakenAsAWholeOrNotAtAll) {
  int failed = 0;
  for (bool taken = false; !taken; ++failed) {
    Aggregator aggregator(options_of(0));
    TestFile file(aggregator);
    for (const std::uint64_t at : {1, 3, 5, 7, 69, 71, 73, 75})
      ASSERT_EQ(0, file->write(at, blob("x")));
    const Blob before = read_all(*file.file);
    const Blob data(4 * chunk, std::byte{'y'});
    granted = failed;
    const int error = file->write(9, data);
    granted = all;
    taken = error == 0;
    if (taken) break;
    EXPECT_EQ(-ENOMEM, error);
    EXPECT_EQ(text(read_all(*file.file)), text(before)) << "without allocation " << failed;
  }
  EXPECT_GT(failed, 3);
}

/// Keeps its content itself. Writes wait until the gate is open.
class FixedFile final : public BackingFile {
 public:
  FixedFile(std::array<std::byte, 16 * chunk>& content, Gate& gate)
      : content_(content), gate_(gate) {}
  ssize_t write_at(std::uint64_t offset, Bytes data) override {
    gate_.pass();
    std::copy(data.begin(), data.end(), content_.begin() + static_cast<std::ptrdiff_t>(offset));
    return static_cast<ssize_t>(data.size());
  }
  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int) override {
    return write_at(offset, pieces[0]);
  }
  ssize_t read_at(std::uint64_t, MutableBytes) override { return 0; }
  int resize(std::uint64_t) override { return 0; }
  int sync(bool) override { return 0; }
  std::int64_t size() override { return 0; }

 private:
  std::array<std::byte, 16 * chunk>& content_;
  Gate& gate_;
};

class AggregatorMemoryWithThreads : public testing::TestWithParam<int> {};

TEST_P(AggregatorMemoryWithThreads, WhatWasTakenIsWritten) {
  std::array<std::byte, 16 * chunk> contents[2] = {};
  Gate gate;
  int drained = 0;
  {
    Aggregator aggregator(options_of(GetParam()));
    AggregatedFile first(aggregator, std::make_unique<FixedFile>(contents[0], gate), 0);
    AggregatedFile second(aggregator, std::make_unique<FixedFile>(contents[1], gate), 0);
    AggregatedFile::ErrorCursor seen_first = first.opened(), seen_second = second.opened();
    for (AggregatedFile* file : {&first, &second})
      ASSERT_EQ(0, file->append(Blob(6 * chunk + 3, std::byte{'x'})));
    granted = 0;
    gate.open();
    drained = first.drain(seen_first) + second.drain(seen_second);
    granted = all;
  }
  EXPECT_EQ(0, drained);
  for (const auto& content : contents)
    EXPECT_EQ(6 * chunk + 3, static_cast<std::uint64_t>(
                                 std::count(content.begin(), content.end(), std::byte{'x'})));
}

INSTANTIATE_TEST_SUITE_P(Threads, AggregatorMemoryWithThreads, testing::Values(0, 1, 3));

}  // namespace
}  // namespace cairn
