// From the sources to the settings: a pure function, the same on every rank but for what differs
// between nodes.
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
  bool used = true;  ///< false: accepted, but this version does not act on it yet
  std::optional<std::uint64_t> bytes = {};  ///< of a size, which `value` holds as it was written
};

/// What `value` comes to, if it is a size.
std::optional<std::uint64_t> bytes_of(const Rule& rule, const Value& value);

struct ResolvedSettings {
  Settings settings;
  std::vector<ResolvedOption> options;  ///< the table's, in its order, then descriptors
  std::vector<std::string> warnings;    ///< what is probably not as the user meant it
  std::vector<std::string> notes;       ///< what is as meant, but worth a line

  /// An option, or a leaf as "CKPT=0 TYPE"; null when it is unknown.
  const ResolvedOption* find(const std::string& key) const;
  /// Its value; nothing when it is unknown or has none.
  std::optional<std::string> value_of(const std::string& key) const;
};

/// Fails with bad_setting on lines that are no settings, on values that are not allowed, and on
/// values that do not go together: all of them in one error, a line each where there are several.
/// Each names the key, the value, where it was set and the remedy. The warnings come last.
Result<ResolvedSettings> resolve(const SettingSources& sources);

}  // namespace cairn
