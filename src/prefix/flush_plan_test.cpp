// A flush that died is carried on by others, from what the plan and its markers say.
#include "prefix/flush_plan.hpp"

#include <fmt/ranges.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "prefix/unfinished.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class CarryOn : public PrefixFixture {
 protected:
  /// Dataset 1 is there; then a run dies in the flush of `dataset`.
  void die(int dataset, const RankHook& hook) {
    try {
      run([&](PrefixRank& rank) { (void)flush_dataset(rank, dataset); }, hook);
      FAIL() << "nothing died";
    } catch (const Crash&) {
    }
  }

  static bool is_marker(const FileOperation& operation) {
    return operation.name == "create" && operation.path.find("/done/0.") != std::string_view::npos;
  }

  /// Those who have done their part before the death, all others having made none of it.
  void die_after_the_parts_of(const std::set<int>& doers, int dataset = 2) {
    std::atomic<std::size_t> done = 0;
    die(dataset, [&](int rank, const FileOperation& operation) -> Status {
      const bool own_part = operation.path.find("/.cairn.") != std::string_view::npos;
      if (operation.name == "rename" && operation.to.starts_with(folder().datasets()))
        throw Crash{};
      if (doers.contains(rank) && is_marker(operation)) {
        ++done;
        return {};
      }
      // `width` are 2: the third comes when the first has ended.
      if (!doers.contains(rank) && own_part) {
        while (done < doers.size()) std::this_thread::yield();
        throw Crash{};
      }
      return {};
    });
  }

  std::vector<CachedPart> parts(const std::set<int>& of, int dataset = 2) const {
    std::vector<CachedPart> found;
    for (const int rank : of) found.push_back({info_of(dataset).uuid, rank, cached(dataset, rank)});
    return found;
  }

  /// The next run, of so many processes, of which each sees what `parts_of` returns. The datasets
  /// that it has published.
  std::vector<std::string> carry_on(
      int processes, const std::function<std::vector<CachedPart>(int process)>& parts_of,
      const RankHook& hook = nullptr) {
    std::vector<std::string> published;
    run(
        [&](PrefixRank& rank) {
          const std::vector<CachedPart> parts = parts_of(rank.comm.rank());
          Tidied found;
          const Status tidied = tidy(rank.comm, rank.site, parts, Unfinished::removed, &found);
          if (rank.comm.rank() != 0) return;
          left_ = tidied ? "" : tidied.error().text;
          given_up_ = fmt::format("{}", fmt::join(found.given_up, "; "));
          for (const DatasetRecord& record : found.published) published.push_back(record.info.name);
        },
        hook, processes);
    return published;
  }

  void begin() {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    flush_well(1);
  }

  using Names = std::vector<std::string>;
  std::string left_;      ///< by carry_on(): why something was
  std::string given_up_;  ///< what it has logged of that
};

TEST_F(CarryOn, WhatIsDoneIsNotDoneAgainAndNeedsNoCache) {
  begin();
  die_after_the_parts_of({0});
  std::set<std::string> made;
  const auto published = carry_on(
      1,
      [&](int) {
        return parts({1, 2});
      },
      [&](int, const FileOperation& operation) -> Status {
        if (operation.name == "create" && operation.path.find("/.cairn.") != std::string_view::npos)
          made.insert(name_of_path(std::string(operation.path)));
        return {};
      });
  EXPECT_EQ(published, Names({"ckpt.2"}));
  EXPECT_EQ(made.size(), 4U) << "two files of each of two ranks";
  for (const std::string& name : made) EXPECT_EQ(name.find(".0."), std::string::npos) << name;
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_FALSE(fs::exists(DatasetFolder::markers(folder().dataset(info_of(2)))));
  EXPECT_EQ(fetch_again(2), "");
}

TEST_F(CarryOn, WithoutAPartAllOfItIsRemoved) {
  begin();
  die_after_the_parts_of({0, 1});
  EXPECT_EQ(carry_on(2, [&](int process) { return parts({process}); }), Names());
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_EQ(fetch_again(2), "not listed");
  EXPECT_EQ(fetch_again(1), "");
}

