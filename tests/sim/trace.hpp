// What happened, as a hash; printed as well when asked for.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace cairn::sim {

class Trace {
 public:
  explicit Trace(bool print = false) : print_(print) {}

  /// A call of a rank at the seam.
  void call(std::uint64_t number, int rank, std::string_view what, std::string_view where,
            std::string_view to = {}) {
    add(static_cast<std::uint64_t>(rank));
    add(what);
    add(where);
    add(to);
    if (print_)
      fmt::print("{:>7} rank {:>2}  {} {}{}{}\n", number, rank, what, where,
                 to.empty() ? "" : " -> ", to);
  }

  /// Anything else worth reading in a trace.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    add(text);
    if (print_) fmt::print("        {}\n", text);
  }

  std::uint64_t hash() const { return hash_; }

 private:
  void add(std::uint64_t value) { hash_ = (hash_ ^ value) * prime; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(text.size());
  }

  static constexpr std::uint64_t prime = 1099511628211U;  // FNV-1a
  std::uint64_t hash_ = 14695981039346656037U;
  bool print_;
};

}  // namespace cairn::sim
