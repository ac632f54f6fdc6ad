#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

namespace cairn::interpose {

/// The name of a function as an argument of a template.
template <std::size_t N>
struct CallName {
  char text[N];
  consteval CallName(const char (&name)[N]) {  // NOLINT: a text is to be given as it is
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

/// The function of this name that comes after this library: libc's, or that of another preloaded
/// library. Null if there is none.
template <class F, CallName Name>
F* next_call() {
  static constinit std::atomic<void*> found{nullptr};
  void* address = found.load(std::memory_order_acquire);
  if (address == nullptr) {
    address = dlsym(RTLD_NEXT, Name.text);
    found.store(address, std::memory_order_release);
  }
  return reinterpret_cast<F*>(address);
}

/// Looks up the calls that may come from a signal handler or a child of vfork, where the loader's
/// lock is a danger.
void resolve_first_calls();

}  // namespace cairn::interpose

// NOLINTBEGIN(bugprone-macro-parentheses): a function in place of a name
#define CAIRN_NEXT(name) \
  (::cairn::interpose::next_call<std::remove_pointer_t<decltype(&::name)>, #name>())
#define CAIRN_WRAPPED extern "C" __attribute__((visibility("default")))
// NOLINTEND(bugprone-macro-parentheses)
