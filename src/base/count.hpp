// A count with its noun, as in a sentence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace cairn {

/// 1, "file" -> "1 file"; 2, "file" -> "2 files".
template <class Number>
std::string count_text(Number number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == Number{1} ? "" : "s");
}

}  // namespace cairn
