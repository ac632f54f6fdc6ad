// Parses the text of a configuration file and of an SCR_Config call to entries.
//
//   KEY=VALUE                    one setting
//   KEY=VALUE KEY=VALUE ...      a descriptor: the first pair is the parent of the others
//   # comment                    from an unquoted # to the end of the line
//
// Keys have letters, digits and underscores, and are converted to upper case. In a value $NAME and
// ${NAME} are replaced from the environment, a backslash quotes the next character, "..." keeps
// blanks, and '...' keeps everything. Blanks are allowed around '='; with "KEY= NEXT=..." the value
// of KEY is empty. Pure functions: any bytes give entries or problems.
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

/// A word of a line. Only in a query may a word have no '=' and no value.
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
  int line = 0;  ///< from 1; 0 if it is not from a file
};

/// The words of one line. The error does not contain the place; the caller adds it.
Result<std::vector<Word>> parse_words(std::string_view line, const Lookup& variable);

struct ParsedFile {
  std::vector<Entry> entries;
  std::vector<std::string> problems;  ///< one for each wrong line, with file and line number
};

/// All entries of a file's text.
ParsedFile parse_entries(std::string_view text, const std::string& file, const Lookup& variable);

/// Replaces $NAME and ${NAME} as in a file, and \$ by a dollar sign; nothing else is special. Fails
/// if a name is not set.
Result<std::string> expand_variables(std::string_view text, const Lookup& variable);

std::string upper_case(std::string_view text);

}  // namespace cairn
