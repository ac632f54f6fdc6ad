// One value of a setting: what is allowed, and reading it.
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
  word,            ///< one of words, in any case
  group,           ///< the name of a failure group, in any case
  path,            ///< absolute; comes out normalised
  path_from_here,  ///< as path, once from_working_folder() has made it absolute
  component,       ///< becomes one folder name of a path
  text,            ///< anything
};

struct Rule {
  ValueType type = ValueType::text;
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::int64_t>::max();
  bool power_of_two = false;
  std::span<const std::string_view> words = {};
};

/// A value that has been read: `number` for booleans, integers, sizes and the place of a word in
/// its list, `real` for percents and fractions, `text` for the others. The text is always in its
/// canonical form.
struct Value {
  std::uint64_t number = 0;
  double real = 0;
  std::string text;
};

/// "a whole number from 2 to 100000": completes "write ...".
std::string allowed(const Rule& rule);

/// A value as written, and where: "environment", "FILE:LINE", "SCR_Config" or "default".
struct Sourced {
  std::string value;
  std::string source;
};

/// A relative path of such an option, made absolute; other values as they are.
Sourced from_working_folder(const Rule& rule, Sourced given, const std::string& working_folder);

/// Fails with bad_setting, naming `key`, the value, its source and what is allowed.
Result<Value> read_value(const Rule& rule, const std::string& key, const Sourced& given);

}  // namespace cairn
