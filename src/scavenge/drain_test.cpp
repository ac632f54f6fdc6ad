// The program is dead, and what it had begun to copy is finished on each node by itself.
#include <fstream>

#include "files/hasty_clock.hpp"
#include "prefix/repair_files.hpp"
#include "support/drain_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Outcome = DrainedDataset::Outcome;
using State = PartFlush::State;

class Drain : public DrainFixture {
 protected:
  /// Of the one dataset that there is.
  DrainedDataset drained(const std::vector<Remains>& on_node) {
    const auto all = drain_node(on_node);
    EXPECT_TRUE(all && all->size() == 1);
    return all && all->size() == 1 ? all->front() : DrainedDataset{};
  }

  bool are_all_copied(int dataset) const {
    for (const auto& epoch : fs::directory_iterator(folder().root())) {
      const fs::path plan = epoch.path() / DatasetFolder::folder_name(info_of(dataset));
      int copied = 0;
      for (int rank = 0; rank < ranks; ++rank)
        copied += fs::exists(plan / fmt::format("done/0.{}", rank)) ? 1 : 0;
      if (copied == ranks) return true;
    }
    return false;
  }

  bool drain_hangs(std::uint64_t step, bool dies);
  void let_next_owner_tidy();
  void expect_attributes(std::uint64_t step) const;
  void restore_all_attributes() const;

  void delete_dataset(int dataset) {
    run_well([&](PrefixRank& rank) {
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.take_out(info_of(dataset)); }));
      EXPECT_TRUE(remove_files(rank.comm, rank.site, info_of(dataset), ranks_per_manifest));
    });
  }
};

