#include "records/state_words.hpp"

#include <fmt/format.h>

#include <array>

namespace cairn {
namespace {

constexpr std::array<PrefixWords, prefix_states> prefix_words = [] {
  using enum PrefixState;
  return std::array<PrefixWords, prefix_states>{{
      {absent},
      {held_back, "", "is in quarantine"},
      {planned, "", "is copied to the prefix directory only in part"},
      {published, "published"},
      {settled, "published"},
      {failed, "failed", "has failed", Colour::red},
      {replaced, "replaced", "is replaced", Colour::red},
      {quarantined, "quarantined", "is in quarantine", Colour::yellow},
      {dropped, "", "was dropped by cairn index drop"},
      {deleting},
      {deleted, "", "was deleted from the prefix directory"},
      {unreadable, "", "cannot be read now"},
  }};
}();

constexpr std::array<CacheWords, cache_states> cache_words = [] {
  using enum CacheState;
  return std::array<CacheWords, cache_states>{{
      {absent},
      {incomplete, "it was not complete when its run ended"},
      {maybe_incomplete,
       "no part of it that is visible here is committed, and only a run with {ranks} ranks, as "
       "many as wrote it, can find out whether it is complete"},
      {unreadable, "none of its records can be read"},
      {newer_format, "its records are in a newer format"},
      {left_alone, "the run does not use it, because SCR_DISTRIBUTE=0"},
      {other_ranks, "it was written by {ranks} ranks"},
      {offered},
      {committed},
      {lost, "it cannot be made whole"},
      {written, "",
       "written, but not protected: that survives the death of processes, and not the loss of a "
       "node"},
      {protected_},
  }};
}();

}  // namespace

const PrefixWords& words_of(PrefixState state) {
  return prefix_words.at(static_cast<std::size_t>(state));
}

std::string cause_of_replacement(std::string_view newer) {
  return fmt::format("{} has overwritten some of its files",
                     newer.empty() ? "a newer dataset" : newer);
}

const CacheWords& words_of(CacheState state) {
  return cache_words.at(static_cast<std::size_t>(state));
}

}  // namespace cairn
