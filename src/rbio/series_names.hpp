// The names of files and directories in a series (docs/format/rbio-part.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbio/attempt.hpp"

namespace cairn::rbio {

inline constexpr std::string_view work_directory = ".rbio";
inline constexpr std::string_view marker_start = "done.";
/// More than a done marker has.
inline constexpr std::uint64_t longest_marker = 4096;

/// One writing of a step, below .rbio.
struct AttemptName {
  Attempt attempt;
  std::uint64_t step = 0;
};

std::string step_name(std::uint64_t step);
std::string part_name(std::uint32_t part);
std::string attempt_name(const AttemptName& named);
/// Of a published step that another replaces.
std::string removed_name(std::uint64_t step);
/// Of an attempt that has failed: not the name that a step may have at the same time.
std::string removed_name(const AttemptName& named);
std::string marker_name(std::uint32_t writer);

/// Nothing for any other name than those above.
std::optional<std::uint64_t> parse_step_name(std::string_view name);
std::optional<AttemptName> parse_attempt_name(std::string_view name);
/// The step, of both.
std::optional<std::uint64_t> parse_removed_name(std::string_view name);
std::optional<std::uint64_t> parse_marker_name(std::string_view name);

}  // namespace cairn::rbio
