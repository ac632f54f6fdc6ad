// Merges the sources: environment, the user's file, SCR_Config, the system's file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/sources.hpp"
#include "config/value.hpp"

namespace cairn {

/// One STORE, CKPT or GROUPS line, its leaves merged from all layers.
struct Descriptor {
  std::string source;  ///< the highest layer that has the line
  std::map<std::string, Sourced, std::less<>> leaves;
};

/// By the value of the first key of the line.
using Descriptors = std::map<std::string, Descriptor>;

struct Layers {
  std::map<std::string, Sourced, std::less<>> values;           ///< by option, if a layer sets it
  std::map<std::string, Descriptors, std::less<>> descriptors;  ///< by "STORE", "CKPT", "GROUPS"
  std::vector<std::string> warnings;  ///< for keys that are unknown, or not allowed in their source
  std::vector<std::string> notes;     ///< for lines that are accepted, but not used yet
  std::vector<std::string> problems;  ///< for lines that cannot be used
};

/// For each key, and each leaf of a descriptor, the highest layer that sets it wins; within a layer
/// the last line. An empty value counts as not set.
Layers read_layers(const SettingSources& sources);

}  // namespace cairn
