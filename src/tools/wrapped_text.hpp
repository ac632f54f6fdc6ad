// Text in lines that fit a terminal.
#pragma once

#include <string>

namespace cairn {

/// Lines of at most 80 columns that begin with `indent` blanks; no newline at the end. A word that
/// is longer has a line of its own.
std::string wrapped(const std::string& text, std::size_t indent);

/// `name`, and `text` wrapped in the column beside it; below it if the name does not leave room.
std::string in_columns(const std::string& name, const std::string& text, std::size_t column);

}  // namespace cairn
