#include "base/units.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace cairn {
namespace {

constexpr std::string_view unit_letters = "KMGTPE";

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// "", "B", "K", "KB", "KiB" ... -> power of 1024, or -1.
int power_of_unit(std::string_view unit) {
  std::string upper;
  for (const char c : unit) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper.empty() || upper == "B") return 0;
  const auto power = unit_letters.find(upper[0]);
  if (power == std::string_view::npos) return -1;
  const std::string_view rest = std::string_view(upper).substr(1);
  return rest.empty() || rest == "B" || rest == "IB" ? static_cast<int>(power) + 1 : -1;
}

std::string three_digits(double value, std::string_view unit) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::string number = fmt::format("{:.{}f}", value, decimals);
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + std::string(unit);
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  const int power =
      power_of_unit(trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data()))));
  if (error != std::errc() || power < 0)
    return fail(Code::bad_argument, "'{}' is not a size; write for example 4096, 64KB or 1GB",
                text);
  for (int i = 0; i < power; ++i) {
    if (number > std::numeric_limits<std::uint64_t>::max() / 1024)
      return fail(Code::bad_argument, "size '{}' is too large", text);
    number *= 1024;
  }
  return number;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t power = 0;
  while (value >= 1024 && power < unit_letters.size()) {
    value /= 1024;
    ++power;
  }
  return three_digits(value, std::string(1, unit_letters[power - 1]) + "iB");
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return three_digits(seconds * 1e6, "us");
  if (seconds < 1) return three_digits(seconds * 1e3, "ms");
  return three_digits(seconds, "s");
}

std::string format_first(const std::vector<std::string>& names, std::size_t of_all) {
  const std::size_t named = std::min(names.size(), most_named);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return of_all > named ? fmt::format("{} and {} more", text, of_all - named) : text;
}

std::string format_ranks(const std::vector<int>& ranks) {
  std::string pieces;
  std::size_t named = 0;
  for (std::size_t first = 0; first < ranks.size() && named < most_named; ++named) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    pieces += fmt::format("{}{}", named == 0 ? "" : ", ", ranks[first]);
    if (last > first) pieces += fmt::format("-{}", ranks[last]);
    first = last + 1;
    if (named + 1 == most_named && first < ranks.size())
      pieces += fmt::format(" and others, {} in all", ranks.size());
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + pieces;
}

}  // namespace cairn
