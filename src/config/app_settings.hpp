// The settings made with SCR_Config, and the syntax of its argument:
//
//   "KEY=VALUE"  set      "CKPT=0 TYPE=XOR SET_SIZE=16"  set leaves of a descriptor
//   "KEY="       unset    "CKPT=0 TYPE="                 unset a leaf
//   "KEY"        query    "CKPT=0 TYPE"                  query a leaf
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/parser.hpp"

namespace cairn {

/// One call. A change sets a value, or unsets it if the value is empty.
struct ConfigRequest {
  enum class Kind { change, query };
  Kind kind = Kind::query;
  Entry entry;       ///< of a query: the key, and the value of the descriptor if a leaf is queried
  std::string leaf;  ///< of a query: the queried leaf, or empty
};

/// Fails with bad_setting on any other text.
Result<ConfigRequest> parse_request(const std::string& text, const Lookup& variable);

struct ConfigAnswer {
  std::optional<std::string> value;  ///< of a query
  std::vector<std::string> warnings;
};

/// Keeps the entries in the order of the calls. The caller must check whether a change is allowed
/// at this time.
class AppSettings {
 public:
  ConfigAnswer change(const Entry& request);

  /// `resolved` looks up the settings in force (ResolvedSettings::value_of), of which there may be
  /// none yet. Its answer has precedence over the entries here, because the environment overrides
  /// SCR_Config.
  ConfigAnswer query(const ConfigRequest& request, const Lookup& resolved) const;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Entry& entry_for(const Entry& request, bool is_descriptor);

  std::vector<Entry> entries_;
};

}  // namespace cairn
