// Many threads at once, little memory, slow files: nothing is lost, and no thread waits for ever.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "aggregate/test_files.hpp"

namespace cairn {
namespace {

/// Now and then slow, often short, sometimes interrupted.
std::function<Reaction(const BackingCall&)> unsteady(std::uint64_t seed) {
  return [count = std::make_shared<std::atomic<std::uint64_t>>(seed)](const BackingCall& call) {
    std::mt19937_64 random((*count)++);
    Reaction reaction;
    if (random() % 4 == 0) reaction.delay = std::chrono::microseconds(random() % 200);
    if (call.kind > BackingCall::read) return reaction;
    if (random() % 16 == 0) reaction.error = -EINTR;
    if (random() % 4 == 0) reaction.bytes_most = 1 + random() % 64;
    return reaction;
  };
}

struct Stress {
  std::uint64_t chunk_bytes, chunks;
  int io_threads, files, threads, rounds;
};

/// Each thread has a part of each file for itself, which it writes and reads at random. The parts
/// meet within chunks.
class AggregatorStress : public testing::TestWithParam<Stress> {
 protected:
  static constexpr std::uint64_t part_bytes = 300;

  AggregatorStress() {
    const Stress& stress = GetParam();
    AggregateOptions options;
    options.chunk_bytes = stress.chunk_bytes;
    options.pool_bytes = stress.chunks * stress.chunk_bytes;
    options.write_bytes = 4 * stress.chunk_bytes;
    options.io_threads = stress.io_threads;
    aggregator_ = std::make_unique<Aggregator>(options);
    for (int i = 0; i < stress.files; ++i) {
      files_.push_back(std::make_unique<TestFile>(*aggregator_));
      files_.back()->storage->script = unsteady(static_cast<std::uint64_t>(i) * 1'000'000);
      files_.back()->storage->keeps_log = false;
    }
  }

  void work(int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread));
    std::vector<Blob> parts(files_.size(), Blob(part_bytes));
    const std::uint64_t begin = static_cast<std::uint64_t>(thread) * part_bytes;
    for (int round = 0; round < GetParam().rounds; ++round) {
      const std::size_t which = random() % files_.size();
      AggregatedFile& file = *files_[which]->file;
      const std::uint64_t at = random() % part_bytes;
      const std::uint64_t bytes = 1 + random() % (part_bytes - at);
      const MutableBytes mine = MutableBytes(parts[which]).subspan(at, bytes);
      for (std::byte& byte : mine) byte = static_cast<std::byte>(random());
      ASSERT_EQ(0, file.write(begin + at, mine));
      if (random() % 8 == 0) wait(file, random() % 3);
      if (random() % 2 == 0) expect_there(file, begin, parts[which]);
    }
    for (std::size_t which = 0; which < files_.size(); ++which)
      expect_there(*files_[which]->file, begin, parts[which]);
  }

  static void wait(AggregatedFile& file, std::uint64_t how) {
    AggregatedFile::ErrorCursor cursor = file.opened();
    const int error = how == 0   ? file.sync(cursor, false)
                      : how == 1 ? file.drain(cursor)
                                 : file.change_backing([](BackingFile&) { return 0; });
    EXPECT_EQ(0, error);
  }

  static void expect_there(AggregatedFile& file, std::uint64_t begin, const Blob& part) {
    Blob found(part.size());
    const ssize_t got = file.read(begin, found);
    ASSERT_GE(got, 0);
    ASSERT_TRUE(std::equal(found.begin(), found.begin() + got, part.begin()));
    // What is behind the end was never written.
    ASSERT_TRUE(std::all_of(part.begin() + got, part.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }

  std::unique_ptr<Aggregator> aggregator_;
  std::vector<std::unique_ptr<TestFile>> files_;
};

TEST_P(AggregatorStress, EachThreadFindsWhatItWrote) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < GetParam().threads; ++thread)
    threads.emplace_back([this, thread] { work(thread); });
  for (std::thread& thread : threads) thread.join();
  aggregator_->settle_all();
  EXPECT_EQ(aggregator_->statistics().pool_used_bytes, 0u);
  for (const auto& file : files_) {
    EXPECT_EQ(text(read_all(*file->file)), text(file->storage->content()));
    EXPECT_EQ(file->storage->violations(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AggregatorStress,
                         testing::Values(Stress{64, 64, 4, 4, 6, 300}, Stress{64, 4, 2, 4, 6, 200},
                                         Stress{512, 2, 1, 1, 8, 200}, Stress{64, 1, 4, 64, 16, 60},
                                         Stress{64, 1, 1, 64, 16, 60}, Stress{64, 1, 0, 64, 16, 60},
                                         Stress{4096, 3, 0, 8, 8, 200}),
                         [](const auto& of) {
                           const Stress& stress = of.param;
                           return fmt::format("{}Chunks{}Threads{}Files{}Writers", stress.chunks,
                                              stress.io_threads, stress.files, stress.threads);
                         });

/// Records of several threads, none of which may be lost, torn or twice.
TEST(AggregatorAppends, AllAreThereOnce) {
  for (const int io_threads : {0, 2}) {
    AggregateOptions options;
    options.chunk_bytes = 64;
    options.pool_bytes = 3 * 64;
    options.io_threads = io_threads;
    Aggregator aggregator(options);
    TestFile file(aggregator);
    file.storage->script = unsteady(1);
    constexpr int threads = 6, records = 200;
    std::vector<std::thread> writers;
    for (int thread = 0; thread < threads; ++thread)
      writers.emplace_back([&, thread] {
        for (int i = 0; i < records; ++i)
          EXPECT_EQ(0, file->append(blob(fmt::format("<{} {:<{}}>", thread, i, 3 + i % 90))));
      });
    for (std::thread& writer : writers) writer.join();
    file->settle();
    const std::string all = text(file.storage->content());
    std::vector<int> next(threads, 0);
    for (std::size_t at = 0; at < all.size(); at = all.find('>', at) + 1) {
      int thread = -1, record = -1;
      ASSERT_EQ(2, std::sscanf(all.c_str() + at, "<%d %d", &thread, &record)) << at;
      ASSERT_EQ(record, next[static_cast<std::size_t>(thread)]++);
    }
    EXPECT_EQ(next, std::vector<int>(threads, records));
  }
}

/// A reader beside a writer that cuts the file and writes it anew sees the file as it was at some
/// time: no byte is of anything that was never there.
TEST(AggregatorReads, SeeNothingThatWasNotWritten) {
  AggregateOptions options;
  options.chunk_bytes = 64;
  options.pool_bytes = 4 * 64;
  options.io_threads = 2;
  Aggregator aggregator(options);
  TestFile file(aggregator);
  file.storage->script = unsteady(1);
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over)
      for (const std::byte byte : read_all(*file.file))
        ASSERT_TRUE(byte == std::byte{0} || byte == std::byte{'x'} || byte == std::byte{'y'});
  });
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(0, file->write(0, Blob(200, std::byte{'x'})));
    EXPECT_EQ(0, file->write(100, Blob(200, std::byte{'y'})));
    EXPECT_EQ(0, file->resize(static_cast<std::uint64_t>(i) % 300));
  }
  over = true;
  reader.join();
  EXPECT_EQ(file.storage->violations(), "");
}

