// The text of a configuration file, and of an SCR_Config call, as entries.
//
//   KEY=VALUE                    one setting
//   KEY=VALUE KEY=VALUE ...      a descriptor: the first pair is the parent of the others
//   # comment                    from an unquoted # to the end of the line
//
// Keys are letters, digits and underscores in any case, and come out in upper case. In a value
// $NAME and ${NAME} are replaced by the environment, a backslash takes the next character as it
// is, "..." keeps blanks, '...' keeps everything. No blanks around '='. Pure functions: any bytes
// give entries or an Error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace cairn {

/// A name's value, or nothing.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

/// A word of a line; without '=' it has no value, which only a query may have.
struct Word {
  std::string key;
  std::optional<std::string> value;
};

struct Pair {
  std::string key;
  std::string value;
};

struct Entry {
  std::string key;
  std::string value;
  std::vector<Pair> children;
  int line = 0;  ///< from 1; 0 when it is not from a file
};

/// The words of one line. The error tells only what is wrong, for the caller to say where.
Result<std::vector<Word>> parse_words(std::string_view line, const Lookup& variable);

/// All entries of a file's text. Errors are bad_setting and name `file`, the line and its text.
Result<std::vector<Entry>> parse_entries(std::string_view text, const std::string& file,
                                         const Lookup& variable);

std::string upper_case(std::string_view text);

}  // namespace cairn