/// However many processes there are, and whatever each has: also the same as another.
TEST_F(CarryOn, AnyNumberOfProcessesDoesEveryPartOnce) {
  for (const int processes : {1, 2, 3, 5}) {
    begin();
    die_after_the_parts_of({1});
    std::mutex mutex;
    std::map<std::string, int> made;
    const auto published = carry_on(
        processes,
        [&](int) {
          return parts({0, 2});
        },
        [&](int, const FileOperation& operation) -> Status {
          const std::scoped_lock lock(mutex);
          if (operation.name == "create" &&
              operation.path.find("/.cairn.") != std::string_view::npos)
            ++made[std::string(operation.path)];
          return {};
        });
    EXPECT_EQ(published, Names({"ckpt.2"})) << processes;
    EXPECT_EQ(made.size(), 4U);
    for (const auto& [path, times] : made) EXPECT_EQ(times, 1) << path;
    EXPECT_EQ(fetch_again(2), "");
  }
}

/// The caches being there, a plan that was made is carried out, wherever its run died.
TEST_F(CarryOn, AFlushThatDiedAtAnyStepIsEndedByTheNextRun) {
  int carried_on = 0;
  for (int victim = 0; victim < ranks; ++victim) {
    bool crashed = true;
    for (std::uint64_t step = 0; crashed; ++step) {
      begin();
      crashed = flush_crashes(2, victim, step);
      bool planned = fs::exists(folder().dataset(info_of(2)));
      for (const auto& entry : fs::directory_iterator(folder().root()))
        planned =
            planned || fs::exists(DatasetFolder::record(entry.path().string() + "/" +
                                                        DatasetFolder::folder_name(info_of(2))));
      carried_on += carry_on(1 + victim, [&](int) { return parts({0, 1, 2}); }).empty() ? 0 : 1;
      ASSERT_EQ(names_of_cairn(), Names()) << victim << " step " << step;
      ASSERT_EQ(fetch_again(planned ? 2 : 1), "") << victim << " step " << step;
    }
  }
  EXPECT_GT(carried_on, ranks);
}

/// Also of a run that carries on; and the next one has less left to do.
TEST_F(CarryOn, WhoDiesCarryingOnIsCarriedOn) {
  for (const int processes : {1, 2})
    for (int victim = 0; victim < processes; ++victim) {
      bool crashed = true;
      for (std::uint64_t step = 0; crashed; ++step) {
        begin();
        die_after_the_parts_of({0});
        crashed = false;
        try {
          carry_on(
              processes,
              [&](int) {
                return parts({1, 2});
              },
              [&](int rank, const FileOperation& operation) -> Status {
                if (rank != victim || operation.index < step) return {};
                crashed = true;
                throw Crash{};
              });
        } catch (const Crash&) {
        }
        carry_on(1, [&](int) { return parts({1, 2}); });
        ASSERT_EQ(names_of_cairn(), Names()) << processes << " step " << step;
        ASSERT_EQ(fetch_again(2), "") << processes << " step " << step;
      }
    }
}

TEST_F(CarryOn, AnErrorAtAnyStepLeavesAllOrNothing) {
  bool struck = true;
  for (std::uint64_t step = 0; struck; ++step) {
    begin();
    die_after_the_parts_of({0});
    struck = false;
    bool owned = false;
    std::uint64_t at = 0;
    carry_on(
        2,
        [&](int process) {
          if (process == 0) owned = true;
          return parts({1, 2});
        },
        [&](int rank, const FileOperation& operation) -> Status {
          if (rank != 0 || !owned || at++ != step) return {};
          struck = true;
          return fail(Code::io, "injected: {} {}", operation.name, operation.path);
        });
    carry_on(1, [&](int) { return parts({1, 2}); });
    ASSERT_EQ(names_of_cairn(), Names()) << "step " << step;
    ASSERT_EQ(fetch_again(fetch_again(2) == "not listed" ? 1 : 2), "") << "step " << step;
  }
}

TEST_F(CarryOn, AStagedFileThatIsGoneOrCutIsNotPublished) {
  for (const bool gone : {true, false}) {
    begin();
    die_after_the_parts_of({0, 1});
    for (const std::string& name : names_of_cairn())
      if (name.ends_with(".1.1")) fs::resize_file(prefix() + "/" + name, 5);
    for (const std::string& name : names_of_cairn())
      if (gone && name.ends_with(".1.1")) fs::remove(prefix() + "/" + name);
    EXPECT_EQ(carry_on(1, [&](int) { return parts({1, 2}); }), Names()) << gone;
    EXPECT_EQ(names_of_cairn(), Names());
    EXPECT_EQ(fetch_again(1), "");
  }
}

