#include "config/value.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/units.hpp"
#include "config/parser.hpp"
#include "files/files.hpp"

namespace cairn {
namespace {

constexpr std::size_t max_component_bytes = 255;

std::optional<Value> read_boolean(const std::string& text) {
  const std::string upper = upper_case(text);
  if (upper == "1" || upper == "TRUE" || upper == "YES") return Value{1, 0, "1"};
  if (upper == "0" || upper == "FALSE" || upper == "NO") return Value{0, 0, "0"};
  return std::nullopt;
}

template <class Number>
std::optional<Number> read_number(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<Value> in_range(const Rule& rule, std::uint64_t number, const std::string& text) {
  const bool fits = number >= rule.min && number <= rule.max &&
                    (!rule.power_of_two || std::has_single_bit(number));
  return fits ? std::optional(Value{number, 0, text}) : std::nullopt;
}

std::optional<Value> read_integer(const Rule& rule, const std::string& text) {
  const auto number = read_number<std::uint64_t>(text);
  return number ? in_range(rule, *number, std::to_string(*number)) : std::nullopt;
}

std::optional<Value> read_size(const Rule& rule, const std::string& text) {
  const auto size = parse_bytes(text);
  return size ? in_range(rule, *size, text) : std::nullopt;
}

std::optional<Value> read_real(const std::string& text, double max) {
  const auto number = read_number<double>(text);
  // Written so that a NaN is not allowed.
  if (!number || !(*number >= 0 && *number <= max)) return std::nullopt;
  return Value{0, *number, text};
}

std::optional<Value> read_word(const Rule& rule, const std::string& text) {
  const std::string upper = upper_case(text);
  const auto word = std::find_if(rule.words.begin(), rule.words.end(),
                                 [&](std::string_view w) { return upper_case(w) == upper; });
  if (word == rule.words.end()) return std::nullopt;
  return Value{static_cast<std::uint64_t>(word - rule.words.begin()), 0, std::string(*word)};
}

bool has_control_byte(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::optional<Value> read_path(const std::string& text) {
  if (text.empty() || text[0] != '/' || has_control_byte(text)) return std::nullopt;
  return Value{0, 0, normalise(text, "/")};
}

std::optional<Value> read_component(const std::string& text) {
  const bool one = !text.empty() && text.size() <= max_component_bytes && text != "." &&
                   text != ".." && text.find('/') == std::string::npos && !has_control_byte(text);
  return one ? std::optional(Value{0, 0, text}) : std::nullopt;
}

std::optional<Value> read_any(const Rule& rule, const std::string& text) {
  switch (rule.type) {
    case ValueType::boolean:
      return read_boolean(text);
    case ValueType::integer:
      return read_integer(rule, text);
    case ValueType::bytes:
      return read_size(rule, text);
    case ValueType::percent:
      return read_real(text, 100);
    case ValueType::fraction:
      return read_real(text, 1);
    case ValueType::word:
      return read_word(rule, text);
    case ValueType::group:
      return Value{0, 0, upper_case(text)};
    case ValueType::path:
    case ValueType::path_from_here:
      return read_path(text);
    case ValueType::component:
      return read_component(text);
    case ValueType::text:
      return Value{0, 0, text};
  }
  return std::nullopt;
}

std::string allowed_size(const Rule& rule) {
  const bool bounded = rule.max < Rule{}.max;
  return fmt::format(
      "a size{}{}, for example 64KB",
      bounded ? " from " + format_bytes(rule.min) + " to " + format_bytes(rule.max) : "",
      rule.power_of_two ? " that is a power of two" : "");
}

std::string allowed_integer(const Rule& rule) {
  if (rule.max == Rule{}.max) return fmt::format("a whole number, {} or more", rule.min);
  return fmt::format("a whole number from {} to {}", rule.min, rule.max);
}

}  // namespace

std::string allowed(const Rule& rule) {
  switch (rule.type) {
    case ValueType::boolean:
      return "0 or 1";
    case ValueType::integer:
      return allowed_integer(rule);
    case ValueType::bytes:
      return allowed_size(rule);
    case ValueType::percent:
      return "a percentage from 0 to 100";
    case ValueType::fraction:
      return "a number from 0 to 1";
    case ValueType::word:
      return fmt::format("one of {}", fmt::join(rule.words, ", "));
    case ValueType::group:
      return "NODE, WORLD or a group of the GROUPS lines";
    case ValueType::path:
      return "an absolute path";
    case ValueType::path_from_here:
      return "a path";
    case ValueType::component:
      return fmt::format("the name of one directory: no '/', not '.' or '..', at most {} bytes",
                         max_component_bytes);
    case ValueType::text:
      return "any text";
  }
  return "";
}

Sourced from_working_folder(const Rule& rule, Sourced given, const std::string& working_folder) {
  const bool relative = !given.value.empty() && given.value[0] != '/';
  if (rule.type == ValueType::path_from_here && relative)
    given.value = normalise(given.value, working_folder);
  return given;
}

Result<Value> read_value(const Rule& rule, const std::string& key, const Sourced& given) {
  if (auto value = read_any(rule, given.value)) return *std::move(value);
  return fail(Code::bad_setting,
              "{}={} ({}) is not allowed: write {}, or remove it to get the default", key,
              given.value, given.source, allowed(rule));
}

}  // namespace cairn
