// What users read of the state of a dataset: in tables, JSON, messages and help. No other code has
// a word for a state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/colour.hpp"
#include "records/dataset_state.hpp"

namespace cairn {

struct PrefixWords {
  PrefixState state{};
  std::string_view word{};  ///< of cairn index, in tables and JSON; empty: it lists none of these
  std::string_view
      sentence{};  ///< after "it" or the name of the dataset; empty: no message needs it
  std::optional<Colour> colour{};  ///< of the word, if no restart takes the dataset
};
const PrefixWords& words_of(PrefixState state);

/// What has made a dataset `replaced`: "dataset 7 (ckpt.7) has overwritten some of its files".
/// `newer`: the label of that dataset; empty if it is unknown.
std::string cause_of_replacement(std::string_view newer);

struct CacheWords {
  CacheState state{};
  /// Why a run does not restore the dataset, with {ranks} for the number that wrote it; empty if it
  /// does. Messages add what is known of this dataset.
  std::string_view reason{};
  /// After "it is" or "it was"; empty: no message needs it.
  std::string_view sentence{};
};
const CacheWords& words_of(CacheState state);

}  // namespace cairn