TEST_F(CarryOn, ADamagedCacheIsNotPublished) {
  begin();
  die_after_the_parts_of({0});
  const std::string damaged = cached(2, 1).file("ckpt/r1/f1");
  std::fstream(damaged, std::ios::binary | std::ios::in | std::ios::out).seekp(4000).put('#');
  EXPECT_EQ(carry_on(1, [&](int) { return parts({1, 2}); }), Names());
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_EQ(fetch_again(1), "");
}

/// Its files have the same names: they must not come over those of the newer one.
TEST_F(CarryOn, WhatIsOlderThanWhatIsThereIsNotCarriedOn) {
  begin();
  die_after_the_parts_of({0, 1, 2}, 2);
  run([&](PrefixRank& rank) { ASSERT_TRUE(flush_dataset(rank, 3)); });
  EXPECT_EQ(carry_on(1, [&](int) { return parts({0, 1, 2}); }), Names());
  EXPECT_EQ(fetch_again(3), "");
  EXPECT_EQ(names_of_cairn(), Names());
}

/// Also by a run for which nothing is newer any more: a marker that stands for several parts must
/// not outlive theirs.
TEST_F(CarryOn, WhoDiesGivingItUpLeavesNothingThatLooksDone) {
  const auto last_part = [&](int) { return parts({2}); };
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; ++step) {
    begin();
    die_after_the_parts_of({0, 1});
    const auto publishes = [&](int, const FileOperation& operation) -> Status {
      if (operation.to.starts_with(folder().datasets() + "/")) throw Crash{};
      return {};
    };
    EXPECT_THROW(carry_on(1, last_part, publishes), Crash) << "all parts are done";
    run([&](PrefixRank& rank) { ASSERT_TRUE(flush_dataset(rank, 3)); });
    crashed = false;
    const auto dies = [&](int, const FileOperation& operation) -> Status {
      crashed = crashed || operation.index >= step;
      if (crashed) throw Crash{};
      return {};
    };
    try {
      carry_on(1, last_part, dies);
    } catch (const Crash&) {
    }
    run([&](PrefixRank& rank) {
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.take_out(info_of(3)); }));
    });
    carry_on(1, last_part);
    ASSERT_EQ(names_of_cairn(), Names()) << "step " << step;
    const std::string fetched = fetch_again(2);
    ASSERT_TRUE(fetched.empty() || fetched == "not listed") << fetched << " step " << step;
  }
}

/// It is unknown then whose files have the same names.
TEST_F(CarryOn, WhatMayBeOlderThanOneThatCannotBeReadIsLeftAlone) {
  begin();
  die_after_the_parts_of({0, 1, 2}, 2);
  run([&](PrefixRank& rank) { ASSERT_TRUE(flush_dataset(rank, 3)); });
  fs::remove(folder().listing());
  const std::string record = DatasetFolder::record(folder().dataset(info_of(3)));
  const auto cannot_read = [&](int, const FileOperation& operation) -> Status {
    if (operation.name != "open" || operation.path != record) return {};
    return fail(Code::io, "injected: {} {}", operation.name, operation.path);
  };
  EXPECT_EQ(carry_on(
                1,
                [&](int) {
                  return parts({0, 1, 2});
                },
                cannot_read),
            Names());
  EXPECT_NE(left_.find("injected"), std::string::npos) << left_;
  run(
      [&](PrefixRank& rank) {
        const Status late = flush_dataset(rank, 2);
        ASSERT_FALSE(late);
        EXPECT_EQ(late.error().code, Code::io) << late.error().text;
        EXPECT_TRUE(flush_dataset(rank, 4)) << "it is newer";
      },
      cannot_read);
  EXPECT_EQ(carry_on(1, [&](int) { return parts({0, 1, 2}); }), Names());
  EXPECT_NE(given_up_.find("ckpt.2"), std::string::npos) << given_up_;
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_EQ(fetch_again(4), "");
}

