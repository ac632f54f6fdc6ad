// The life of a dataset: its states in the prefix directory and in the caches, which follow each
// other, and what follows from each. docs/concepts.md draws them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace cairn {

/// Where several are true of a dataset, the one that decides what is done with it is its state:
/// state_of() (dataset_record.hpp) and state_in_prefix() (prefix/contents.hpp) alone say which.
enum class PrefixState : std::uint8_t {
  absent,       ///< nothing is known of it there
  held_back,    ///< only the caches may have it whole, and restarts from it have died too often
  planned,      ///< a flush is on its way; anybody who has the parts may finish it
  published,    ///< it is there; some files still have their staged names
  settled,      ///< it is there, every file under its own name
  failed,       ///< it is there, but a file was found damaged, or the program could not use it
  replaced,     ///< it is there, but a newer dataset has written files of the same names
  quarantined,  ///< no restart takes it: restarts from it have died, or a user put it there
  dropped,      ///< taken from the index; its records and files are kept
  deleting,     ///< taken out; its files are being removed
  deleted,      ///< gone; the caches and the scavenged copies are to forget it too
  unreadable,   ///< its record cannot be read now, and may be good
};

/// What the ranks' records say, and what a run makes of that.
enum class CacheState : std::uint8_t {
  absent,            ///< no node that is seen has a part of it
  incomplete,        ///< no rank has committed it: it is being written or removed, or was then
  maybe_incomplete,  ///< the same, as far as another number of ranks than wrote it can tell
  unreadable,        ///< none of its records can be read; a later run may find them readable
  newer_format,      ///< written by a later Cairn: never touched
  left_alone,        ///< never touched: a setting says so, or this run can do nothing with it
  other_ranks,       ///< committed by another number of ranks
  offered,           ///< the same; a restart from it copies it to the prefix directory first
  committed,         ///< to be restored, if what is left of it is enough
  lost,              ///< committed, but cannot be restored now
  written,           ///< every rank has its files, and none of them is protected yet
  protected_,        ///< every rank has its files, and they are protected as its record says
};

inline constexpr std::size_t prefix_states = 12;
inline constexpr std::size_t cache_states = 12;

/// "held_back", "protected".
std::string_view name_of(PrefixState state);
std::string_view name_of(CacheState state);

template <class State>
class StateSet {
 public:
  constexpr StateSet(std::initializer_list<State> states) {
    for (const State state : states) bits_ |= bit(state);
  }
  constexpr bool has(State state) const { return (bits_ & bit(state)) != 0; }

 private:
  static constexpr std::uint32_t bit(State state) { return 1U << static_cast<unsigned>(state); }
  std::uint32_t bits_ = 0;
};

// --- what follows from a state ---

/// The index lists it.
constexpr bool is_listed(PrefixState state) {
  using enum PrefixState;
  return StateSet{published, settled, failed, replaced, quarantined}.has(state);
}

constexpr bool may_restart_from(PrefixState state) {
  using enum PrefixState;
  return StateSet{published, settled}.has(state);
}

/// No cache needs to copy it there: it is there, or is not to come back. One that failed is copied
/// again.
constexpr bool is_flushed(PrefixState state) {
  using enum PrefixState;
  return StateSet{published, settled, replaced, quarantined, dropped, deleted}.has(state);
}

/// No restart takes what the caches have of it.
constexpr bool is_held_back(PrefixState state) {
  using enum PrefixState;
  return StateSet{held_back, quarantined}.has(state);
}

/// A user has given it up: no copy of it is kept or published.
constexpr bool is_given_up(PrefixState state) {
  using enum PrefixState;
  return StateSet{dropped, deleting, deleted}.has(state);
}

/// This run neither restores nor removes it.
constexpr bool is_left_alone(CacheState state) {
  using enum CacheState;
  return StateSet{newer_format, left_alone}.has(state);
}

/// It cannot be restored now, and goes once a newer one is committed.
constexpr bool is_lost(CacheState state) {
  using enum CacheState;
  return StateSet{incomplete, maybe_incomplete, unreadable, lost}.has(state);
}

// --- which follow each other ---

/// What one step of a process, a rename or the removal of a file, may make of a state. A power
/// failure may take it back to any that it had since the last sync.
struct PrefixLife {
  PrefixState state{};
  StateSet<PrefixState> next;
};
inline constexpr std::array<PrefixLife, prefix_states> prefix_life = [] {
  using enum PrefixState;
  return std::array<PrefixLife, prefix_states>{{
      {absent, {held_back, planned, dropped, deleted}},
      {held_back, {absent, planned, failed, quarantined, dropped, deleting, deleted}},
      // Taken back where a rename cannot be made durable; what it was to replace comes back then.
      {planned, {absent, held_back, published, settled, failed, replaced, quarantined, dropped}},
      {published, {settled, planned, failed, replaced, quarantined, dropped, deleting}},
      {settled, {planned, failed, replaced, quarantined, dropped, deleting}},
      {failed, {published, settled, planned, replaced, quarantined, dropped, deleting}},
      {replaced, {published, settled, failed, planned, quarantined, dropped, deleting}},
      {quarantined, {held_back, published, settled, failed, replaced, planned, dropped, deleting}},
      {dropped, {planned, published, settled, failed, replaced, quarantined, deleting}},
      {deleting, {absent, held_back, dropped, deleted}},
      {deleted, {absent, held_back, dropped}},
      // Once they can be read they turn out to be one of these; or their owner moves them.
      {unreadable, {published, settled, failed, replaced, quarantined, dropped, absent}},
  }};
}();

struct CacheLife {
  CacheState state{};
  StateSet<CacheState> next;
};
/// Only those that the records tell; the others are what a run makes of `committed`.
inline constexpr std::array<CacheLife, 4> cache_life = [] {
  using enum CacheState;
  return std::array<CacheLife, 4>{{
      {absent, {incomplete}},
      {incomplete, {absent, written, committed}},
      {written, {incomplete, absent, committed}},
      {committed, {incomplete, absent}},
  }};
}();

template <class Lives, class State>
constexpr bool is_in_life(const Lives& lives, State before, State after) {
  if (before == after) return true;
  for (const auto& life : lives)
    if (life.state == before) return life.next.has(after);
  return false;
}
constexpr bool may_follow(PrefixState before, PrefixState after) {
  return is_in_life(prefix_life, before, after);
}
constexpr bool may_follow(CacheState before, CacheState after) {
  return is_in_life(cache_life, before, after);
}

/// A flush begins with what is committed, and with what the program wrote in place. What had begun
/// before, or is there, needs no cache any more.
constexpr bool may_begin_flush(CacheState cached, bool in_place) {
  return in_place || cached == CacheState::committed;
}

}  // namespace cairn
