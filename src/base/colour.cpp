#include "base/colour.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace cairn {

bool is_colour_wanted(bool is_terminal, const char* no_color, const char* term) {
  const bool is_forbidden = no_color != nullptr && *no_color != '\0';
  return is_terminal && !is_forbidden && term != nullptr && std::string_view(term) != "dumb";
}

bool has_colour(int descriptor) {
  return is_colour_wanted(::isatty(descriptor) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
}

std::string coloured(std::string_view text, Colour colour) {
  const int code = colour == Colour::red ? 31 : colour == Colour::yellow ? 33 : 32;
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace cairn