/// It would be given its files' names later: over those of what is newer.
TEST_F(CarryOn, NothingGetsItsNamesBeforeAnOlderOneThatCannotBeRead) {
  begin();
  die_after_the_parts_of({0, 1, 2}, 2);
  fs::remove(folder().listing());
  fs::create_directory(DatasetFolder::markers(folder().dataset(info_of(1))));
  const std::string record = DatasetFolder::record(folder().dataset(info_of(1)));
  bool passed = false;
  const auto cannot_read = [&](int, const FileOperation& operation) -> Status {
    if (passed || operation.name != "open" || operation.path != record) return {};
    return fail(Code::io, "injected: {} {}", operation.name, operation.path);
  };
  const auto all = [&](int) { return parts({0, 1, 2}); };
  EXPECT_EQ(carry_on(1, all, cannot_read), Names());
  EXPECT_NE(left_.find("to be renamed"), std::string::npos) << left_;
  run(
      [&](PrefixRank& rank) {
        const Status flushed = flush_dataset(rank, 3);
        ASSERT_FALSE(flushed);
        EXPECT_EQ(flushed.error().code, Code::io) << flushed.error().text;
      },
      cannot_read);
  passed = true;
  EXPECT_EQ(carry_on(1, all), Names({"ckpt.2"}));
  EXPECT_EQ(fetch_again(2), "");
}

/// A user has given it up, and would get it back.
TEST_F(CarryOn, WhatWasDeletedSinceIsNotCarriedOn) {
  begin();
  die_after_the_parts_of({0});
  run([&](PrefixRank& rank) {
    DatasetRecord record;
    record.info = info_of(2);
    ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                          [&](Keeper& keeper) { return keeper.set_deleted({record}); }));
    std::vector<std::string> damaged;
    const Listing listing = *read_listing(*rank.files, folder(), damaged);
    EXPECT_TRUE(read_unfinished(rank.comm, *rank.files, folder(), listing)->empty());
  });
  EXPECT_EQ(carry_on(1, [&](int) { return parts({1, 2}); }), Names());
  EXPECT_NE(given_up_.find("ckpt.2"), std::string::npos) << given_up_;
  EXPECT_NE(given_up_.find("dropped or deleted"), std::string::npos) << given_up_;
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_EQ(fetch_again(2), "not listed");
}

/// Also if its owner has died in the middle of dropping it.
TEST_F(CarryOn, WhatWasDroppedSinceIsNotCarriedOn) {
  for (const bool dies : {false, true}) {
    begin();
    flush_well(2);
    die_after_the_parts_of({0});
    run([&](PrefixRank& rank) {
      if (!rank.keeper) return;
      if (dies)
        ASSERT_TRUE(rank.files->rename(folder().dataset(info_of(2)),
                                       folder().in_transit(rank.site.epoch, info_of(2))));
      else
        ASSERT_TRUE(rank.keeper->drop(info_of(2)));
      if (dies) fs::remove(folder().listing());
    });
    EXPECT_EQ(carry_on(1, [&](int) { return parts({1, 2}); }), Names()) << dies;
    EXPECT_EQ(names_of_cairn(), Names());
    EXPECT_EQ(fetch_again(2), "not listed");
    EXPECT_TRUE(fs::exists(folder().dropped(info_of(2))));
    EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f1")) << "its files stay";
  }
}

/// An old plan that cannot be carried on, or be judged, keeps no newer one from its end.
TEST_F(CarryOn, OneThatCannotBeReadIsLeftAndTheNewerIsEnded) {
  begin();
  die_after_the_parts_of({0}, 2);
  run([&](PrefixRank& rank) { ASSERT_TRUE(flush_dataset(rank, 3)); });
  die_after_the_parts_of({0}, 4);
  die_after_the_parts_of({0}, 5);
  const auto all_parts = [&](int) {
    std::vector<CachedPart> all;
    for (const int dataset : {2, 4, 5})
      for (const CachedPart& part : parts({1, 2}, dataset)) all.push_back(part);
    return all;
  };
  const std::string manifest = DatasetFolder::folder_name(info_of(2)) + "/manifest.0";
  const auto published = carry_on(2, all_parts, [&](int, const FileOperation& operation) -> Status {
    const bool cannot_judge = operation.path.ends_with(manifest);
    const bool cannot_copy = operation.path.starts_with(cached(4, 1).path);
    if (operation.name != "open" || (!cannot_judge && !cannot_copy)) return {};
    return fail(Code::io, "injected: {} {}", operation.name, operation.path);
  });
  EXPECT_EQ(published, Names({"ckpt.5"}));
  for (const char* name : {"ckpt.2", "ckpt.4"})
    EXPECT_NE(left_.find(name), std::string::npos) << left_;
  carry_on(2, all_parts);  // of the same names as newer ones
  EXPECT_NE(given_up_.find("ckpt.2"), std::string::npos) << given_up_;
  EXPECT_NE(given_up_.find("ckpt.4"), std::string::npos) << given_up_;
  EXPECT_EQ(names_of_cairn(), Names());
  EXPECT_EQ(fetch_again(5), "");
}

