// The datasets that a user names, by number, name or UUID.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "prefix/fetch_order.hpp"

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

/// The one that a word names: the newest of that name, else that of the number or UUID. Null if
/// there is none.
inline const DatasetRecord* find_dataset(const Listing& listing, const std::string& word) {
  if (const DatasetRecord* named = find_named(listing, word)) return named;
  const auto found = std::find_if(listing.begin(), listing.end(), [&](const auto& record) {
    return is_named(word, record.info.uuid, record.info.number, record.info.name);
  });
  return found == listing.end() ? nullptr : &*found;
}

}  // namespace cairn
