// Which backing directories are as fast as memory.
#include "crfs/passthrough.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace cairn {
namespace {

TEST(IsQuick, DistinguishesASlowDirectoryFromMemory) {
  int calls = 0;
  EXPECT_TRUE(is_quick([&] { return ++calls > 0; }));
  EXPECT_GT(calls, 10);
  EXPECT_FALSE(is_quick([] {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return true;
  }));
}

TEST(IsQuick, AFewSlowWritesOfManyDoNotCount) {
  int calls = 0;
  EXPECT_TRUE(is_quick([&] {
    if (++calls % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }));
}

TEST(IsQuick, ADirectoryThatCannotBeWrittenIsNot) {
  int calls = 0;
  EXPECT_FALSE(is_quick([&] { return ++calls < 10; }));
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace cairn