TEST_F(CarryOn, APlanThatCannotBeReadNowIsCarriedOnLater) {
  begin();
  die_after_the_parts_of({0}, 2);
  const auto all_parts = [&](int) { return parts({1, 2}); };
  const std::string plan = DatasetFolder::folder_name(info_of(2)) + "/dataset";
  const auto published = carry_on(2, all_parts, [&](int, const FileOperation& operation) -> Status {
    if (operation.name != "open" || !operation.path.ends_with(plan)) return {};
    return fail(Code::io, "injected: {} {}", operation.name, operation.path);
  });
  EXPECT_EQ(published, Names());
  EXPECT_NE(left_.find("injected"), std::string::npos) << left_;
  EXPECT_EQ(carry_on(2, all_parts), Names({"ckpt.2"}));
  EXPECT_EQ(fetch_again(2), "");
}

/// Its owner may have died between the rename of the plan's record and the sync of its name.
TEST_F(CarryOn, APlanIsDurableBeforeAnythingIsBuiltOnIt) {
  begin();
  die_after_the_parts_of({0}, 2);
  const std::string name = DatasetFolder::folder_name(info_of(2));
  std::atomic<bool> synced = false;
  const auto watch = [&](int, const FileOperation& operation) -> Status {
    const bool adopted = operation.path.find("/epoch.") != std::string_view::npos;
    if (operation.name == "sync_folder" && adopted && operation.path.ends_with(name)) synced = true;
    const bool stages =
        operation.name == "create" && operation.path.find("/.cairn.") != std::string_view::npos;
    EXPECT_TRUE(!stages || synced) << operation.path;
    return {};
  };
  const auto published = carry_on(
      2,
      [&](int) {
        return parts({1, 2});
      },
      watch);
  EXPECT_EQ(published, Names({"ckpt.2"}));
}

/// Of two that were begun both are ended, the newer last.
TEST_F(CarryOn, TwoAreEndedInTheirOrder) {
  begin();
  die_after_the_parts_of({0}, 2);
  die_after_the_parts_of({0}, 3);
  const auto published = carry_on(2, [&](int) {
    auto both = parts({1, 2}, 2);
    const auto newer = parts({1, 2}, 3);
    both.insert(both.end(), newer.begin(), newer.end());
    return both;
  });
  EXPECT_EQ(published, Names({"ckpt.2", "ckpt.3"}));
  EXPECT_EQ(fetch_again(3), "");
}

/// A run that was taken for dead fails to publish; what it has staged is no longer its own.
TEST_F(CarryOn, AnOwnerOfAnEarlierEpochRemovesNothing) {
  begin();
  const auto posix = make_posix_files();
  const auto clock = make_system_clock();
  run(
      [&](PrefixRank& rank) {
        const Status flushed = flush_dataset(rank, 2);
        ASSERT_FALSE(flushed);
        EXPECT_EQ(flushed.error().code, Code::busy);
      },
      [&](int, const FileOperation& operation) -> Status {
        if (operation.name != "rename" || operation.to != folder().dataset(info_of(2))) return {};
        EXPECT_TRUE(Keeper::take_over(*posix, *clock, folder(), owner()));
        return {};
      });
  EXPECT_FALSE(names_of_cairn().empty());
  EXPECT_EQ(carry_on(1, [](int) { return std::vector<CachedPart>{}; }), Names({"ckpt.2"}));
  EXPECT_EQ(fetch_again(2), "");
}

}  // namespace
}  // namespace cairn
