// Time and random numbers: the second part of the seam, so that a simulation can replay both.
#pragma once

#include <cstdint>
#include <memory>

namespace cairn {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Microseconds since 1970, UTC; may jump.
  virtual std::int64_t now_us() = 0;
  /// Microseconds since some start; never goes back.
  virtual std::int64_t steady_us() = 0;
  virtual void sleep_us(std::int64_t us) = 0;
  /// 64 random bits.
  virtual std::uint64_t random() = 0;
};

std::unique_ptr<Clock> make_system_clock();

}  // namespace cairn
