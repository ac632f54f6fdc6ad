// The datasets that a user names, by number, name or UUID.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "records/dataset_info.hpp"

namespace cairn {

using WantedDatasets = std::vector<std::string>;  ///< none: all

inline bool is_named(const std::string& word, const Uuid& uuid, std::uint64_t number,
                     const std::string& name) {
  return word == name || word == std::to_string(number) || word == text_of(uuid);
}

inline bool is_wanted(const WantedDatasets& wanted, const Uuid& uuid, std::uint64_t number,
                      const std::string& name) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
           return is_named(word, uuid, number, name);
         });
}

}  // namespace cairn
