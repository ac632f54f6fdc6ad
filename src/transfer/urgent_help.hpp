// Copies by a thread of idle priority, and by another one of normal priority as soon as they are
// urgent.
#pragma once

#include <exception>
#include <memory>
#include <mutex>

#include "files/background.hpp"
#include "files/clock.hpp"
#include "transfer/pace.hpp"

namespace cairn {

/// A thread of idle priority gets nothing of a core that the program keeps busy, and a process may
/// not raise a priority that it has lowered. So another thread waits for the time when the copies
/// are urgent (Pace::is_urgent()), and then takes pieces of the same work.
class UrgentHelp final : public Background {
 public:
  /// All must outlive this.
  UrgentHelp(Background& background, Clock& clock, Pace& pace)
      : background_(background), clock_(clock), pace_(pace) {}

  /// Starts the thread that waits; by a thread of normal priority. Without a thread all work is the
  /// caller's of in_parallel().
  void begin();
  /// Ends it, after the piece that it works on.
  void end() { thread_.reset(); }

  void post(std::uint64_t bytes, std::function<void()> task) override {
    background_.post(bytes, std::move(task));
  }
  void wait() override { background_.wait(); }
  std::unique_ptr<Repeated> repeat(std::int64_t period_us, std::function<void()> task) override {
    return background_.repeat(period_us, std::move(task));
  }
  /// By the caller, and by the thread that waits, whatever `threads` is.
  void in_parallel(int threads, const std::function<void()>& work) override;

 private:
  std::int64_t help();
  bool is_helping() const;
  void withdraw();

  Background& background_;
  Clock& clock_;
  Pace& pace_;
  mutable std::mutex mutex_;
  const std::function<void()>* work_ = nullptr;  ///< guarded by mutex_, as the next two
  bool is_helping_ = false;
  std::exception_ptr thrown_;         ///< by the work that helped
  std::unique_ptr<Repeated> thread_;  ///< the last member: it uses the others
};

}  // namespace cairn