TEST_F(Drain, TheLastNodePublishesWhatAllHaveCopied) {
  plan_and_die(1);
  const DrainedDataset first = drained(held(1, {0, 2}));
  EXPECT_EQ(first.outcome, Outcome::incomplete);
  EXPECT_EQ(first.ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(first.missing, std::vector<int>{1});
  EXPECT_FALSE(is_published(1));

  EXPECT_EQ(drained(held(1, {1})).outcome, Outcome::published);
  EXPECT_TRUE(is_published(1));
  EXPECT_TRUE(drain_node(held(1, {1}))->empty());
  EXPECT_EQ(fetch_again(1), "");
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

/// A record that is kept for another rank, or a damaged one.
TEST_F(Drain, AFolderWithoutARecordOfItsRankIsNoPart) {
  plan_and_die(1);
  std::vector<Remains> on_node = held(1, {0, 1});
  on_node.front().parts.back().own.clear();
  const DrainedDataset one = drained(on_node);
  EXPECT_EQ(one.outcome, Outcome::incomplete);
  EXPECT_EQ(one.ranks, std::vector<int>{0});
  EXPECT_EQ(one.missing, (std::vector<int>{1, 2}));
}

TEST_F(Drain, PartsThatTheProgramHasCopiedAreNotCopiedAgain) {
  plan_and_die(1, 2);
  std::string copied;
  ASSERT_TRUE(drain_node(held(1, {0, 1, 2}), [&](const FileOperation& operation) -> Status {
    if (operation.name == "create" && operation.path.find("/.cairn.") != std::string::npos)
      copied += std::string(operation.path.substr(prefix().size())) + " ";
    return {};
  }));
  EXPECT_EQ(copied.find("/r0/"), std::string::npos) << copied;
  EXPECT_EQ(copied.find("/r1/"), std::string::npos) << copied;
  EXPECT_NE(copied.find("/r2/"), std::string::npos) << copied;
  EXPECT_EQ(fetch_again(1), "");
}

/// Its node is gone as well; another node can still publish what is complete.
TEST_F(Drain, PublishesWhereTheProcessThatCopiedTheLastPartDiedBeforeItPublished) {
  plan_and_die(1);
  for (int rank = 0; rank < ranks; ++rank)
    (void)drain_node(held(1, {rank}), [&](const FileOperation& operation) -> Status {
      const bool is_upper_marker = operation.path.find("/done/") != std::string::npos &&
                                   operation.path.find("/done/0.") == std::string::npos;
      return operation.name == "create" && is_upper_marker ? fail(Code::io, "it is dead")
                                                           : Status{};
    });
  ASSERT_FALSE(is_published(1));
  EXPECT_EQ(drained({}).outcome, Outcome::published);
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Drain, ADeathAtAnyStepIsMadeUpForByTheNextDrain) {
  for (int victim = 0; victim < ranks; ++victim) {
    bool crashed = true;
    std::uint64_t step = 0;
    for (; crashed; ++step) {
      crashed = false;
      begin_anew();
      plan_and_die(1);
      const auto die = [&](const FileOperation& operation) -> Status {
        if (operation.index < step || !operation.path.starts_with(prefix())) return {};
        crashed = true;
        throw Crash{};
      };
      for (int rank = 0; rank < ranks; ++rank) {
        try {
          (void)drain_node(
              held(1, {rank}),
              rank == victim ? FileHook(die) : [](const auto&) { return Status{}; });
        } catch (const Crash&) {
        }
      }
      const auto again = drain_node(held(1, {victim}));
      ASSERT_TRUE(again) << again.error().text;
      ASSERT_TRUE(is_published(1)) << victim << " step " << step;
      ASSERT_EQ(fetch_again(1), "") << victim << " step " << step;
      ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << victim << " step " << step;
    }
    EXPECT_GT(step, 20U) << victim;
  }
}

/// Without a further drain the next run has lost nothing, and the older dataset is as it was.
TEST_F(Drain, ADeathAtAnyStepLeavesTheNextRunAWholeDataset) {
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; ++step) {
    crashed = false;
    begin_anew();
    files_in = "older";
    flush_well(1);
    files_in = "newer";
    plan_and_die(2, 2);
    try {
      (void)drain_node(held(2, {2}), [&](const FileOperation& operation) -> Status {
        if (operation.index < step || !operation.path.starts_with(prefix())) return {};
        crashed = true;
        throw Crash{};
      });
    } catch (const Crash&) {
    }
    const bool is_complete = is_published(2) || are_all_copied(2);
    ASSERT_EQ(fetch_again(2), is_complete ? "" : "not listed") << step;
    files_in = "older";
    ASSERT_EQ(fetch_again(1), "") << step;
    ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << step;
  }
}

/// Just before any of the calls of this node.
TEST_F(Drain, AnotherNodeMayPublishAtAnyMoment) {
  bool reached = true;
  int published = 0;
  for (std::uint64_t step = 0; reached; ++step) {
    reached = false;
    begin_anew();
    plan_and_die(1);
    const auto all = drain_node(held(1, {0}), [&](const FileOperation& operation) -> Status {
      if (operation.index != step) return {};
      reached = true;
      EXPECT_TRUE(drain_node(held(1, {1, 2})));
      return {};
    });
    ASSERT_TRUE(all) << step << ": " << all.error().text;
    for (const DrainedDataset& one : *all) {
      const bool is_right =
          one.outcome == Outcome::published
              ? one.missing.empty()
              : one.outcome == Outcome::incomplete && one.missing == std::vector{1, 2};
      EXPECT_TRUE(is_right) << step << (one.failure ? "" : one.failure.error().text);
      published += one.outcome == Outcome::published ? 1 : 0;
    }
    if (reached) {
      ASSERT_TRUE(is_published(1)) << step;
    }
    ASSERT_EQ(fetch_again(1), reached ? "" : "not listed") << step;
  }
  EXPECT_GT(published, 20);
}

/// As after a restart on a spare, when the old node comes back: both copy the part at the same
/// time, and one of them dies at any of its calls.
TEST_F(Drain, TwoNodesWithTheSamePartDoNotHarmEachOther) {
  bool reached = true;
  for (std::uint64_t step = 0; reached; ++step) {
    reached = false;
    begin_anew();
    plan_and_die(1);
    const std::uint64_t death = 11 * (step % 7);
    const auto all = drain_node(held(1, {0, 1, 2}), [&](const FileOperation& operation) -> Status {
      if (operation.index != step) return {};
      reached = true;
      try {
        (void)drain_node(held(1, {0, 1, 2}), [&](const FileOperation& other) -> Status {
          if (other.index < death || !other.path.starts_with(prefix())) return {};
          throw Crash{};
        });
      } catch (const Crash&) {
      }
      return {};
    });
    ASSERT_TRUE(all) << step << ": " << all.error().text;
    ASSERT_TRUE(is_published(1)) << step;
    ASSERT_EQ(fetch_again(1), "") << step;
  }
}

void Drain::let_next_owner_tidy() {
  run([&](PrefixRank& rank) {
    const int own = rank.comm.rank();
    EXPECT_TRUE(
        tidy(rank.comm, rank.site, {{info_of(1).uuid, own, cached(1, own)}}, Unfinished::removed));
  });
}

void Drain::expect_attributes(std::uint64_t step) const {
  const auto files = make_posix_files();
  for (int rank = 0; rank < ranks; ++rank)
    for (int file = 0; file < 2; ++file) {
      const auto info = files->info(fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file));
      ASSERT_TRUE(info) << step;
      EXPECT_EQ(info->times.modify_ns, modify_ns) << step << " r" << rank << " f" << file;
      EXPECT_EQ(info->mode, file_mode) << step << " r" << rank << " f" << file;
    }
}

