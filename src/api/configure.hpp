// SCR_Config, without the form in which each language returns the answer.
#pragma once

#include <optional>
#include <string>

namespace cairn {

/// Local. Does what SCR_Config does, but returns an error code. `value`: the queried value, if it
/// exists.
int configure(const std::string& config, std::optional<std::string>& value) noexcept;

}  // namespace cairn
