// The datasets that a user names, by number, name or UUID.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "records/dataset_info.hpp"

namespace cairn {

using WantedDatasets = std::vector<std::string>;  ///< none: all

inline bool is_named(const std::string& word, const std::string& uuid, std::uint64_t number,
                     const std::string& name) {
  return word == name || word == std::to_string(number) || word == uuid;
}
inline bool is_named(const std::string& word, const Uuid& uuid, std::uint64_t number,
                     const std::string& name) {
  return is_named(word, text_of(uuid), number, name);
}

/// `uuid`: as above, or its text.
template <class AnyUuid>
bool is_wanted(const WantedDatasets& wanted, const AnyUuid& uuid, std::uint64_t number,
               const std::string& name) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
           return is_named(word, uuid, number, name);
         });
}

}  // namespace cairn
