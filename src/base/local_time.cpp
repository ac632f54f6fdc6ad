#include "base/local_time.hpp"

#include <array>
#include <charconv>
#include <ctime>

namespace cairn {
namespace {

constexpr std::string_view shape = "YYYY-MM-DDTHH:MM:SS";

/// The numbers between the separators; 0 for anything but digits.
std::array<int, 6> numbers_of(std::string_view text) {
  std::array<int, 6> numbers{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t digits = i == 0 ? 4 : 2;
    const char* from = text.data() + at;
    const auto [end, error] = std::from_chars(from, from + digits, numbers[i]);
    if (error != std::errc() || end != from + digits) return {};
    at += digits + 1;
  }
  return numbers;
}

bool has_shape(std::string_view text) {
  if (text.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool separator = shape[i] == '-' || shape[i] == ':' || shape[i] == 'T';
    if (separator ? text[i] != shape[i] : text[i] < '0' || text[i] > '9') return false;
  }
  return true;
}

}  // namespace

Result<std::int64_t> parse_local_time(std::string_view text) {
  if (!has_shape(text))
    return fail(Code::bad_argument, "\"{}\" is not a time: write it as {}, in local time", text,
                shape);
  const std::array<int, 6> numbers = numbers_of(text);
  std::tm fields = {};
  fields.tm_year = numbers[0] - 1900;
  fields.tm_mon = numbers[1] - 1;
  fields.tm_mday = numbers[2];
  fields.tm_hour = numbers[3];
  fields.tm_min = numbers[4];
  fields.tm_sec = numbers[5];
  fields.tm_isdst = -1;
  const auto time_s = static_cast<std::int64_t>(std::mktime(&fields));
  // mktime() changes times that do not exist (February 30, the missing hour in spring).
  if (time_s < 0 || time_s > latest_time_s || format_local_time(time_s) != text)
    return fail(Code::bad_argument,
                "the time \"{}\" does not exist here, or is before 1970: correct the date or the "
                "hour ({}, in local time)",
                text, shape);
  return time_s;
}

std::string format_local_time(std::int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm fields = {};
  if (::localtime_r(&time, &fields) == nullptr) return fmt::format("{} s since 1970", time_s);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", fields.tm_year + 1900,
                     fields.tm_mon + 1, fields.tm_mday, fields.tm_hour, fields.tm_min,
                     fields.tm_sec);
}

}  // namespace cairn
