#include "fiber.hpp"

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cairn::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_size = 2 << 20;
void announce_switch(void** save, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(save, bottom, bytes);
}
void announce_arrival(void* saved, const void** old_bottom, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(saved, old_bottom, old_bytes);
}
#else
constexpr std::size_t stack_size = 512 << 10;
void announce_switch(void**, const void*, std::size_t) {}
void announce_arrival(void*, const void**, std::size_t*) {}
#endif

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      stack_(new std::byte[stack_size]),  // not zeroed: most of it is never touched
      stack_bottom_(stack_.get()),
      stack_bytes_(stack_size) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_size;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext hands over ints only.
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(std::uint64_t{self} >> 32), static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  const std::uint64_t address = (std::uint64_t{high} << 32) | low;
  auto* self = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(address));
  self->arrive();
  self->body_();
  std::abort();
}

/// Where we came from may be the thread's own stack, whose bounds are not known until now.
void Fiber::arrive() {
  announce_arrival(fake_stack_, &came_from_->stack_bottom_, &came_from_->stack_bytes_);
}

void Fiber::switch_to(Fiber& next) {
  next.came_from_ = this;
  announce_switch(&fake_stack_, next.stack_bottom_, next.stack_bytes_);
  swapcontext(&context_, &next.context_);
  arrive();
}

void Fiber::leave_for(Fiber& next) {
  next.came_from_ = this;
  announce_switch(nullptr, next.stack_bottom_, next.stack_bytes_);
  setcontext(&next.context_);
  std::abort();
}

}  // namespace cairn::sim
