#include "tools/wrapped_text.hpp"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::size_t terminal_columns = 80;

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = terminal_columns;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column + 1 + length > terminal_columns) {
      lines += (lines.empty() ? "" : "\n") + std::string(indent, ' ');
      column = indent;
    } else {
      lines += ' ';
      ++column;
    }
    lines += text.substr(begin, length);
    column += length;
    begin = end + 1;
  }
  return lines;
}

std::string in_columns(const std::string& name, const std::string& text, std::size_t column) {
  const std::string right = wrapped(text, column);
  if (name.size() + 2 > column) return name + "\n" + right + "\n";
  return name + std::string(column - name.size(), ' ') +
         right.substr(std::min(column, right.size())) + "\n";
}

}  // namespace cairn