/// As `cairn verify --repair` does.
void Drain::restore_all_attributes() const {
  const auto files = make_posix_files();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto record =
        read_from_manifest(*files, folder().dataset(info_of(1)), rank, ranks_per_manifest);
    ASSERT_TRUE(record);
    EXPECT_TRUE(restore_attributes(*files, folder(), *record, {}));
  }
}

/// Hangs in call number `step` until a later run has carried the plan on and given the files their
/// names; then goes on, or dies after that call. False if there is no such call.
bool Drain::drain_hangs(std::uint64_t step, bool dies) {
  bool reached = false;
  begin_anew();
  plan_and_die(1, 1);
  try {
    (void)drain_node(held(1, {1, 2}), [&](const FileOperation& operation) -> Status {
      if (reached && dies && operation.index > step) throw Crash{};
      if (reached || operation.index != step) return {};
      reached = true;
      let_next_owner_tidy();
      return {};
    });
  } catch (const Crash&) {
  }
  return reached;
}

/// Its files have the sizes and times that a deletion looks for, and no staged file outlives it.
/// The owner may have the permission to write until `cairn verify --repair` takes it.
TEST_F(Drain, ALateWriterHarmsNothing) {
  const auto files = make_posix_files();
  for (const std::uint32_t mode : {0640U, 0400U}) {
    file_mode = mode;
    for (std::uint64_t step = 0; drain_hangs(step, false); ++step) {
      ASSERT_TRUE(is_published(1)) << step;
      ASSERT_EQ(fetch_again(1), "") << step;
      for (int rank = 0; rank < ranks; ++rank)
        for (int file = 0; file < 2; ++file) {
          const auto info = files->info(fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file));
          ASSERT_TRUE(info) << step;
          EXPECT_EQ(info->times.modify_ns, modify_ns) << step << " r" << rank << " f" << file;
          EXPECT_EQ(info->mode | 0600U, mode | 0600U) << step << " r" << rank << " f" << file;
        }
      if (step % 2 == 0) {
        restore_all_attributes();
        expect_attributes(step);
      }
      delete_dataset(1);
      EXPECT_FALSE(fs::exists(prefix() + "/ckpt")) << step << ": no file of it is left";
    }
  }
}

/// The time of a file may have changed until `cairn verify --repair` sets it again, but not its
/// bytes.
TEST_F(Drain, ALateWriterThatDiesChangesNoBytes) {
  for (const std::uint32_t mode : {0640U, 0400U}) {
    file_mode = mode;
    for (std::uint64_t step = 0; drain_hangs(step, true); ++step) {
      ASSERT_TRUE(is_published(1)) << step;
      ASSERT_EQ(fetch_again(1), "") << step;
      restore_all_attributes();
      expect_attributes(step);
      delete_dataset(1);
      EXPECT_FALSE(fs::exists(prefix() + "/ckpt")) << step << ": no file of it is left";
    }
  }
}

