// Plays every small world to its end: what is taken must be what a person would name who sees all
// of it at once.

#include <gtest/gtest.h>

#include <algorithm>

#include "restart/restart_world.hpp"

namespace cairn {
namespace {

using State = CacheState;
using Step = RestartStep;

/// What is there of one dataset.
enum class InCache { nothing, good, lost, of_others, quarantined };
enum class InPrefix { nothing, good, failed, quarantined, of_others, unread };
/// What happens to a run that tries it.
enum class Luck { works, is_damaged, fails_for_now };

struct World {
  InCache newer_cached{};   ///< begun at 30
  InCache older_cached{};   ///< at 10
  bool is_flushed = false;  ///< 30 is in the prefix directory as well
  InPrefix newer_listed{};  ///< at 40
  InPrefix older_listed{};  ///< at 20
  bool has_scr = false;     ///< SCR left one at 50
  bool is_away = false;     ///< nothing of the prefix directory can be read
  Luck luck{};              ///< of what is newer than 20 in the prefix directory; 20 always works
};

class Play {
 public:
  Play(const World& world, const Settings& settings) : world_(world), settings_(settings) {
    facts_.ranks = ranks_of_run;
    add_cached(world.newer_cached, 30);
    add_cached(world.older_cached, 10);
    if (world.is_away) {
      facts_.trouble = "the prefix directory is away";
      return;
    }
    add_listed(world.newer_listed, 40);
    if (world.is_flushed) facts_.listing.push_back(listed_at(30));
    add_listed(world.older_listed, 20);
    if (world.has_scr) {
      facts_.scr.unknown = {listed_at(50, 0)};
      facts_.scr.current = "50";
    }
  }

  /// The last decision; nothing if there is no end.
  std::optional<RestartDecision> run() {
    constexpr int most_steps = 12;
    for (int i = 0; i < most_steps; ++i) {
      const RestartDecision decision = decide_restart(facts_, settings_, attempts_);
      if (decision.is_last()) return decision;
      carry_out(decision);
    }
    return std::nullopt;
  }

  bool has_failed() const {
    return std::any_of(attempts_.begin(), attempts_.end(),
                       [](const RestartAttempt& attempt) { return attempt.has_failed(); });
  }
  bool has_asked_prefix() const { return !attempts_.empty(); }

 private:
  void add_cached(InCache what, int time) {
    if (what == InCache::nothing) return;
    const State state = what == InCache::lost        ? State::lost
                        : what == InCache::of_others ? State::other_ranks
                                                     : State::protected_;
    facts_.cached.push_back(cached_at(time, state));
    const bool is_flushed = time == 30 && world_.is_flushed;
    facts_.cached.back().there =
        what == InCache::quarantined
            ? is_flushed ? PrefixState::quarantined : PrefixState::held_back
        : is_flushed ? PrefixState::settled
                     : PrefixState::absent;
  }

  void add_listed(InPrefix what, int time) {
    if (what == InPrefix::nothing) return;
    if (what == InPrefix::unread) return facts_.unread.push_back(unread_at(time));
    DatasetRecord record =
        listed_at(time, what == InPrefix::of_others ? ranks_of_others : ranks_of_run);
    record.failed_us = what == InPrefix::failed ? 1 : 0;
    record.quarantined = what == InPrefix::quarantined;
    facts_.listing.push_back(record);
  }

  void carry_out(const RestartDecision& decision) {
    const int time = static_cast<int>(decision.dataset.time_us);
    const Luck luck = world_.is_away ? Luck::fails_for_now : time <= 20 ? Luck::works : world_.luck;
    if (luck == Luck::is_damaged && decision.step != Step::copy_first)
      return attempts_.push_back(is_damaged(decision.step, time));
    if (luck != Luck::works) return attempts_.push_back(failed_for_now(decision.step, time));
    attempts_.push_back(went_well(decision.step, time));
    switch (decision.step) {
      case Step::import_first:
        facts_.scr.unknown.clear();
        return insert(facts_.listing, listed_at(time));
      case Step::copy_first:
        insert(facts_.listing, listed_at(time));
        cached(time).there = PrefixState::settled;
        return;
      case Step::offer_copy:
        cached(time).state = State::offered;
        return;
      default:
        return take(time);
    }
  }

  CachedDataset& cached(int time) {
    return *std::find_if(facts_.cached.begin(), facts_.cached.end(),
                         [&](const auto& one) { return one.info.uuid.time_us == time; });
  }

