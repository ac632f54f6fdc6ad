#include "rbio/attempt.hpp"

#include <fmt/format.h>

#include <charconv>

namespace cairn::rbio {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || fmt::format("{}", number) != text)
    return std::nullopt;
  return number;
}

std::string text_of(const Attempt& attempt) {
  return fmt::format("{}-{}", attempt.generation, attempt.sequence);
}

std::optional<Attempt> parse_attempt(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto generation = parse_number(text.substr(0, dash));
  const auto sequence = parse_number(text.substr(dash + 1));
  if (!generation || !sequence) return std::nullopt;
  return Attempt{*generation, *sequence};
}

}  // namespace cairn::rbio
