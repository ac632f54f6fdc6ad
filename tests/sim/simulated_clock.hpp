// The clock of a rank: the scheduler's.
#pragma once

#include "files/clock.hpp"
#include "seam.hpp"

namespace cairn::sim {

class SimulatedClock final : public Clock {
 public:
  SimulatedClock(Seam& seam, Chance& chance) : seam_(seam), chance_(chance) {}
  std::int64_t now_us() override {
    seam_.pass("now");
    return start_us + seam_.scheduler().now_us();
  }
  std::int64_t steady_us() override {
    seam_.pass("steady");
    return seam_.scheduler().now_us();
  }
  void sleep_us(std::int64_t us) override {
    seam_.pass("sleep");
    seam_.scheduler().sleep_us(us);
  }
  std::uint64_t random() override { return chance_.next(); }

 private:
  static constexpr std::int64_t start_us = 1'700'000'000'000'000;
  Seam& seam_;
  Chance& chance_;
};

}  // namespace cairn::sim
