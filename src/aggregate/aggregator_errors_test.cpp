// Failing calls of the backing file: which handles get the error, and which data remain.

#include <gtest/gtest.h>

#include <atomic>

#include "aggregate/test_files.hpp"

namespace cairn {
namespace {

AggregateOptions options(int threads) { return small_options(chunk, 4, 1, threads); }

/// Of the calls of that kind, the one of that number, from 0 on, fails.
auto failing(BackingCall::Kind kind, int number, Reaction how) {
  return [=, count = std::make_shared<std::atomic<int>>(0)](const BackingCall& call) {
    return call.kind == kind && (*count)++ == number ? how : Reaction{};
  };
}

class AggregatorErrorsWithThreads : public testing::TestWithParam<int> {
 protected:
  Aggregator aggregator{options(GetParam())};
  TestFile file{aggregator};
  TestFile other{aggregator};
};

TEST_P(AggregatorErrorsWithThreads, EachHandleGetsAnErrorOnce) {
  file.storage->script = failing(BackingCall::write, 1, {-ENOSPC});
  AggregatedFile::ErrorCursor first = file->opened(), second = file->opened(),
                              third = file->opened();
  AggregatedFile::ErrorCursor of_other = other->opened();
  ASSERT_EQ(0, other->append(Blob(10 * chunk)));
  ASSERT_EQ(0, file->append(Blob(10 * chunk)));
  EXPECT_EQ(-ENOSPC, file->drain(first));
  EXPECT_EQ(0, file->drain(first));
  EXPECT_EQ(0, file->sync(first, false));
  EXPECT_EQ(-ENOSPC, file->sync(second, true));
  EXPECT_EQ(0, file->drain(second));
  EXPECT_EQ(-ENOSPC, file->drain(third));
  EXPECT_EQ(0, other->drain(of_other));
  EXPECT_EQ(other.storage->content().size(), 10 * chunk);
  EXPECT_EQ(aggregator.statistics().errors, 1u);
  EXPECT_EQ(aggregator.statistics().pool_used_bytes, 0u);
}

TEST_P(AggregatorErrorsWithThreads, AnUnreportedErrorCanBeTakenOnce) {
  file.storage->script = failing(BackingCall::write, 0, {-ENOSPC});
  AggregatedFile::ErrorCursor open = file->opened();
  ASSERT_EQ(0, file->append(blob("x")));
  EXPECT_FALSE(file->has_failed());
  file->settle();
  EXPECT_EQ(-ENOSPC, file->take_unreported_error());
  EXPECT_EQ(0, file->take_unreported_error());
  EXPECT_TRUE(file->has_failed());
  AggregatedFile::ErrorCursor later = file->opened();
  EXPECT_EQ(0, file->drain(later));
  EXPECT_EQ(-ENOSPC, file->drain(open)) << "an open handle still gets the error";
}

TEST_P(AggregatorErrorsWithThreads, TwoConcurrentSyncsBothReturnTheError) {
  file.storage->script = failing(BackingCall::sync, 0, {-EIO, {}, std::chrono::milliseconds(100)});
  AggregatedFile::ErrorCursor first = file->opened(), second = file->opened();
  int seen_first = 0;
  std::thread other_thread([&] { seen_first = file->sync(first, false); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(-EIO, file->sync(second, false));
  other_thread.join();
  EXPECT_EQ(-EIO, seen_first);
}

TEST_P(AggregatorErrorsWithThreads, ANewHandleGetsAnUnreportedError) {
  file.storage->script = failing(BackingCall::write, 0, {-EIO});
  ASSERT_EQ(0, file->append(Blob(chunk)));
  file->settle();
  AggregatedFile::ErrorCursor next = file->opened(), beside = file->opened();
  EXPECT_EQ(-EIO, file->drain(next));
  EXPECT_EQ(-EIO, file->drain(beside));
  AggregatedFile::ErrorCursor later = file->opened();
  EXPECT_EQ(0, file->drain(later));
}

TEST_P(AggregatorErrorsWithThreads, ASecondErrorIsReportedToo) {
  file.storage->script = [](const BackingCall& call) {
    return Reaction{call.kind == BackingCall::write ? -EIO : 0};
  };
  AggregatedFile::ErrorCursor cursor = file->opened();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(0, file->append(Blob(1)));
    EXPECT_EQ(-EIO, file->drain(cursor));
    EXPECT_EQ(0, file->drain(cursor));
  }
}

TEST_P(AggregatorErrorsWithThreads, AllHandlesGetTheErrorOfAFailedSync) {
  file.storage->script = failing(BackingCall::sync, 0, {-EIO});
  AggregatedFile::ErrorCursor one = file->opened(), another = file->opened();
  ASSERT_EQ(0, file->append(Blob(1)));
  EXPECT_EQ(-EIO, file->sync(one, true));
  EXPECT_EQ(-EIO, file->drain(another));
  EXPECT_EQ(0, file->sync(one, true));
}

/// Only data of failed writes are lost, and the file ends behind the last byte that exists.
TEST_P(AggregatorErrorsWithThreads, OnlyWhatFailedIsLost) {
  file.storage->script = [](const BackingCall& call) {
    return Reaction{call.kind == BackingCall::write && call.range.begin == chunk ? -EIO : 0};
  };
  Blob content(3 * chunk, std::byte{'x'});
  ASSERT_EQ(0, file->append(content));
  EXPECT_EQ(file->size(), 3 * chunk);
  file->settle();
  EXPECT_EQ(file->size(), 3 * chunk);
  std::fill_n(content.begin() + chunk, chunk, std::byte{0});
  EXPECT_EQ(text(read_all(*file.file)), text(content));
  EXPECT_EQ(text(file.storage->content()), text(content));
}

TEST_P(AggregatorErrorsWithThreads, TheSizeIsThatOfWhatIsThere) {
  file.storage->script = [](const BackingCall& call) {
    return Reaction{call.kind == BackingCall::write && call.range.begin >= chunk ? -ENOSPC : 0};
  };
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(Blob(3 * chunk + 5)));
  EXPECT_EQ(-ENOSPC, file->drain(cursor));
  EXPECT_EQ(file->size(), chunk);
  ASSERT_EQ(0, file->append(blob("x")));
  Blob last(1);
  EXPECT_EQ(1, file->read(chunk, last));
  EXPECT_EQ(text(last), "x");
}

TEST_P(AggregatorErrorsWithThreads, WritesThatAreCutShortGoOn) {
  file.storage->script = [](const BackingCall&) { return Reaction{.bytes_most = 3}; };
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(blob("a text that takes several writes")));
  EXPECT_EQ(0, file->drain(cursor));
  EXPECT_EQ(text(file.storage->content()), "a text that takes several writes");
  EXPECT_EQ(aggregator.statistics().writes_out, file.storage->log_length());
}

TEST_P(AggregatorErrorsWithThreads, AnErrorAfterAShortWriteKeepsWhatWasWritten) {
  file.storage->script = [count = std::make_shared<int>(0)](const BackingCall& call) {
    if (call.kind != BackingCall::write) return Reaction{};
    return (*count)++ == 0 ? Reaction{.bytes_most = 3} : Reaction{-ENOSPC};
  };
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(blob("0123456789")));
  EXPECT_EQ(-ENOSPC, file->drain(cursor));
  EXPECT_EQ(file->size(), 3u);
  EXPECT_EQ(text(read_all(*file.file)), "012");
}

