#include "records/dataset_state.hpp"

namespace cairn {

std::string_view name_of(PrefixState state) {
  constexpr std::array<std::string_view, prefix_states> names = {
      "absent",   "held_back",   "planned", "published", "settled", "failed",
      "replaced", "quarantined", "dropped", "deleting",  "deleted", "unreadable"};
  return names.at(static_cast<std::size_t>(state));
}

std::string_view name_of(CacheState state) {
  constexpr std::array<std::string_view, cache_states> names = {
      "absent",      "incomplete", "maybe_incomplete", "unreadable", "newer_format", "left_alone",
      "other_ranks", "offered",    "committed",        "lost",       "written",      "protected"};
  return names.at(static_cast<std::size_t>(state));
}

}  // namespace cairn
