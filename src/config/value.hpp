// The rule and the reading of one value of a setting.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cairn {

enum class ValueType {
  boolean,         ///< 0, 1, false, true, no, yes
  integer,         ///< from min to max
  bytes,           ///< a size from min to max
  percent,         ///< a number from 0 to 100, with or without a fraction
  fraction,        ///< a number from 0 to 1
  word,            ///< one of words, in upper or lower case
  group,           ///< the name of a failure group, in upper or lower case
  path,            ///< absolute; the result is normalised
  path_from_here,  ///< like path, after from_working_folder() has made it absolute
  component,       ///< becomes the name of one directory in a path
  text,            ///< anything
};

struct Rule {
  ValueType type = ValueType::text;
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::int64_t>::max();
  bool power_of_two = false;
  std::span<const std::string_view> words = {};
};

/// A value that has been read. `number` has booleans, integers, sizes and the index of a word;
/// `real` has percents and fractions; `text` has the others. The text is always in canonical form.
struct Value {
  std::uint64_t number = 0;
  double real = 0;
  std::string text;
};

/// For example "a whole number from 2 to 100000", to follow "write".
std::string allowed(const Rule& rule);

/// A value as written, and its source: "environment", "FILE:LINE", "SCR_Config" or "default".
struct Sourced {
  std::string value;
  std::string source;
};

/// Makes a relative path absolute, if the rule is path_from_here; returns other values unchanged.
Sourced from_working_folder(const Rule& rule, Sourced given, const std::string& working_folder);

/// Fails with bad_setting; the text has `key`, the value, its source and what is allowed.
Result<Value> read_value(const Rule& rule, const std::string& key, const Sourced& given);

}  // namespace cairn
