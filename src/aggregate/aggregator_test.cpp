#include "aggregate/aggregator.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <thread>

#include "aggregate/lu_c_64.hpp"
#include "aggregate/test_files.hpp"

namespace cairn {
namespace {

AggregateOptions small(std::uint64_t chunks, int threads = 0) {
  AggregateOptions options;
  options.chunk_bytes = chunk;
  options.pool_bytes = chunks * chunk;
  options.write_bytes = 64 * chunk;
  options.io_threads = threads;
  return options;
}

TEST(Aggregator, MakesOneWriteOfWhatLiesTogether) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  for (const char* part : {"many ", "small ", "writes ", "become ", "a large ", "one"})
    ASSERT_EQ(0, file->append(blob(part)));
  EXPECT_EQ(text(read_all(*file.file)), "many small writes become a large one");
  EXPECT_TRUE(file.storage->content().empty());
  file->settle();
  EXPECT_EQ(text(file.storage->content()), "many small writes become a large one");
  ASSERT_EQ(file.calls(BackingCall::write).size(), 1u);
  EXPECT_EQ(file.calls(BackingCall::write)[0].pieces, 3);
  const AggregateStatistics statistics = aggregator.statistics();
  EXPECT_EQ(statistics.writes_in, 6u);
  EXPECT_EQ(statistics.bytes_in, 36u);
  EXPECT_EQ(statistics.writes_out, 1u);
  EXPECT_EQ(statistics.bytes_out, 36u);
  EXPECT_EQ(statistics.pool_used_bytes, 0u);
  EXPECT_EQ(statistics.pool_most_bytes, 3 * chunk);
}

TEST(Aggregator, WritesNothingThatWasNotWritten) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  ASSERT_EQ(0, file->write(2, blob("ab")));
  ASSERT_EQ(0, file->write(10, blob("cd")));
  ASSERT_EQ(0, file->write(50, blob("ef")));
  file->settle();
  const auto writes = file.calls(BackingCall::write);
  ASSERT_EQ(writes.size(), 3u);
  EXPECT_EQ(writes[0].range, (Range{2, 4}));
  EXPECT_EQ(writes[1].range, (Range{10, 12}));
  EXPECT_EQ(writes[2].range, (Range{50, 52}));
}

TEST(Aggregator, ReadsHolesAsZerosAndEndsAtTheEnd) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  ASSERT_EQ(0, file->write(40, blob("x")));
  Blob buffer(64, std::byte{7});
  ASSERT_EQ(41, file->read(0, buffer));
  buffer.resize(41);
  EXPECT_EQ(text(buffer), std::string(40, '\0') + "x");
  EXPECT_EQ(0, file->read(41, buffer));
  EXPECT_EQ(0, file->read(1000, buffer));
  EXPECT_EQ(file->size(), 41u);
}

TEST(Aggregator, TakesNothingBehindTheLargestFile) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(-EFBIG, file->write(most, blob("x")));
  EXPECT_EQ(-EFBIG, file->write(most + 1, blob("")));
  EXPECT_EQ(0u, file->size());
  EXPECT_EQ(aggregator.statistics().writes_in, 0u);
}

TEST(Aggregator, SyncsTheBackingFileAfterAllThatWasWritten) {
  Aggregator aggregator(small(8, 2));
  TestFile file(aggregator);
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->write(0, Blob(100)));
  ASSERT_EQ(0, file->sync(cursor, true));
  const auto log = file.storage->log();
  ASSERT_GE(log.size(), 2u);
  EXPECT_EQ(log.back().kind, BackingCall::sync);
  EXPECT_EQ(file.storage->content().size(), 100u);
}

TEST(Aggregator, ATruncatedFileIsNotWrittenWhereItWasCut) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  ASSERT_EQ(0, file->write(0, blob("0123456789abcdefghijklmnop")));
  ASSERT_EQ(0, file->resize(4));
  EXPECT_EQ(text(read_all(*file.file)), "0123");
  ASSERT_EQ(0, file->resize(8));
  EXPECT_EQ(text(read_all(*file.file)), std::string("0123\0\0\0\0", 8));
  file->settle();
  EXPECT_EQ(aggregator.statistics().bytes_out, 4u);
}

