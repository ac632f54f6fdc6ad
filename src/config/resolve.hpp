// Computes the settings from the sources: a pure function, with the same result on every rank
// except for what differs between nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "config/sources.hpp"
#include "config/value.hpp"

namespace cairn {

struct ResolvedOption {
  std::string key;  ///< "SCR_DEBUG", or "CKPT=0 TYPE" for a leaf of a descriptor
  std::string value;
  std::string source;  ///< "environment", "FILE:LINE", "SCR_Config", "default", ...
  std::string help;
  bool used = true;                         ///< false: accepted, but without effect in this version
  std::optional<std::uint64_t> bytes = {};  ///< of a size; `value` has the text as written
};

/// The number of bytes, if the value is a size.
std::optional<std::uint64_t> bytes_of(const Rule& rule, const Value& value);

struct ResolvedSettings {
  Settings settings;
  std::vector<ResolvedOption> options;  ///< in the order of the table, then descriptors
  std::vector<std::string> warnings;    ///< settings that the user probably meant differently
  std::vector<std::string> notes;       ///< correct settings that deserve a line in the log

  /// An option, or a leaf as "CKPT=0 TYPE"; null if it is unknown.
  const ResolvedOption* find(const std::string& key) const;
  /// Its value; nothing if it is unknown or has none.
  std::optional<std::string> value_of(const std::string& key) const;
};

/// Fails with bad_setting on wrong lines, values that are not allowed, and values that contradict
/// each other. One error has all of them, each on its own line, with key, value, source and remedy.
/// The warnings come last.
Result<ResolvedSettings> resolve(const SettingSources& sources);

}  // namespace cairn
