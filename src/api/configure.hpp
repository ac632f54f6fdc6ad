// SCR_Config, for each language to give its answer as it does.
#pragma once

#include <optional>
#include <string>

namespace cairn {

/// Local. What SCR_Config does; `value` is what was asked for, if it is there. What SCR_Config
/// would have returned if it returned what went wrong.
int configure(const std::string& config, std::optional<std::string>& value) noexcept;

}  // namespace cairn
