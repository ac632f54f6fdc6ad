#include "transfer/io_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cairn {
namespace {

TEST(IoThreads, EveryPieceIsDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    const auto background = make_background_thread();
    std::vector<std::atomic<int>> done(100);
    ASSERT_TRUE((IoThreads{*background, threads}.each(done.size(), [&](std::size_t at) {
      ++done[at];
      return Status{};
    })));
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(IoThreads, AsManyAtATimeAsTheyAreAndNoMore) {
  constexpr int threads = 3;
  const auto background = make_background_thread();
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  ASSERT_TRUE((IoThreads{*background, threads}.each(30, [&](std::size_t) {
    const int mine = ++now;
    for (int seen = most; mine > seen && !most.compare_exchange_weak(seen, mine);) continue;
    while (most < threads) std::this_thread::yield();  // ends only if so many come
    --now;
    return Status{};
  })));
  EXPECT_EQ(most, threads);
}

TEST(IoThreads, AfterAnErrorNothingIsBegun) {
  const auto foreground = make_foreground();
  std::size_t begun = 0;
  const Status done = IoThreads{*foreground, 1}.each(10, [&](std::size_t at) -> Status {
    ++begun;
    if (at == 3) return fail(Code::io, "piece {}", at);
    return {};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "piece 3");
  EXPECT_EQ(begun, 4U);
}

TEST(IoThreads, OfSeveralErrorsTheFirstPiecesIsTold) {
  const auto background = make_background_thread();
  std::atomic<int> there = 0;
  const Status done = IoThreads{*background, 2}.each(2, [&](std::size_t at) -> Status {
    ++there;
    while (there < 2) std::this_thread::yield();
    return fail(Code::io, "piece {}", at);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "piece 0");
}

}  // namespace
}  // namespace cairn