  void take(int time) {
    std::erase_if(facts_.cached, [&](const auto& one) { return one.info.uuid.time_us == time; });
    CachedDataset taken = cached_at(time);
    taken.place = CachedDataset::Place::prefix;
    const auto older =
        std::find_if(facts_.cached.begin(), facts_.cached.end(),
                     [&](const auto& one) { return one.info.uuid < taken.info.uuid; });
    facts_.cached.insert(older, taken);
  }

  const World& world_;
  const Settings& settings_;
  RestartFacts facts_;
  RestartAttempts attempts_;
};

/// Says by itself, without the rules that are tested, what can be had.
class Onlooker {
 public:
  Onlooker(const World& world, const Settings& settings) : world_(world), settings_(settings) {}

  /// The time of the newest that a run could take; 0: none.
  int best() const {
    int best = 0;
    if (is_in_cache(world_.newer_cached)) best = can_read_caches() ? 30 : 0;
    if (is_in_cache(world_.older_cached)) best = std::max(best, can_read_caches() ? 10 : 0);
    if (!settings_.fetch || world_.is_away) return best;
    if (is_in_prefix(world_.older_listed)) best = std::max(best, 20);
    if (world_.luck != Luck::works) return best;
    if (world_.is_flushed) best = std::max(best, 30);
    if (is_in_prefix(world_.newer_listed)) best = std::max(best, 40);
    if (world_.has_scr) best = std::max(best, 50);
    return best;
  }

  /// Something that cannot be seen may be newer than this.
  bool is_anything_unknown_after(int time) const {
    if (!settings_.fetch) return false;
    return world_.is_away || (world_.newer_listed == InPrefix::unread && time < 40) ||
           (world_.older_listed == InPrefix::unread && time < 20);
  }

  bool has_others_anywhere() const {
    return world_.newer_cached == InCache::of_others || world_.older_cached == InCache::of_others ||
           world_.newer_listed == InPrefix::of_others || world_.older_listed == InPrefix::of_others;
  }

 private:
  static bool is_in_cache(InCache what) { return what == InCache::good; }
  bool can_read_caches() const { return !settings_.global_restart; }
  bool is_in_prefix(InPrefix what) const {
    return what == InPrefix::good ||
           (what == InPrefix::failed && settings_.on_fetch_fail == OnFetchFail::stop) ||
           (what == InPrefix::of_others && settings_.elastic);
  }

  const World& world_;
  const Settings& settings_;
};

template <class See>
void for_all_worlds(See see) {
  for (int newer_cached = 0; newer_cached < 5; ++newer_cached)
    for (int older_cached = 0; older_cached < 3; ++older_cached)
      for (int newer_listed = 0; newer_listed < 6; ++newer_listed)
        for (int older_listed = 0; older_listed < 6; ++older_listed)
          for (int bits = 0; bits < 8; ++bits)
            for (int luck = 0; luck < 3; ++luck) {
              World world;
              world.newer_cached = static_cast<InCache>(newer_cached);
              world.older_cached = static_cast<InCache>(older_cached);
              world.newer_listed = static_cast<InPrefix>(newer_listed);
              world.older_listed = static_cast<InPrefix>(older_listed);
              world.is_flushed = (bits & 1) != 0 && world.newer_cached == InCache::good;
              world.has_scr = (bits & 2) != 0;
              world.is_away = (bits & 4) != 0;
              world.luck = static_cast<Luck>(luck);
              see(world);
            }
}

std::string text_of(const World& world) {
  return fmt::format("caches 30:{} 10:{}, flushed {}, listed 40:{} 20:{}, scr {}, away {}, luck {}",
                     static_cast<int>(world.newer_cached), static_cast<int>(world.older_cached),
                     world.is_flushed, static_cast<int>(world.newer_listed),
                     static_cast<int>(world.older_listed), world.has_scr, world.is_away,
                     static_cast<int>(world.luck));
}

/// The first world in which something is wrong is enough to look at.
class RestartInEveryWorld : public testing::Test {
 protected:
  template <class Check>
  void play_all(Check check) {
    int worlds = 0;
    for_all_worlds([&](const World& world) {
      if (HasFailure()) return;
      ++worlds;
      Play play(world, settings_);
      const auto end = play.run();
      ASSERT_TRUE(end) << "no end: " << text_of(world);
      SCOPED_TRACE(text_of(world) + fmt::format(" -> {} {}: {}", name_of(end->step),
                                                end->dataset.time_us, end->why));
      check(world, Onlooker(world, settings_), play, *end);
    });
    EXPECT_TRUE(HasFailure() || worlds == 5 * 3 * 6 * 6 * 8 * 3);
  }

