// What SCR_Config was told, and its little language:
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

/// One call. A change sets or, where the value is empty, unsets.
struct ConfigRequest {
  enum class Kind { change, query };
  Kind kind = Kind::query;
  Entry entry;       ///< of a query: key and, for a leaf, value
  std::string leaf;  ///< of a query: the leaf asked for, or empty
};

/// Fails with bad_setting on what is none of the forms.
Result<ConfigRequest> parse_request(const std::string& text, const Lookup& variable);

struct ConfigAnswer {
  std::optional<std::string> value;  ///< of a query
  std::vector<std::string> warnings;
};

/// The entries in the order in which they came. Whether a change is allowed at the time is for the
/// caller to decide.
class AppSettings {
 public:
  ConfigAnswer change(const Entry& request);

  /// `resolved` knows the settings in force (ResolvedSettings::value_of) and may know nothing yet;
  /// its answer comes before what was set here, because the environment overrides SCR_Config.
  ConfigAnswer query(const ConfigRequest& request, const Lookup& resolved) const;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Entry& entry_for(const Entry& request, bool is_descriptor);

  std::vector<Entry> entries_;
};

}  // namespace cairn
