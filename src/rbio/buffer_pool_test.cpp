#include "rbio/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::rbio {
namespace {

constexpr std::uint64_t step_bytes = 10000;  // no whole pages

std::shared_ptr<StepBuffer> taken(BufferPool& pool, std::uint64_t bytes) {
  auto buffer = pool.take(bytes);
  EXPECT_TRUE(buffer) << buffer.error().text;
  return buffer ? *std::move(buffer) : nullptr;
}

TEST(BufferPool, ALimitOfExactlyTwoStepsHoldsTwo) {
  for (const std::uint64_t bytes : {step_bytes, std::uint64_t{8192}}) {
    BufferPool pool(nullptr, 2 * bytes, Log());
    EXPECT_NE(taken(pool, bytes), nullptr);
    EXPECT_NE(taken(pool, bytes), nullptr);
    EXPECT_EQ(taken(pool, bytes), nullptr);
    EXPECT_LE(pool.peak_bytes(), 2 * bytes);
  }
}

TEST(BufferPool, AStepThatHasGrownLeavesRoomForASecondOne) {
  BufferPool pool(nullptr, 2 * step_bytes, Log());
  taken(pool, step_bytes - 1000)->is_used = false;
  EXPECT_NE(taken(pool, step_bytes), nullptr);
  EXPECT_NE(taken(pool, step_bytes), nullptr);
  EXPECT_LE(pool.peak_bytes(), 2 * step_bytes);
}

TEST(BufferPool, WhereThereIsRoomAStepMayGrowWithoutANewBuffer) {
  BufferPool pool(nullptr, 10 * step_bytes, Log());
  taken(pool, step_bytes)->is_used = false;
  taken(pool, 2 * step_bytes)->is_used = false;
  const std::vector<std::uint64_t> before = pool.ids();
  EXPECT_NE(taken(pool, 2 * step_bytes + step_bytes / 2), nullptr);
  EXPECT_EQ(pool.ids(), before);
}

TEST(BufferPool, ASmallStepLeavesTheLargeBufferToALargeOne) {
  BufferPool pool(nullptr, 4 * step_bytes, Log());
  const auto small = taken(pool, step_bytes);
  taken(pool, 2 * step_bytes)->is_used = false;
  small->is_used = false;
  EXPECT_EQ(taken(pool, step_bytes / 2), small);
  EXPECT_NE(taken(pool, 2 * step_bytes), nullptr);
}

TEST(BufferPool, ThePeakStaysWhenBuffersGo) {
  BufferPool pool(nullptr, 4 * step_bytes, Log());
  const auto first = taken(pool, step_bytes);
  taken(pool, step_bytes)->is_used = false;
  first->is_used = false;
  const std::uint64_t peak = pool.peak_bytes();
  EXPECT_GE(peak, 2 * step_bytes);
  EXPECT_NE(taken(pool, step_bytes * 5 / 4), nullptr);  // both are too small
  EXPECT_EQ(pool.ids().size(), 1U);
  EXPECT_EQ(pool.peak_bytes(), peak);
}

/// Counts the bytes that are allocated now.
class CountedMemory final : public SharedMemory {
 public:
  Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    live_ += bytes;
    most_ = std::max(most_, live_);
    return std::make_unique<Counted>(Blob(bytes), live_);
  }
  Result<std::unique_ptr<Segment>> attach(const std::string& name, std::uint64_t) override {
    return fail(Code::io, "no other process has {}", name);
  }
  std::uint64_t most() const { return most_; }

 private:
  class Counted final : public Segment {
   public:
    Counted(Blob content, std::uint64_t& live) : content_(std::move(content)), live_(live) {}
    ~Counted() override { live_ -= content_.size(); }
    MutableBytes bytes() override { return content_; }
    const std::string& name() const override { return name_; }

   private:
    Blob content_;
    const std::string name_ = "counted";
    std::uint64_t& live_;
  };

  std::uint64_t live_ = 0;
  std::uint64_t most_ = 0;
};

/// The writer keeps its last job, which refers to its buffer.
TEST(BufferPool, AFreeBufferThatIsTooSmallTakesNoMemoryAlsoIfItIsStillReferredTo) {
  const auto memory = std::make_shared<CountedMemory>();
  BufferPool pool(memory, step_bytes, Log());
  const auto before = taken(pool, step_bytes * 6 / 10);
  before->is_used = false;
  const auto after = taken(pool, step_bytes * 7 / 10);
  ASSERT_NE(after, nullptr);
  EXPECT_LE(memory->most(), step_bytes);
  EXPECT_EQ(pool.peak_bytes(), memory->most());
}

TEST(BufferPool, AStepThatIsLargerThanTheLimitIsAnError) {
  BufferPool pool(nullptr, step_bytes, Log());
  EXPECT_NE(taken(pool, step_bytes), nullptr);
  EXPECT_EQ(pool.take(step_bytes + 1).error().code, Code::no_space);
}

}  // namespace
}  // namespace cairn::rbio
