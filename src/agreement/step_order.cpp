#include "agreement/step_order.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/bytes.hpp"
#include "base/checksum.hpp"

namespace cairn {

std::optional<std::int64_t> number_in(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || !std::isfinite(value) || std::signbit(value))
    return std::nullopt;
  // The bits of values that are not negative are in the order of the values.
  return std::bit_cast<std::int64_t>(value);
}

Step StepOrder::step_of(std::string_view text, bool begins_anew) {
  if (const auto number = number_in(text)) {
    if (*number > newest_) text_.reset();
    newest_ = std::max(newest_, *number);
    return {*number, 0};
  }
  if (!text_ || *text_ != text || begins_anew) {
    ++newest_;
    text_ = text;
  }
  return {newest_, crc32c(std::as_bytes(std::span(text)))};
}

}  // namespace cairn
