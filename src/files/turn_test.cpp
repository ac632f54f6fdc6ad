#include "files/turn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace cairn {
namespace {

using namespace std::chrono_literals;

TEST(Turn, OneAtATime) {
  Turns turns;
  int running = 0, most = 0;  // guarded by the turns
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) {
      const Turn turn(turns, 1min);
      most = std::max(most, ++running);
      std::this_thread::yield();
      --running;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(most, 1);
}

TEST(Turn, AThreadThatWaitsTooLongGoesOnWithoutATurn) {
  Turns turns;
  std::optional<Turn> hanging(std::in_place, turns, 1min);
  EXPECT_TRUE(hanging->is_mine());
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Turn(turns, 10ms).is_mine());
  hanging.reset();
  EXPECT_TRUE(Turn(turns, 1min).is_mine());
}

}  // namespace
}  // namespace cairn
