// One writing of a step. A later one replaces an earlier one of the same step.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::rbio {

struct Attempt {
  std::uint64_t generation = 0;  ///< counts how often the series was opened for writing
  std::uint64_t sequence = 0;    ///< counts the steps since it was opened

  auto operator<=>(const Attempt&) const = default;
};

/// "GENERATION-SEQUENCE".
std::string text_of(const Attempt& attempt);
std::optional<Attempt> parse_attempt(std::string_view text);

/// Decimal digits without leading zeros.
std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace cairn::rbio
