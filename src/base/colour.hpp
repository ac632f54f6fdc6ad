// Colour on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

enum class Colour { red, yellow, green };

/// Follows https://no-color.org: no colour if NO_COLOR has a value. `no_color` and `term` are the
/// values of the environment, or nullptr.
bool is_colour_wanted(bool is_terminal, const char* no_color, const char* term);

/// The same for a descriptor of this process.
bool has_colour(int descriptor);

std::string coloured(std::string_view text, Colour colour);

}  // namespace cairn
