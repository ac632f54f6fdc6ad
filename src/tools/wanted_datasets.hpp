// The datasets that a user names, by number, name or UUID.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/gather.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/unread.hpp"

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

/// Several datasets may have one number, and each may be all that is left of a run.
inline tl::unexpected<Error> fail_as_ambiguous(const std::string& word,
                                               const std::vector<std::string>& uuids) {
  return fail(Code::bad_argument, "{} datasets are called {}: name one by its UUID ({})",
              uuids.size(), word, fmt::join(uuids, ", "));
}

/// The dataset of a word: the newest of that name, else the one with the number or UUID. Null if
/// there is none, an error if there are several.
inline Result<const DatasetRecord*> find_dataset(const Listing& listing, const std::string& word) {
  if (const DatasetRecord* named = find_named(listing, word)) return named;
  const DatasetRecord* found = nullptr;
  std::vector<std::string> uuids;
  for (const DatasetRecord& record : listing) {
    if (!is_named(word, record.info.uuid, record.info.number, record.info.name)) continue;
    found = &record;
    uuids.push_back(text_of(record.info.uuid));
  }
  if (uuids.size() > 1) return fail_as_ambiguous(word, uuids);
  return found;
}

/// Where `known` is the one that a word names (null: none) of those that are known: io if it may
/// name one of these instead.
inline Status check_unread_name(const std::string& word, const std::string& prefix,
                                std::vector<UnreadDataset> unread,
                                const DatasetRecord* known = nullptr) {
  if (const auto uuid = parse_uuid(word))
    std::erase_if(unread, [&](const UnreadDataset& dataset) { return dataset.uuid != *uuid; });
  if (known == nullptr) return check_unread(UnreadMatters::find, unread, {{}, word, prefix});
  return check_unread(UnreadMatters::choose, unread,
                      {known->info.uuid, word + " (give its UUID)", prefix});
}

/// After a text that there is no such dataset: the option that is missing, where the first word is
/// a directory.
inline std::string text_of_directory(Files& files, const ProcessFacts& process,
                                     const WantedDatasets& wanted) {
  if (wanted.empty()) return "";
  const auto info = files.info(normalise(wanted.front(), process.working_folder) + "/.");
  if (!info || info->kind != Kind::folder) return "";
  return fmt::format("; {} is a directory: --prefix {} names it as the prefix directory",
                     wanted.front(), wanted.front());
}

/// For JSON: why the datasets cannot be read, a line each.
inline std::vector<std::string> reasons_of(const std::vector<UnreadDataset>& unread) {
  std::vector<std::string> reasons;
  for (const UnreadDataset& dataset : unread) reasons.push_back(dataset.why);
  return reasons;
}

}  // namespace cairn
