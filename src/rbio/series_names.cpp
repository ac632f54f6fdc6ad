#include "rbio/series_names.hpp"

#include <fmt/format.h>

namespace cairn::rbio {
namespace {

constexpr std::string_view step_start = "step.";
constexpr std::string_view attempt_start = "attempt.";
constexpr std::string_view removed_start = "removed.";

std::optional<std::uint64_t> number_after(std::string_view start, std::string_view name) {
  if (!name.starts_with(start)) return std::nullopt;
  return parse_number(name.substr(start.size()));
}

}  // namespace

std::string step_name(std::uint64_t step) { return fmt::format("{}{}", step_start, step); }
std::string part_name(std::uint32_t part) { return fmt::format("part.{}.rbio", part); }
std::string removed_name(std::uint64_t step) { return fmt::format("{}{}", removed_start, step); }
std::string marker_name(std::uint32_t writer) { return fmt::format("{}{}", marker_start, writer); }

std::string attempt_name(const AttemptName& named) {
  return fmt::format("{}{}.{}", attempt_start, text_of(named.attempt), named.step);
}

std::string removed_name(const AttemptName& named) {
  return fmt::format("{}{}", removed_start, attempt_name(named));
}

std::optional<std::uint64_t> parse_step_name(std::string_view name) {
  return number_after(step_start, name);
}

std::optional<AttemptName> parse_attempt_name(std::string_view name) {
  if (!name.starts_with(attempt_start)) return std::nullopt;
  name.remove_prefix(attempt_start.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto attempt = parse_attempt(name.substr(0, dot));
  const auto step = parse_number(name.substr(dot + 1));
  if (!attempt || !step) return std::nullopt;
  return AttemptName{*attempt, *step};
}

std::optional<std::uint64_t> parse_removed_name(std::string_view name) {
  if (const auto step = number_after(removed_start, name)) return step;
  if (!name.starts_with(removed_start)) return std::nullopt;
  const auto named = parse_attempt_name(name.substr(removed_start.size()));
  return named ? std::optional(named->step) : std::nullopt;
}

std::optional<std::uint64_t> parse_marker_name(std::string_view name) {
  return number_after(marker_start, name);
}

}  // namespace cairn::rbio
