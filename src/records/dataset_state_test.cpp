#include "records/dataset_state.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "records/dataset_record.hpp"
#include "records/state_words.hpp"

namespace cairn {
namespace {

using Names = std::set<std::string>;

Names words_in_backticks(const std::string& cell) {
  Names words;
  std::istringstream in(cell);
  std::string word;
  for (bool is_inside = false; std::getline(in, word, '`'); is_inside = !is_inside)
    if (is_inside) words.insert(word);
  return words;
}

/// The tables of docs/format/states.md below this heading: by state, what may follow.
std::map<std::string, Names> documented(const std::string& heading) {
  std::ifstream page(CAIRN_FORMAT_DOCS "/states.md");
  std::map<std::string, Names> rows;
  bool is_below = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) is_below = line == "## " + heading;
    if (!is_below || !line.starts_with("| `")) continue;
    const auto end = line.find('`', 3);
    rows[line.substr(3, end - 3)] =
        words_in_backticks(line.substr(line.rfind('|', line.size() - 2)));
  }
  return rows;
}

template <class Lives>
std::map<std::string, Names> in_code(const Lives& lives) {
  std::map<std::string, Names> rows;
  for (const auto& life : lives) {
    Names& next = rows[std::string(name_of(life.state))];
    for (std::size_t i = 0; i < prefix_states; ++i) {
      const auto state = static_cast<decltype(life.state)>(i);
      if (life.next.has(state)) next.insert(std::string(name_of(state)));
    }
  }
  return rows;
}

TEST(DatasetState, TheTableOfThePrefixDirectoryIsThatOfTheDocument) {
  EXPECT_EQ(in_code(prefix_life), documented("In the prefix directory"));
}

TEST(DatasetState, TheTableOfTheCachesIsThatOfTheDocument) {
  EXPECT_EQ(in_code(cache_life), documented("In the caches"));
}

TEST(DatasetState, WhatARunMayDeriveIsThatOfTheDocument) {
  std::map<std::string, Names> derived;
  for (const DerivedStates& states : derived_states)
    for (std::size_t i = 0; i < cache_states; ++i)
      if (const auto state = static_cast<CacheState>(i); may_be_derived(states.recorded, state))
        derived[std::string(name_of(states.recorded))].insert(std::string(name_of(state)));
  EXPECT_EQ(derived, documented("What a run derives"));
}

TEST(DatasetState, ThePairsOfStatesAreThoseOfTheDocument) {
  std::map<std::string, Names> limited;
  for (const StatePairs& pairs : state_pairs) {
    Names there;
    for (std::size_t i = 0; i < prefix_states; ++i)
      if (const auto state = static_cast<PrefixState>(i); may_exist_together(pairs.cached, state))
        there.insert(std::string(name_of(state)));
    if (there.size() < prefix_states) limited[std::string(name_of(pairs.cached))] = there;
  }
  EXPECT_EQ(limited, documented("In both"));
}

TEST(DatasetState, EveryStateHasItsRowAndANameOfItsOwn) {
  Names names;
  for (std::size_t i = 0; i < prefix_states; ++i) {
    EXPECT_EQ(prefix_life[i].state, static_cast<PrefixState>(i));
    names.insert(std::string(name_of(static_cast<PrefixState>(i))));
  }
  EXPECT_EQ(names.size(), prefix_states);
  names.clear();
  for (std::size_t i = 0; i < cache_states; ++i)
    names.insert(std::string(name_of(static_cast<CacheState>(i))));
  EXPECT_EQ(names.size(), cache_states);
}

TEST(DatasetState, EveryStateHasItsRowOfWords) {
  for (std::size_t i = 0; i < prefix_states; ++i)
    EXPECT_EQ(words_of(static_cast<PrefixState>(i)).state, static_cast<PrefixState>(i));
  for (std::size_t i = 0; i < cache_states; ++i)
    EXPECT_EQ(words_of(static_cast<CacheState>(i)).state, static_cast<CacheState>(i));
}

TEST(DatasetState, AStateThatIsListedHasAWordInTheManualAndAColourIfNoRestartTakesIt) {
  std::ifstream page(CAIRN_FORMAT_DOCS "/../man/cairn-index.1");
  std::stringstream manual;
  manual << page.rdbuf();
  for (std::size_t i = 0; i < prefix_states; ++i) {
    const auto state = static_cast<PrefixState>(i);
    const PrefixWords& words = words_of(state);
    EXPECT_EQ(!words.word.empty(), is_listed(state)) << name_of(state);
    EXPECT_EQ(words.colour.has_value(), is_listed(state) && !may_restart_from(state))
        << name_of(state);
    EXPECT_NE(manual.str().find(".Dv " + std::string(words.word)), std::string::npos)
        << name_of(state);
  }
}

TEST(DatasetState, NothingIsPublishedThatWasNotPlanned) {
  for (const PrefixLife& life : prefix_life) {
    const bool may_be = life.next.has(PrefixState::published);
    const bool was_there = is_listed(life.state) || life.state == PrefixState::dropped ||
                           life.state == PrefixState::unreadable;
    EXPECT_EQ(may_be, (was_there || life.state == PrefixState::planned) &&
                          life.state != PrefixState::published &&
                          life.state != PrefixState::settled)
        << name_of(life.state);
  }
}

/// What each of a state's consequences says, for all states at once.
TEST(DatasetState, ConsequencesOfTheStatesInThePrefixDirectory) {
  const auto all = [](bool (*is_so)(PrefixState)) {
    std::string states;
    for (std::size_t i = 0; i < prefix_states; ++i)
      if (const auto state = static_cast<PrefixState>(i); is_so(state))
        states += std::string(name_of(state)) + " ";
    return states;
  };
  EXPECT_EQ(all(is_listed), "published settled failed replaced quarantined ");
  EXPECT_EQ(all(may_restart_from), "published settled ");
  EXPECT_EQ(all(is_flushed), "published settled replaced quarantined dropped deleted ");
  EXPECT_EQ(all(is_held_back), "held_back quarantined ");
  EXPECT_EQ(all(is_given_up), "dropped deleting deleted ");
}

TEST(DatasetState, AStateOfTheCachesIsLostOrLeftAloneOrNeither) {
  using enum CacheState;
  for (const CacheState state : {incomplete, maybe_incomplete, unreadable, lost})
    EXPECT_TRUE(is_lost(state) && !is_left_alone(state)) << name_of(state);
  for (const CacheState state : {newer_format, left_alone})
    EXPECT_TRUE(is_left_alone(state) && !is_lost(state)) << name_of(state);
  for (const CacheState state : {absent, other_ranks, offered, committed, protected_})
    EXPECT_TRUE(!is_left_alone(state) && !is_lost(state)) << name_of(state);
}

TEST(DatasetState, ARecordThatSaysSeveralThingsHasTheStateThatDecides) {
  DatasetRecord record;
  EXPECT_EQ(state_of(record), PrefixState::published);
  record.settled = true;
  EXPECT_EQ(state_of(record), PrefixState::settled);
  record.failed_us = 1;
  EXPECT_EQ(state_of(record), PrefixState::failed);
  record.replaced_by = "dataset 6 (ckpt.6)";
  EXPECT_EQ(state_of(record), PrefixState::replaced);
  record.quarantined = true;
  EXPECT_EQ(state_of(record), PrefixState::quarantined);
  EXPECT_EQ(state_of_files(record), PrefixState::replaced);
}

}  // namespace
}  // namespace cairn
