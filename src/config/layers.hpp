// The sources laid over each other: environment, the user's file, SCR_Config, the system's file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/sources.hpp"
#include "config/value.hpp"

namespace cairn {

/// One STORE, CKPT or GROUPS line, its leaves merged from all layers.
struct Descriptor {
  std::string source;  ///< of the highest layer that names it
  std::map<std::string, Sourced, std::less<>> leaves;
};

/// By the value that names them.
using Descriptors = std::map<std::string, Descriptor>;

struct Layers {
  std::map<std::string, Sourced, std::less<>> values;  ///< by option; what no layer sets is absent
  std::map<std::string, Descriptors, std::less<>> descriptors;  ///< by "STORE", "CKPT", "GROUPS"
  std::vector<std::string> warnings;  ///< of what is unknown or not allowed where it stands
  std::vector<std::string> notes;     ///< of lines that are accepted but not used yet
  std::vector<std::string> problems;  ///< of lines that cannot be used
};

/// The highest layer that sets a key, or a leaf of a descriptor, wins; within a layer the last. A
/// value that is empty is not set.
Layers read_layers(const SettingSources& sources);

}  // namespace cairn
