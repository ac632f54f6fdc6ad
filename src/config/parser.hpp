// The text of a configuration file, and of an SCR_Config call, as entries.
//
//   KEY=VALUE                    one setting
//   KEY=VALUE KEY=VALUE ...      a descriptor: the first pair is the parent of the others
//   # comment                    from an unquoted # to the end of the line
//
// Keys are letters, digits and underscores in any case, and come out in upper case. In a value
// $NAME and ${NAME} are replaced by the environment, a backslash takes the next character as it
// is, "..." keeps blanks, '...' keeps everything. Blanks may stand around '='; "KEY= NEXT=..."
// leaves KEY empty. Pure functions: any bytes give entries or problems.
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

/// The words of one line. The error says only what is wrong; the caller adds where.
Result<std::vector<Word>> parse_words(std::string_view line, const Lookup& variable);

struct ParsedFile {
  std::vector<Entry> entries;
  std::vector<std::string> problems;  ///< one for each line that is none; it names file and line
};

/// All entries of a file's text.
ParsedFile parse_entries(std::string_view text, const std::string& file, const Lookup& variable);

/// $NAME and ${NAME} replaced as in a file, \$ by a dollar sign; nothing else is special. An error
/// for a name that is not set.
Result<std::string> expand_variables(std::string_view text, const Lookup& variable);

std::string upper_case(std::string_view text);

}  // namespace cairn
