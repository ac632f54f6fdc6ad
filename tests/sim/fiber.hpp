// A stack of its own to run a function on, within one thread.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace cairn::sim {

/// Either the thread that switches to others first, or a function on a stack of its own. Only one
/// runs at a time. Never switch while an exception unwinds: its state belongs to the thread.
class Fiber {
 public:
  /// Stands for the code that calls switch_to() on another.
  Fiber() = default;
  /// `body` begins when this is first switched to. It must not return but end in leave_for().
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Stops here; returns when somebody switches back.
  void switch_to(Fiber& next);
  /// The same, never to return.
  [[noreturn]] void leave_for(Fiber& next);

 private:
  static void enter(unsigned high, unsigned low);
  void arrive();

  ucontext_t context_{};
  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  // What address sanitizer has to know of stacks.
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
  Fiber* came_from_ = nullptr;
};

}  // namespace cairn::sim