TEST(Aggregator, AResizeThatFailsLosesNothing) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  file.storage->script = [](const BackingCall& call) {
    return Reaction{call.kind == BackingCall::resize ? -EPERM : 0};
  };
  ASSERT_EQ(0, file->append(blob("all of it")));
  EXPECT_EQ(-EPERM, file->resize(3));
  EXPECT_EQ(text(read_all(*file.file)), "all of it");
}

TEST(Aggregator, WhatIsAbandonedIsNotWritten) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  ASSERT_EQ(0, file->append(Blob(100)));
  file->abandon();
  EXPECT_EQ(aggregator.statistics().pool_used_bytes, 0u);
  file.file.reset();
  EXPECT_TRUE(file.storage->log().empty());
}

TEST(Aggregator, WhatIsChangedInTheBackingFileComesAfterAllThatWasWritten) {
  Aggregator aggregator(small(8, 2));
  TestFile file(aggregator);
  ASSERT_EQ(0, file->append(Blob(100, std::byte{'a'})));
  EXPECT_EQ(-ENOTSUP, file->change_backing([&](BackingFile& backing) {
    EXPECT_EQ(file.storage->content().size(), 100u);
    EXPECT_EQ(0, backing.resize(2));
    return -ENOTSUP;
  }));
  EXPECT_EQ(file->size(), 2u);
  EXPECT_EQ(text(read_all(*file.file)), "aa");
}