/// It hangs until another node has copied the same parts, and dies after one more call.
TEST_F(Drain, TheNextOwnerSetsTheTimesThatADeadWriterHasNotSet) {
  bool reached = true;
  for (std::uint64_t step = 0; reached; ++step) {
    reached = false;
    file_mode = step % 2 == 0 ? 0640 : 0400;
    begin_anew();
    plan_and_die(1, 1);
    try {
      (void)drain_node(held(1, {1, 2}), [&](const FileOperation& operation) -> Status {
        if (reached) throw Crash{};
        if (operation.index != step) return {};
        reached = true;
        EXPECT_TRUE(drain_node(held(1, {1, 2})));
        return {};
      });
    } catch (const Crash&) {
    }
    ASSERT_TRUE(is_published(1)) << step;
    let_next_owner_tidy();
    expect_attributes(step);
    delete_dataset(1);
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt")) << step << ": no file of it is left";
  }
}

TEST_F(Drain, ADamagedPartIsReportedAndTheOthersAreCopied) {
  plan_and_die(1);
  const std::string path = cached(1, 1).file("ckpt/r1/f0");
  const std::string whole = read_all(path);
  {
    std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
    stream.put('!');
  }
  const DrainedDataset damaged = drained(held(1, {0, 1, 2}));
  EXPECT_EQ(damaged.outcome, Outcome::failed);
  ASSERT_FALSE(damaged.failure);
  EXPECT_EQ(damaged.failure.error().code, Code::corrupt) << damaged.failure.error().text;
  EXPECT_EQ(damaged.missing, std::vector<int>{1});
  EXPECT_FALSE(is_published(1));
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_EQ(drained(held(1, {1})).outcome, Outcome::published);
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Drain, AnotherCacheOfTheNodeStandsInForADamagedPart) {
  plan_and_die(1);
  std::vector<Remains> on_node = held(1, {0, 1, 2});
  HeldPart damaged = on_node.front().parts.front();
  damaged.folder.path = base_.path() + "/damaged";
  fs::copy(cached(1, 0).path, damaged.folder.path, fs::copy_options::recursive);
  std::ofstream(damaged.folder.file("ckpt/r0/f1"), std::ios::binary | std::ios::in).put('!');
  on_node.front().parts.insert(on_node.front().parts.begin(), damaged);
  EXPECT_EQ(drained(on_node).outcome, Outcome::published);
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Drain, LeavesAPlanAloneThatALaterOwnerHas) {
  plan_and_die(1, 1);
  const auto files = make_posix_files();
  const auto clock = make_system_clock();
  ASSERT_TRUE(Keeper::take_over(*files, *clock, folder(), owner()));
  EXPECT_TRUE(drain_node(held(1, {0, 1, 2}))->empty());
  EXPECT_FALSE(is_published(1));
}

/// At any moment.
TEST_F(Drain, EndsWithBusyWhenALaterOwnerTakesOverMeanwhile) {
  bool reached = true;
  int refused = 0;
  for (std::uint64_t step = 0; reached; ++step) {
    reached = false;
    begin_anew();
    plan_and_die(1, 1);
    const auto posix = make_posix_files();
    const auto clock = make_system_clock();
    const auto all = drain_node(held(1, {0, 1, 2}), [&](const FileOperation& operation) -> Status {
      if (operation.index != step) return {};
      reached = true;
      EXPECT_TRUE(Keeper::take_over(*posix, *clock, folder(), owner()));
      return {};
    });
    const bool is_refused = all && !all->empty() && all->front().outcome == Outcome::failed;
    if (is_refused) {
      EXPECT_EQ(all->front().failure.error().code, Code::busy)
          << step << ": " << all->front().failure.error().text;
      ++refused;
    }
    // The later owner's next run finds it published, or carries it on or removes it.
    const std::string fetched = fetch_again(1);
    ASSERT_TRUE(fetched.empty() || fetched == "not listed") << step << ": " << fetched;
    ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << step;
  }
  EXPECT_GT(refused, 5);
}

TEST_F(Drain, ADatasetThatWasDroppedSinceIsNotPublished) {
  plan_and_die(1);
  fs::create_directories(folder().dropped(info_of(1)));
  EXPECT_TRUE(drain_node(held(1, {0, 1, 2}))->empty());
  EXPECT_FALSE(is_published(1));
}

TEST_F(Drain, StopsWhenTheTimeIsUp) {
  plan_and_die(1);
  const auto all = drain_node(
      held(1, {0}), [](const FileOperation&) { return Status{}; }, 1);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Code::busy);
  EXPECT_EQ(drained(held(1, {0, 1, 2})).outcome, Outcome::published);
}

