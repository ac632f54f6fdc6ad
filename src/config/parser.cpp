#include "config/parser.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cairn {
namespace {

// Does not use <cctype>, which depends on the locale of the application.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

class LineReader {
 public:
  LineReader(std::string_view line, const Lookup& variable) : line_(line), variable_(variable) {}

  /// Skips blanks; false at the end of the line or at a comment.
  bool at_word() {
    skip_blanks();
    return !at_end() && line_[at_] != '#';
  }

  Result<Word> word() {
    Word word;
    word.key = upper_case(name());
    if (word.key.empty())
      return fail(Code::bad_setting, "'{}' cannot begin a key; write KEY=VALUE",
                  printable(line_[at_]));
    const std::size_t end_of_key = at_;
    skip_blanks();
    if (at_end() || line_[at_] != '=') {
      if (at_ == end_of_key && !at_end() && line_[at_] != '#')
        return fail(Code::bad_setting, "'{}' cannot be part of a key; write KEY=VALUE",
                    printable(line_[at_]));
      return word;
    }
    const bool spaced = at_ > end_of_key;
    ++at_;
    CAIRN_ASSIGN(word.value, value_after_equals(spaced));
    return word;
  }

  /// The rest of the line, as one value.
  Result<std::string> rest() {
    std::string value;
    while (!at_end()) {
      const char c = line_[at_++];
      if (c == '\\' && !at_end() && line_[at_] == '$')
        value += line_[at_++];
      else if (c == '$')
        CAIRN_TRY(expand(value));
      else
        value += c;
    }
    return value;
  }

 private:
  bool at_end() const { return at_ >= line_.size(); }
  void skip_blanks() {
    while (!at_end() && is_blank(line_[at_])) ++at_;
  }

  /// True if a key and its '=' come next.
  bool at_pair() {
    const std::size_t here = at_;
    const bool named = !name().empty();
    skip_blanks();
    const bool pair = named && !at_end() && line_[at_] == '=';
    at_ = here;
    return pair;
  }

  /// After "KEY= " the next pair may begin, and KEY is empty; after "KEY = " a value follows.
  Result<std::string> value_after_equals(bool spaced) {
    skip_blanks();
    if (!spaced && at_ > 0 && is_blank(line_[at_ - 1]) && at_pair()) return std::string();
    return value();
  }

  static std::string printable(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }

  std::string_view name() {
    const std::size_t begin = at_;
    while (!at_end() && is_name(line_[at_])) ++at_;
    return line_.substr(begin, at_ - begin);
  }

  Result<std::string> value() {
    std::string value;
    char quote = 0;
    while (!at_end() && (quote || (!is_blank(line_[at_]) && line_[at_] != '#'))) {
      const char c = line_[at_++];
      if (c == '\0') return fail(Code::bad_setting, "a value has a NUL byte");
      if (c == quote) {
        quote = 0;
      } else if (!quote && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == '\\' && quote != '\'') {
        if (at_end())
          return fail(Code::bad_setting, "a backslash ends the line; write \\\\ for one");
        value += line_[at_++];
      } else if (c == '$' && quote != '\'') {
        CAIRN_TRY(expand(value));
      } else {
        value += c;
      }
    }
    if (quote) return fail(Code::bad_setting, "the quote {} is not closed", quote);
    return value;
  }

  /// Reads what follows a '$'. Without a name it is a plain '$'.
  Status expand(std::string& value) {
    const bool braced = !at_end() && line_[at_] == '{';
    if (braced) ++at_;
    const std::string variable(name());
    if (braced && (at_end() || line_[at_] != '}' || variable.empty()))
      return fail(Code::bad_setting, "'${{' must be followed by a name and '}}'");
    if (braced) ++at_;
    if (variable.empty()) {
      value += '$';
      return {};
    }
    const auto found = variable_(variable);
    // An empty replacement could change a user's path to a path of the system.
    if (!found)
      return fail(Code::bad_setting, "${} is not set in the environment; set it or write \\$",
                  variable);
    value += *found;
    return {};
  }

  std::string_view line_;
  const Lookup& variable_;
  std::size_t at_ = 0;
};

/// A line without words has no entry, which is not an error.
Result<std::optional<Entry>> entry_of(std::vector<Word> words, int line) {
  if (words.empty()) return std::nullopt;
  for (const Word& word : words)
    if (!word.value)
      return fail(Code::bad_setting,
                  "'{}' has no value: write each setting as KEY=VALUE, and begin a comment with #",
                  word.key);
  Entry entry{words[0].key, *words[0].value, {}, line};
  for (std::size_t i = 1; i < words.size(); ++i)
    entry.children.push_back({std::move(words[i].key), *std::move(words[i].value)});
  return entry;
}

}  // namespace

Result<std::string> expand_variables(std::string_view text, const Lookup& variable) {
  return LineReader(text, variable).rest();
}

std::string upper_case(std::string_view text) {
  std::string upper;
  std::transform(text.begin(), text.end(), std::back_inserter(upper), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

Result<std::vector<Word>> parse_words(std::string_view line, const Lookup& variable) {
  LineReader reader(line, variable);
  std::vector<Word> words;
  while (reader.at_word()) {
    CAIRN_ASSIGN(Word word, reader.word());
    words.push_back(std::move(word));
  }
  return words;
}

ParsedFile parse_entries(std::string_view text, const std::string& file, const Lookup& variable) {
  ParsedFile parsed;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    auto entry = parse_words(line, variable).and_then([number](std::vector<Word> words) {
      return entry_of(std::move(words), number);
    });
    if (!entry)
      parsed.problems.push_back(fmt::format("{}:{}: {}; the line is: {}", file, number,
                                            entry.error().text, line.substr(0, 200)));
    else if (*entry)
      parsed.entries.push_back(**std::move(entry));
  }
  return parsed;
}

}  // namespace cairn