  Settings settings_ = usual_settings();
};

TEST_F(RestartInEveryWorld, TheNewestThatCanBeHadIsTakenAndNothingIsLostSilently) {
  settings_.on_mismatch = OnMismatch::fresh;
  play_all([](const World&, const Onlooker& onlooker, const Play& play,
              const RestartDecision& end) {
    const int best = onlooker.best();
    if (best != 0) {
      EXPECT_EQ(end.step, Step::take_cached);
      EXPECT_EQ(end.dataset.time_us, best);
    } else if (end.step != Step::refuse_for_now) {
      EXPECT_FALSE(onlooker.is_anything_unknown_after(0)) << "from scratch, though that is unknown";
    } else {
      EXPECT_TRUE(onlooker.is_anything_unknown_after(0) || play.has_failed());
    }
  });
}

TEST_F(RestartInEveryWorld, AnElasticRunTakesTheNewestOfAnyNumberOfRanks) {
  settings_.elastic = true;
  play_all([](const World& world, const Onlooker& onlooker, const Play& play,
              const RestartDecision& end) {
    if (world.newer_cached == InCache::of_others || world.older_cached == InCache::of_others)
      return;  // what is copied first may fail: see the tests of the session
    const int best = onlooker.best();
    if (best != 0) {
      EXPECT_EQ(end.dataset.time_us, best);
    } else {
      EXPECT_TRUE(end.step != Step::refuse_for_now || onlooker.is_anything_unknown_after(0) ||
                  play.has_failed());
    }
  });
}

TEST_F(RestartInEveryWorld, ARunOfOtherRanksIsRefusedOrTakesTheNewest) {
  play_all(
      [](const World& world, const Onlooker& onlooker, const Play&, const RestartDecision& end) {
        if (end.step == Step::refuse) {
          EXPECT_EQ(end.code, Code::wrong_ranks);
          EXPECT_TRUE(onlooker.has_others_anywhere());
        }
        if (world.newer_cached == InCache::of_others) {
          EXPECT_EQ(end.step, Step::refuse) << "it would be replaced";
        }
        if (end.step == Step::take_cached) {
          EXPECT_EQ(end.dataset.time_us, onlooker.best());
        }
      });
}

TEST_F(RestartInEveryWorld, WithStopNothingOlderTakesThePlaceOfWhatCannotBeHad) {
  settings_.on_fetch_fail = OnFetchFail::stop;
  settings_.on_mismatch = OnMismatch::fresh;
  play_all([](const World& world, const Onlooker& onlooker, const Play& play,
              const RestartDecision& end) {
    const int taken = static_cast<int>(end.dataset.time_us);
    if (end.step != Step::take_cached) return;
    EXPECT_FALSE(play.has_failed()) << "an older one in its place";
    EXPECT_FALSE(!world.is_away && onlooker.is_anything_unknown_after(taken));
    EXPECT_EQ(taken, onlooker.best());
  });
}

TEST_F(RestartInEveryWorld, WithFreshNoRunIsRefused) {
  settings_.on_fetch_fail = OnFetchFail::fresh;
  settings_.on_mismatch = OnMismatch::fresh;
  play_all(
      [](const World&, const Onlooker& onlooker, const Play& play, const RestartDecision& end) {
        EXPECT_FALSE(end.is_refusal());
        if (play.has_failed() || onlooker.is_anything_unknown_after(0)) return;
        EXPECT_EQ(end.step == Step::take_cached, onlooker.best() != 0);
        EXPECT_EQ(end.dataset.time_us, onlooker.best());
      });
}

TEST_F(RestartInEveryWorld, WithoutFetchThePrefixDirectoryIsNotAsked) {
  settings_.fetch = false;
  settings_.on_mismatch = OnMismatch::fresh;
  play_all(
      [](const World&, const Onlooker& onlooker, const Play& play, const RestartDecision& end) {
        EXPECT_FALSE(play.has_asked_prefix());
        EXPECT_EQ(end.dataset.time_us, onlooker.best());
      });
}

TEST_F(RestartInEveryWorld, AGlobalRestartReadsOnlyInThePrefixDirectory) {
  settings_.global_restart = settings_.fetch_bypass = true;
  settings_.on_mismatch = OnMismatch::fresh;
  play_all(
      [](const World& world, const Onlooker& onlooker, const Play&, const RestartDecision& end) {
        // Only the newest is copied.
        const int newest = world.newer_cached == InCache::good   ? 30
                           : world.older_cached == InCache::good ? 10
                                                                 : 0;
        const bool is_copied =
            !world.is_flushed && !world.is_away && (newest < 20 || world.luck == Luck::works);
        const int best = std::max(onlooker.best(), is_copied ? newest : 0);
        EXPECT_EQ(end.step == Step::take_cached, best != 0);
        EXPECT_EQ(end.dataset.time_us, best);
      });
}

}  // namespace
}  // namespace cairn
