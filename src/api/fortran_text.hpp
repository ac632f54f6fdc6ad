// Texts of Fortran programs, which are padded with blanks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "cairn_errors.h"

namespace cairn {

inline std::string trimmed(const char* text, std::size_t length) {
  while (length > 0 && text[length - 1] == ' ') --length;
  return {text, length};
}

/// Never truncates: a text that does not fit is an error.
inline int fill(char* text, std::size_t length, const char* value) {
  const std::size_t bytes = std::strlen(value);
  if (bytes > length) return CAIRN_E_BAD_ARGUMENT;
  std::fill(std::copy_n(value, bytes, text), text + length, ' ');
  return 0;
}

}  // namespace cairn
