// The life of a dataset: its states in the prefix directory and in the caches, which follow each
// other, and what follows from each. docs/concepts.md draws them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace cairn {

/// If several are true of a dataset, its state is the one that decides what happens to it. Only
/// state_of() (dataset_record.hpp) and state_in_prefix() (prefix/contents.hpp) choose it.
enum class PrefixState : std::uint8_t {
  absent,       ///< the prefix directory knows nothing of it
  held_back,    ///< only the caches may have it whole, and restarts from it have died too often
  planned,      ///< its flush has begun; any process that has the parts may finish it
  published,    ///< it exists there; some files still have their staged names
  settled,      ///< it exists there, and every file has its own name
  failed,       ///< it exists, but a file is damaged, or the program could not use it
  replaced,     ///< it exists, but a newer dataset has written files of the same names
  quarantined,  ///< no restart takes it: restarts from it have died, or a user put it there
  dropped,      ///< not in the index any more; its records and files are kept
  deleting,     ///< not in the index any more; its files are being removed
  deleted,      ///< gone; caches and scavenged copies are to remove it too
  unreadable,   ///< its record cannot be read now, and may be good
};

/// What the ranks' records say, and what a run concludes from them.
enum class CacheState : std::uint8_t {
  absent,            ///< no node that this run sees has a part of it
  incomplete,        ///< no rank has committed it; it was being written or removed
  maybe_incomplete,  ///< probably the same; a run with other ranks cannot be sure
  unreadable,        ///< none of its records can be read; a later run may find them readable
  newer_format,      ///< written by a later Cairn: never touched
  left_alone,        ///< never touched: by a setting, or because this run cannot use it
  other_ranks,       ///< committed by another number of ranks
  offered,           ///< the same, and a restart copies it to the prefix directory first
  committed,         ///< a run restores it, if enough of it is left
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

/// No run copies it there from a cache: it exists there, or a user has given it up. A failed one is
/// copied again.
constexpr bool is_flushed(PrefixState state) {
  using enum PrefixState;
  return StateSet{published, settled, replaced, quarantined, dropped, deleted}.has(state);
}

/// No restart takes it, not even from the caches.
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

/// It cannot be restored now. A run removes it once a newer dataset is committed.
constexpr bool is_lost(CacheState state) {
  using enum CacheState;
  return StateSet{incomplete, maybe_incomplete, unreadable, lost}.has(state);
}

// --- which state may follow which ---

/// The states to which one step of a process (a rename, the removal of a file) may lead. A power
/// failure may return a dataset to any state that it had since the last sync.
struct PrefixLife {
  PrefixState state{};
  StateSet<PrefixState> next;
};
inline constexpr std::array<PrefixLife, prefix_states> prefix_life = [] {
  using enum PrefixState;
  return std::array<PrefixLife, prefix_states>{{
      {absent, {held_back, planned, dropped, deleted}},
      {held_back, {absent, planned, failed, quarantined, dropped, deleting, deleted}},
      // If a rename cannot be made durable, it is undone, and the older copy returns.
      {planned, {absent, held_back, published, settled, failed, replaced, quarantined, dropped}},
      {published, {settled, planned, failed, replaced, quarantined, dropped, deleting}},
      {settled, {planned, failed, replaced, quarantined, dropped, deleting}},
      {failed, {published, settled, planned, replaced, quarantined, dropped, deleting}},
      {replaced, {published, settled, failed, planned, quarantined, dropped, deleting}},
      {quarantined, {held_back, published, settled, failed, replaced, planned, dropped, deleting}},
      {dropped, {planned, published, settled, failed, replaced, quarantined, deleting}},
      {deleting, {absent, held_back, dropped, deleted}},
      {deleted, {absent, held_back, dropped}},
      // Its true state, once it can be read; or its owner has moved it.
      {unreadable, {published, settled, failed, replaced, quarantined, dropped, absent}},
  }};
}();

struct CacheLife {
  CacheState state{};
  StateSet<CacheState> next;
};
/// Only the states that records can express. A run derives the others from `committed`.
inline constexpr std::array<CacheLife, 4> cache_life = [] {
  using enum CacheState;
  return std::array<CacheLife, 4>{{
      {absent, {incomplete}},
      {incomplete, {absent, written, committed}},
      {written, {incomplete, absent, committed}},
      {committed, {incomplete, absent}},
  }};
}();

struct DerivedStates {
  CacheState recorded{};
  StateSet<CacheState> derived;
};
/// What a run may conclude from what the records express. It depends on its number of ranks, on its
/// settings, and on what the nodes still have.
inline constexpr std::array<DerivedStates, 4> derived_states = [] {
  using enum CacheState;
  return std::array<DerivedStates, 4>{{
      {absent, {absent}},
      {incomplete, {incomplete, maybe_incomplete, unreadable, newer_format}},
      {written, {written, protected_, lost, other_ranks, offered, left_alone, newer_format}},
      {committed, {written, protected_, lost, other_ranks, offered, left_alone, newer_format}},
  }};
}();
constexpr bool may_be_derived(CacheState recorded, CacheState derived) {
  for (const DerivedStates& states : derived_states)
    if (states.recorded == recorded) return states.derived.has(derived);
  return false;
}

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

// --- which states may exist at the same time ---

struct StatePairs {
  CacheState cached{};
  StateSet<PrefixState> there;
};
/// For each state that the records in the caches can express. A part of a dataset may be lost with
/// its node at any time, so these hold while all nodes are there.
inline constexpr std::array<StatePairs, 4> state_pairs = [] {
  using enum PrefixState;
  const StateSet<PrefixState> any{absent,   held_back,   planned, published, settled, failed,
                                  replaced, quarantined, dropped, deleting,  deleted, unreadable};
  return std::array<StatePairs, 4>{{
      {CacheState::absent, any},
      {CacheState::incomplete, any},
      // Nothing is copied that has no checksums yet.
      {CacheState::written, {absent, held_back, dropped, deleted}},
      {CacheState::committed, any},
  }};
}();
constexpr bool may_exist_together(CacheState cached, PrefixState there) {
  for (const StatePairs& pairs : state_pairs)
    if (pairs.cached == cached) return pairs.there.has(there);
  return true;
}

/// Only a committed dataset, or one that the program wrote in place, can begin a flush. It does not
/// matter for a flush that has begun, or has ended.
constexpr bool may_begin_flush(CacheState cached, bool in_place) {
  return in_place || cached == CacheState::committed;
}

}  // namespace cairn
