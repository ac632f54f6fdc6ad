// What the ranks have come to in each call of a run.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

#include "seam.hpp"
#include "trace.hpp"

namespace cairn::sim {

class Verdicts {
 public:
  explicit Verdicts(Trace& trace) : trace_(trace) {}

  /// A new run begins.
  void clear() { of_call_.clear(); }

  /// (c): every rank comes to the same.
  void compare(const std::string& call, const std::string& text) {
    const auto [first, is_first] = of_call_.emplace(call, text);
    if (first->second != text)
      throw Violation(
          fmt::format("(c) {}: one rank has '{}', another '{}'", call, first->second, text));
    if (is_first) trace_.say("{}: {}", call, text);
  }

 private:
  Trace& trace_;
  std::map<std::string, std::string> of_call_;
};

}  // namespace cairn::sim