TEST(Aggregator, ReadersWaitForAChangeAndGoOn) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  Gate gate;
  std::thread change([&] {
    EXPECT_EQ(0, file->change_backing([&](BackingFile& backing) {
      gate.pass();
      return backing.write_at(0, blob("changed")) == 7 ? 0 : -EIO;
    }));
  });
  gate.wait_for(1);
  std::thread reader([&] {
    Blob all(7);
    EXPECT_EQ(7, file->read(0, all));
    EXPECT_EQ(text(all), "changed");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(file.calls(BackingCall::read).size(), 0u);
  gate.open();
  change.join();
  reader.join();
}

/// The size that a reader goes by, and the bytes, are of one time.
TEST(Aggregator, ReadersWaitForAResize) {
  Aggregator aggregator(small(8));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = held_at(gate, BackingCall::resize);
  ASSERT_EQ(0, file->write(0, blob("01")));
  ASSERT_EQ(0, file->write(5, blob("56789")));
  std::thread resize([&] { EXPECT_EQ(0, file->resize(3)); });
  gate.wait_for(1);
  std::thread reader([&] {
    Blob all(10);
    EXPECT_EQ(3, file->read(0, all));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  gate.open();
  resize.join();
  reader.join();
}

/// A resize keeps memory in use. When it ends, the waiting writers free memory without any I/O
/// thread.
TEST(Aggregator, AWriterThatWaitsForMemoryGoesOnAfterAResize) {
  Aggregator aggregator(small(1, 0));
  TestFile file(aggregator), other(aggregator);
  Gate gate;
  file.storage->script = held_at(gate, BackingCall::resize);
  ASSERT_EQ(0, file->append(blob("something")));
  std::thread resize([&] { EXPECT_EQ(0, file->resize(4)); });
  gate.wait_for(1);
  std::thread writer([&] { EXPECT_EQ(0, other->append(blob("more"))); });
  while (aggregator.statistics().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  gate.open();
  resize.join();
  writer.join();
  EXPECT_EQ(text(file.storage->content()), "some");
  EXPECT_EQ(text(read_all(*other.file)), "more");
}

/// Else the list of the parts could grow larger than the chunk.
TEST(Aggregator, AChunkInVeryManyPartsIsWrittenEarly) {
  AggregateOptions options;
  options.chunk_bytes = options.pool_bytes = std::uint64_t{1} << 20;
  Aggregator aggregator(options);
  TestFile file(aggregator);
  Blob content(30'000);
  for (std::uint64_t at = 0; at < content.size(); at += 3) {
    content[at] = std::byte{'x'};
    ASSERT_EQ(0, file->write(at, blob("x")));
  }
  EXPECT_GT(aggregator.statistics().writes_out, 8000u);
  content.resize(file->size());
  EXPECT_EQ(text(read_all(*file.file)), text(content));
}

TEST(Aggregator, SettlesAllFiles) {
  Aggregator aggregator(small(8));
  TestFile one(aggregator), other(aggregator);
  ASSERT_EQ(0, one->append(blob("one")));
  ASSERT_EQ(0, other->append(blob("other")));
  aggregator.settle_all();
  EXPECT_EQ(text(one.storage->content()), "one");
  EXPECT_EQ(text(other.storage->content()), "other");
}

TEST(Aggregator, DiscardsWhatWouldBeWritten) {
  AggregateOptions options = small(2);
  options.discard = true;
  Aggregator aggregator(options);
  TestFile file(aggregator);
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(Blob(100)));
  EXPECT_EQ(0, file->drain(cursor));
  EXPECT_EQ(file->size(), 100u);
  EXPECT_TRUE(file.storage->log().empty());
}

TEST(Aggregator, ASlowFileGetsLargeWrites) {
  Aggregator aggregator(small(64, 1));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = held_at(gate);
  ASSERT_EQ(0, file->append(Blob(chunk)));
  gate.wait_for(1);
  for (int i = 0; i < 48 * 4; ++i) ASSERT_EQ(0, file->append(Blob(chunk / 4)));
  gate.open();
  file->settle();
  const auto writes = file.calls(BackingCall::write);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[1].range, (Range{chunk, 49 * chunk}));
}

TEST(Aggregator, NoWriteIsLargerThanAllowed) {
  for (const std::uint64_t write_bytes : {chunk / 4, chunk, 3 * chunk + 1}) {
    AggregateOptions options = small(64, 1);
    options.write_bytes = write_bytes;
    Aggregator aggregator(options);
    TestFile file(aggregator);
    ASSERT_EQ(0, file->append(Blob(40 * chunk)));
    file->settle();
    for (const BackingCall& call : file.calls(BackingCall::write))
      EXPECT_LE(call.range.end - call.range.begin, write_bytes);
    EXPECT_EQ(file.storage->content().size(), 40 * chunk);
  }
}

/// What is written while its window is under way waits for it, and is seen meanwhile.
TEST(Aggregator, AWindowIsWrittenOnceAtATimeAndInOrder) {
  Aggregator aggregator(small(8, 2));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = held_at(gate);
  ASSERT_EQ(0, file->write(0, blob("................")));
  gate.wait_for(1);
  ASSERT_EQ(0, file->write(4, blob("old")));
  ASSERT_EQ(0, file->write(4, blob("new")));
  EXPECT_EQ(text(read_all(*file.file)), "....new.........");
  std::thread settles([&] { file->settle(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(file.storage->log_length(), 0u);
  gate.open();
  settles.join();
  EXPECT_EQ(text(file.storage->content()), "....new.........");
  EXPECT_EQ(file.calls(BackingCall::write).size(), 2u);
  EXPECT_EQ(file.storage->violations(), "");
}

TEST(Aggregator, ADrainIsSharedAmongTheThreads) {
  Aggregator aggregator(small(8, 4));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = held_at(gate);
  for (const std::uint64_t window : {0, 1, 2, 3})
    ASSERT_EQ(0, file->write(window * chunk + 5, blob("apart")));
  std::thread drain([&] { file->settle(); });
  gate.wait_for(4);
  gate.open();
  drain.join();
}

TEST(Aggregator, ADrainDoesNotWaitForAbandonedData) {
  Aggregator aggregator(small(8, 1));
  TestFile busy(aggregator), file(aggregator);
  Gate gate;
  busy.storage->script = held_at(gate);
  ASSERT_EQ(0, busy->append(Blob(chunk)));
  gate.wait_for(1);
  ASSERT_EQ(0, file->append(blob("gone")));
  std::thread drain([&] { file->settle(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  file->abandon();
  drain.join();
  EXPECT_EQ(file.storage->log_length(), 0u);
  gate.open();
}

TEST(Aggregator, ADrainLeavesWhatComesLater) {
  AggregateOptions options = small(8, 0);
  options.write_bytes = chunk;
  Aggregator aggregator(options);
  TestFile file(aggregator);
  Gate first, second;
  file.storage->script = [&](const BackingCall& call) {
    if (call.range.begin == 0) first.pass();
    if (call.range.begin == chunk) second.pass();
    return Reaction{};
  };
  ASSERT_EQ(0, file->append(Blob(2 * chunk)));
  std::thread one([&] { file->settle(); });
  first.wait_for(1);
  std::thread other([&] { file->settle(); });
  second.wait_for(1);
  ASSERT_EQ(0, file->append(Blob(chunk)));
  second.open();
  while (aggregator.statistics().pool_used_bytes > 2 * chunk) std::this_thread::yield();
  first.open();
  one.join();
  other.join();
  EXPECT_EQ(file.storage->log_length(), 2u);
}

TEST(Aggregator, AWriterWaitsOnlyWhenMemoryIsUsedUp) {
  Aggregator aggregator(small(4, 1));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = held_at(gate);
  ASSERT_EQ(0, file->append(Blob(4 * chunk)));
  std::atomic<bool> taken = false;
  std::thread writer([&] {
    EXPECT_EQ(0, file->append(blob("more")));
    taken = true;
  });
  while (aggregator.statistics().waits == 0) std::this_thread::yield();
  EXPECT_FALSE(taken);
  EXPECT_EQ(file->size(), 4 * chunk);
  EXPECT_EQ(aggregator.statistics().pool_most_bytes, 4 * chunk);
  gate.open();
  writer.join();
  EXPECT_EQ(aggregator.statistics().waits, 1u);
  EXPECT_EQ(file->size(), 4 * chunk + 4);
}

TEST(Aggregator, FilesTakeTurns) {
  AggregateOptions options = small(64, 1);
  options.write_bytes = chunk;
  Aggregator aggregator(options);
  TestFile busy(aggregator), before(aggregator), many(aggregator), after(aggregator);
  Gate gate;
  busy.storage->script = held_at(gate);
  ASSERT_EQ(0, busy->append(Blob(chunk)));
  gate.wait_for(1);
  std::atomic<std::size_t> many_before = 0;
  for (TestFile* few : {&before, &after})
    few->storage->script = [&](const BackingCall&) {
      many_before += many.storage->log_length();
      return Reaction{};
    };
  ASSERT_EQ(0, before->append(Blob(chunk)));
  ASSERT_EQ(0, many->append(Blob(40 * chunk)));
  ASSERT_EQ(0, after->append(Blob(chunk)));
  gate.open();
  for (const TestFile* few : {&before, &after})
    while (few->storage->log_length() == 0) std::this_thread::yield();
  EXPECT_LE(many_before, 2u);
}

TEST(Aggregator, MemoryGoesToTheLongestWaitingWriter) {
  Aggregator aggregator(small(1, 1));
  TestFile holder(aggregator), first(aggregator), second(aggregator);
  Gate gate;
  holder.storage->script = held_at(gate);
  std::size_t first_before_second = 0;
  second.storage->script = [&](const BackingCall&) {
    first_before_second = first.storage->log_length();
    return Reaction{};
  };
  ASSERT_EQ(0, holder->append(Blob(chunk)));
  std::vector<std::thread> writers;
  for (TestFile* file : {&first, &second}) {
    writers.emplace_back([file] { EXPECT_EQ(0, file->file->append(Blob(chunk))); });
    while (aggregator.statistics().waits < writers.size()) std::this_thread::yield();
  }
  gate.open();
  for (std::thread& writer : writers) writer.join();
  second->settle();
  EXPECT_EQ(first_before_second, 1u);
}

/// Two writers that both need more than the pool take turns.
TEST(Aggregator, OneWriterDoesNotStarveAnother) {
  AggregateOptions options = small(4, 1);
  options.write_bytes = chunk;
  Aggregator aggregator(options);
  TestFile many(aggregator), few(aggregator);
  const auto slow = [](const BackingCall&) {
    return Reaction{.delay = std::chrono::microseconds(200)};
  };
  many.storage->script = few.storage->script = slow;
  std::thread flood([&] {
    for (int i = 0; i < 300; ++i) EXPECT_EQ(0, many->append(Blob(chunk)));
  });
  while (aggregator.statistics().waits == 0) std::this_thread::yield();
  const std::size_t before = many.storage->log_length();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(0, few->append(Blob(chunk)));
  EXPECT_LE(many.storage->log_length() - before, 60u);
  flood.join();
}

/// Takes all, at once, and keeps none of it.
class BottomlessFile final : public BackingFile {
 public:
  ssize_t write_at(std::uint64_t, Bytes data) override { return static_cast<ssize_t>(data.size()); }
  ssize_t write_pieces_at(std::uint64_t, const Bytes* pieces, int count) override {
    return std::accumulate(pieces, pieces + count, ssize_t{0}, [](ssize_t sum, Bytes piece) {
      return sum + static_cast<ssize_t>(piece.size());
    });
  }
  ssize_t read_at(std::uint64_t, MutableBytes) override { return 0; }
  int resize(std::uint64_t) override { return 0; }
  int sync(bool) override { return 0; }
  std::int64_t size() override { return 0; }
};

/// The processes of a node each write their image and close it. The backing file system is as fast
/// as can be; a slower one gets fewer writes.
TEST(Aggregator, MergesTheWritesOfLuC64) {
  Aggregator aggregator({});
  std::vector<std::thread> processes;
  for (int i = 0; i < lu_c_64::processes_per_node; ++i)
    processes.emplace_back([&aggregator, i] {
      AggregatedFile file(aggregator, std::make_unique<BottomlessFile>(), 0);
      AggregatedFile::ErrorCursor cursor = file.opened();
      const Blob largest(std::size_t{8} << 20);
      for (const std::uint64_t bytes : lu_c_64::writes(i))
        EXPECT_EQ(0, file.append(Bytes(largest).first(bytes)));
      EXPECT_EQ(0, file.drain(cursor));
      EXPECT_EQ(file.size(), lu_c_64::bytes_per_process);
    });
  for (std::thread& process : processes) process.join();
  const AggregateStatistics statistics = aggregator.statistics();
  EXPECT_EQ(statistics.writes_in, 7800u);
  EXPECT_EQ(statistics.bytes_in, 184'000'000u);
  EXPECT_EQ(statistics.bytes_out, 184'000'000u);
  EXPECT_LE(statistics.writes_out * 43, statistics.writes_in);
}

TEST(LuC64, HasTheSizesThatItsAuthorsSaw) {
  std::uint64_t writes = 0, bytes = 0, small_writes = 0, small_bytes = 0;
  std::uint64_t pages_writes = 0, pages_bytes = 0, large_writes = 0, large_bytes = 0;
  for (int process = 0; process < lu_c_64::processes_per_node; ++process) {
    EXPECT_EQ(lu_c_64::writes(process), lu_c_64::writes(process));
    for (const std::uint64_t size : lu_c_64::writes(process)) {
      ++writes;
      bytes += size;
      if (size < 64) ++small_writes, small_bytes += size;
      if (size >= 4096 && size < 16384) ++pages_writes, pages_bytes += size;
      if (size > 1 << 20) ++large_writes, large_bytes += size;
    }
  }
  const auto percent = [](std::uint64_t of, std::uint64_t all) {
    return 100.0 * static_cast<double>(of) / static_cast<double>(all);
  };
  EXPECT_EQ(writes, 7800u);
  EXPECT_EQ(bytes, 184'000'000u);
  EXPECT_NEAR(percent(small_writes, writes), 51, 0.5);
  EXPECT_NEAR(percent(small_bytes, bytes), 0.04, 0.005);
  EXPECT_NEAR(percent(pages_writes, writes), 36, 0.6);
  EXPECT_NEAR(percent(pages_bytes, bytes), 11, 0.5);
  EXPECT_NEAR(percent(large_writes, writes), 0.25, 0.01);
  EXPECT_NEAR(percent(large_bytes, bytes), 61, 0.5);
}

/// Small pieces, to one file after the other, each with more to come: of 64 chunks each would be
/// needed for another file before its next piece comes.
TEST(AggregatorCounts, MoreFilesThanChunksAreStillGathered) {
  constexpr int files = 100, rounds = 200, piece = 64;
  Aggregator aggregator(small_options(std::uint64_t{1} << 20, 64, 16, 2));
  std::vector<TestFile> written;
  for (int i = 0; i < files; ++i) written.emplace_back(aggregator);
  for (int round = 0; round < rounds; ++round)
    for (const TestFile& file : written) ASSERT_EQ(0, file->append(Blob(piece)));
  for (const TestFile& file : written) file->settle();
  const AggregateStatistics statistics = aggregator.statistics();
  EXPECT_EQ(statistics.bytes_out, std::uint64_t{files} * rounds * piece);
  EXPECT_LT(statistics.writes_out, statistics.writes_in * 6 / 10);
}

}  // namespace
}  // namespace cairn