/// What one thread has synced: its part of the file, when so many calls had ended.
struct Synced {
  std::size_t calls = 0;
  Blob part;
};

constexpr std::uint64_t crash_part_bytes = 200;

/// Bytes have the number of their write, so that a later one is seen to be later.
std::vector<Synced> write_and_sync(TestFile& file, std::uint64_t begin, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Blob part(crash_part_bytes);
  std::vector<Synced> synced;
  AggregatedFile::ErrorCursor cursor = file->opened();
  for (int number = 1; number < 250; ++number) {
    const std::uint64_t at = random() % crash_part_bytes;
    const std::uint64_t bytes = 1 + random() % std::min<std::uint64_t>(40, crash_part_bytes - at);
    const MutableBytes now = MutableBytes(part).subspan(at, bytes);
    std::fill(now.begin(), now.end(), static_cast<std::byte>(number));
    EXPECT_EQ(0, file->write(begin + at, now));
    if (random() % 16 != 0) continue;
    EXPECT_EQ(0, file->sync(cursor, true));
    synced.push_back({file.storage->log_length(), part});
  }
  return synced;
}

/// What is certain to be there when the power fails after each of the calls: the writes that had
/// ended when a sync began that has ended.
std::vector<Blob> left_by_power_failure(const std::vector<BackingCall>& log) {
  std::vector<Blob> left(1);
  std::size_t durable = 0;
  for (const BackingCall& call : log) {
    Blob now = left.back();
    for (; call.kind == BackingCall::sync && durable < call.ended_before; ++durable) {
      const BackingCall& write = log[durable];
      if (write.kind != BackingCall::write || write.error != 0) continue;
      now.resize(std::max<std::size_t>(now.size(), write.range.begin + write.data.size()));
      std::copy(write.data.begin(), write.data.end(),
                now.begin() + static_cast<std::ptrdiff_t>(write.range.begin));
    }
    left.push_back(std::move(now));
  }
  return left;
}

void expect_synced(const std::vector<Blob>& left, std::uint64_t begin,
                   const std::vector<Synced>& synced) {
  for (std::size_t i = 0; i < synced.size(); ++i) {
    const std::size_t next = i + 1 < synced.size() ? synced[i + 1].calls : left.size();
    for (std::size_t calls = synced[i].calls; calls < next; ++calls)
      for (std::size_t at = 0; at < crash_part_bytes; ++at)
        if (synced[i].part[at] != std::byte{0}) {
          ASSERT_LT(begin + at, left[calls].size()) << "after call " << calls;
          ASSERT_GE(left[calls][begin + at], synced[i].part[at]) << "after call " << calls;
        }
  }
}

/// The power fails after any of the calls: what was synced before is there, or what was written
/// later in its place.
TEST(AggregatorCrash, WhatWasSyncedIsThere) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    AggregateOptions options;
    options.chunk_bytes = 16;
    options.pool_bytes = (1 + seed % 6) * 16;
    options.io_threads = static_cast<int>(seed % 4);
    Aggregator aggregator(options);
    TestFile file(aggregator);
    file.storage->keeps_data = true;
    file.storage->script = unsteady(seed * 1000);
    std::vector<Synced> of_other;
    std::thread other([&] { of_other = write_and_sync(file, crash_part_bytes, seed + 1'000'000); });
    const std::vector<Synced> mine = write_and_sync(file, 0, seed);
    other.join();
    EXPECT_GT(mine.size() + of_other.size(), 0u);
    const std::vector<Blob> left = left_by_power_failure(file.storage->log());
    expect_synced(left, 0, mine);
    expect_synced(left, crash_part_bytes, of_other);
  }
}

}  // namespace
}  // namespace cairn