TEST_F(Drain, CopiesNoFasterThanTheLimit) {
  plan_and_die(1);
  const int rank = 2;
  const auto bytes = static_cast<std::int64_t>(content_of(1, rank, 1).size());
  const std::uint64_t bytes_per_s = 100;
  const auto posix = make_posix_files();
  const auto background = make_foreground();
  HastyClock clock;
  const std::int64_t from_us = clock.steady_us();
  ASSERT_TRUE(drain(*posix, clock, folder(), held(1, {rank}),
                    {{{*background, 1, 512}, bytes_per_s, 0}, true}, nullptr));
  EXPECT_GE((clock.steady_us() - from_us) / 1'000'000 * 100, bytes) << "at that rate";
}

TEST_F(Drain, TheNewestCheckpointIsFinishedFirst) {
  run_well([&](PrefixRank& rank) {
    for (const int dataset : {1, 2, 3}) {
      Flight flight = prepare(rank, dataset);
      while (flight.part->state() < State::described) {
        if (flight.owner && !flight.owner->is_begun()) {
          ASSERT_TRUE(flight.owner->advance());
        }
        ASSERT_TRUE(flight.part->advance());
      }
      while (flight.owner && !flight.owner->is_planned()) ASSERT_TRUE(flight.owner->advance());
    }
  });
  const auto all = drain_node(held(2, {0, 1, 2}));
  ASSERT_TRUE(all);
  std::vector<std::uint64_t> order;
  for (const DrainedDataset& one : *all) order.push_back(one.dataset.number);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 2, 1}));
  EXPECT_TRUE(is_published(2)) << "it does not wait for a newer one";
  EXPECT_FALSE(is_published(3));
}

TEST_F(Drain, OutputsAreFinishedBeforeCheckpoints) {
  DatasetInfo checkpoint = info_of(5);
  DatasetInfo output = info_of(6);
  output.flags = 2;
  EXPECT_TRUE(is_saved_before(output, checkpoint));
  EXPECT_FALSE(is_saved_before(checkpoint, output));
  EXPECT_TRUE(is_saved_before(info_of(7), checkpoint));
}

/// Otherwise the user would give the nodes back.
TEST_F(Drain, APlanThatCannotBeReadNowDoesNotCountAsNone) {
  files_in = "newer";
  flush_well(2);
  files_in = "older";
  plan_and_die(1);
  fs::remove(folder().listing());
  const std::string plan = "/" + DatasetFolder::folder_name(info_of(1));
  const auto fails_at = [&](std::string_view name, const std::string& end) {
    const auto all = drain_node(held(1, {0, 1, 2}), [&](const FileOperation& operation) -> Status {
      const bool is_it = (name.empty() || operation.name == name) && operation.path.ends_with(end);
      return is_it ? fail(Code::io, "injected") : Status{};
    });
    EXPECT_FALSE(all) << end;
    if (!all) {
      EXPECT_EQ(all.error().code, Code::io) << end;
    }
    EXPECT_FALSE(is_published(1)) << end;
  };
  fails_at("", DatasetFolder::record(plan));
  fails_at("", DatasetFolder::manifest(plan, 0));
  fails_at("", folder().deleted_list());
  fails_at("info", folder().dropped(info_of(1)));
  fails_at("", DatasetFolder::record(DatasetFolder::folder_name(info_of(2))));
  EXPECT_EQ(drained(held(1, {0, 1, 2})).outcome, Outcome::published);
}

TEST_F(Drain, MarkersThatCannotBeReadAreAFailureAndNotMissingParts) {
  plan_and_die(1);
  int looks = 0;
  const auto all = drain_node(held(1, {0}), [&](const FileOperation& operation) -> Status {
    const bool is_look = operation.name == "list" && operation.path.ends_with("/done");
    return is_look && ++looks > 1 ? fail(Code::io, "injected") : Status{};
  });
  ASSERT_TRUE(all) << all.error().text;
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().outcome, Outcome::failed);
  EXPECT_TRUE(all->front().missing.empty());
}

}  // namespace
}  // namespace cairn