TEST_P(AggregatorErrorsWithThreads, AFailedWriteMayHaveWrittenSomeBytes) {
  file.storage->script = failing(BackingCall::write, 0, {.error = -EIO, .bytes_most = 3});
  ASSERT_EQ(0, file->append(blob("0123456789")));
  file->settle();
  EXPECT_EQ(file->size(), 3u);
  EXPECT_EQ(text(read_all(*file.file)), "012");
}

TEST_P(AggregatorErrorsWithThreads, AWriteOfNothingIsAnError) {
  file.storage->script = [](const BackingCall& call) {
    return call.kind == BackingCall::write ? Reaction{.bytes_most = 0} : Reaction{};
  };
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(blob("x")));
  EXPECT_EQ(-EIO, file->drain(cursor));
  EXPECT_EQ(file->size(), 0u);
}

TEST_P(AggregatorErrorsWithThreads, InterruptedCallsAreRepeated) {
  file.storage->script = [count = std::make_shared<std::atomic<int>>(0)](const BackingCall&) {
    return Reaction{(*count)++ % 3 != 2 ? -EINTR : 0};
  };
  AggregatedFile::ErrorCursor cursor = file->opened();
  ASSERT_EQ(0, file->append(blob("0123456789")));
  EXPECT_EQ(0, file->drain(cursor));
  EXPECT_EQ(text(read_all(*file.file)), "0123456789");
  EXPECT_EQ(aggregator.statistics().errors, 0u);
}

TEST_P(AggregatorErrorsWithThreads, AFailedReadReturnsItsError) {
  ASSERT_EQ(0, file->append(Blob(3 * chunk)));
  file->settle();
  file.storage->script = [](const BackingCall&) { return Reaction{-EIO}; };
  Blob buffer(chunk);
  EXPECT_EQ(-EIO, file->read(0, buffer));
  AggregatedFile::ErrorCursor cursor = file->opened();
  EXPECT_EQ(0, file->drain(cursor));
}

/// A failed write frees its memory for waiting writers.
TEST_P(AggregatorErrorsWithThreads, AFullBackingFileDoesNotBlockOtherFiles) {
  file.storage->script = [](const BackingCall&) { return Reaction{-ENOSPC}; };
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(0, file->append(Blob(chunk)));
    ASSERT_EQ(0, other->append(Blob(chunk)));
  }
  AggregatedFile::ErrorCursor cursor = file->opened(), of_other = other->opened();
  EXPECT_EQ(-ENOSPC, file->drain(cursor));
  EXPECT_EQ(0, other->drain(of_other));
  EXPECT_EQ(file->size(), 0u);
  EXPECT_EQ(other.storage->content().size(), 200 * chunk);
  EXPECT_EQ(aggregator.statistics().pool_used_bytes, 0u);
}

TEST(AggregatorErrors, TheSizeCountsWhatIsStillBeingWritten) {
  Aggregator aggregator(options(2));
  TestFile file(aggregator);
  Gate gate;
  file.storage->script = [&](const BackingCall& call) {
    if (call.range.begin == 0) {
      gate.wait_for(1);
      return Reaction{-EIO};
    }
    gate.pass();
    return Reaction{};
  };
  ASSERT_EQ(0, file->append(Blob(2 * chunk)));
  while (aggregator.statistics().pool_used_bytes > chunk) std::this_thread::yield();
  EXPECT_EQ(file->size(), 2 * chunk);
  gate.open();
  file->settle();
  EXPECT_EQ(file->size(), 2 * chunk);
}

INSTANTIATE_TEST_SUITE_P(Threads, AggregatorErrorsWithThreads, testing::Values(0, 1, 3));

}  // namespace
}  // namespace cairn
