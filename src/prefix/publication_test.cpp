// The order in which a dataset is published, and what a process can do of it without the others.
#include "prefix/publication.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "prefix/flush_parts.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using PublicationState = Publication::State;

// --- the order of the steps ---

class PublicationSteps : public PrefixFixture {
 protected:
  struct Step {
    std::string name;
    std::string path;
    std::string to;
  };
  using Is = std::function<bool(const Step&)>;

  /// What was done in the prefix directory, by all ranks, in its order.
  RankHook watch() {
    return [this](int, const FileOperation& operation) -> Status {
      const std::scoped_lock lock(mutex_);
      if (operation.path.starts_with(prefix()) && is_watching_)
        steps_.push_back(
            {std::string(operation.name), std::string(operation.path), std::string(operation.to)});
      return {};
    };
  }

  /// Dataset 1 is there, with a listing that says so. Then a run does `rank_main`.
  void watch_run(const RankMain& rank_main) {
    run_well([&](PrefixRank& rank) {
      ASSERT_TRUE(flush_dataset(rank, 1));
      ASSERT_TRUE(
          on_keeper(rank.comm, rank.site, [](Keeper& keeper) { return keeper.save_listing(); }));
    });
    run(
        [&](PrefixRank& rank) {
          if (rank.keeper) epoch_ = rank.site.epoch;
          is_watching_ = true;
          rank_main(rank);
        },
        watch());
  }
  void flush_watched() {
    watch_run([&](PrefixRank& rank) { ASSERT_TRUE(flush_dataset(rank, 2)); });
  }

  std::string pending() const { return folder().pending(epoch_, info_of(2)); }

  static Is does(std::string name, std::string path) {
    return [=](const Step& step) { return step.name == name && step.path == path; };
  }
  static Is renames_to(std::string path) {
    return [=](const Step& step) { return step.name == "rename" && step.to == path; };
  }
  static Is removes_below(std::string folder) {
    return [=](const Step& step) {
      return step.name.starts_with("remove") && step.path.starts_with(folder + "/");
    };
  }

  std::size_t first(const Is& is) const {
    return static_cast<std::size_t>(std::find_if(steps_.begin(), steps_.end(), is) -
                                    steps_.begin());
  }
  std::size_t last(const Is& is) const {
    const auto found = std::find_if(steps_.rbegin(), steps_.rend(), is);
    EXPECT_NE(found, steps_.rend()) << "no such step";
    return static_cast<std::size_t>(steps_.rend() - found) - 1;
  }
  bool is_between(std::size_t from, std::size_t to, const Is& is) const {
    return from <= to && to <= steps_.size() &&
           std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(from),
                       steps_.begin() + static_cast<std::ptrdiff_t>(to), is);
  }

  std::string own_folder(int rank) const { return fmt::format("{}/ckpt/r{}", prefix(), rank); }
  std::string staged(int dataset, int rank, int file) const {
    return fmt::format("{}/{}{}.{}", own_folder(rank),
                       DatasetFolder::staged_start(info_of(dataset).uuid), rank, file);
  }

  std::mutex mutex_;
  std::atomic<bool> is_watching_ = false;
  std::uint64_t epoch_ = 0;
  std::vector<Step> steps_;
};

TEST_F(PublicationSteps, ManifestsAndPlanAreDurableBeforeTheRename) {
  flush_watched();
  const std::size_t manifest = last(renames_to(DatasetFolder::manifest(pending(), 0)));
  const std::size_t plan = last(renames_to(DatasetFolder::record(pending())));
  const std::size_t published = last(renames_to(folder().dataset(info_of(2))));
  EXPECT_TRUE(is_between(manifest, plan, does("sync_folder", pending())));
  EXPECT_TRUE(is_between(plan, published, does("sync_folder", pending())));
  EXPECT_LT(last(does("remove_file", folder().listing())), published);
  EXPECT_TRUE(is_between(last(does("remove_file", folder().listing())), published,
                         does("sync_folder", folder().root())));
}

TEST_F(PublicationSteps, FilesAndTheirNamesAreDurableBeforeTheMarkerAndAllMarkersComeFirst) {
  flush_watched();
  const std::string markers = DatasetFolder::markers(pending());
  const std::size_t published = last(renames_to(folder().dataset(info_of(2))));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t marked = last(does("create", fmt::format("{}/0.{}", markers, rank)));
    EXPECT_LT(marked, published);
    for (int file = 0; file < 2; ++file) {
      const std::string path = staged(2, rank, file);
      const std::size_t changed = last([&](const Step& step) {
        return step.path == path &&
               (step.name == "write" || step.name == "create" || step.name == "set_attributes");
      });
      EXPECT_TRUE(is_between(changed, marked, does("sync_all", path))) << path;
      EXPECT_TRUE(
          is_between(last(does("create", path)), marked, does("sync_folder", own_folder(rank))))
          << path;
    }
  }
}

TEST_F(PublicationSteps, OwnNamesComeAfterTheDatasetIsDurableAndMarkersGoAfterThem) {
  flush_watched();
  const std::string dataset = folder().dataset(info_of(2));
  const std::string markers = DatasetFolder::markers(dataset);
  const std::size_t published = last(renames_to(dataset));
  const std::size_t settled = last(renames_to(DatasetFolder::record(dataset)));
  const std::size_t no_markers = last(does("remove_folder", markers));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t unmarked = last(does("remove_file", fmt::format("{}/0.{}", markers, rank)));
    EXPECT_LT(unmarked, no_markers);
    for (int file = 0; file < 2; ++file) {
      const std::size_t named = last(renames_to(fmt::format("{}/f{}", own_folder(rank), file)));
      EXPECT_TRUE(is_between(published, named, does("sync_folder", folder().datasets())));
      EXPECT_TRUE(is_between(named, unmarked, does("sync_folder", own_folder(rank))));
    }
  }
  EXPECT_LT(no_markers, settled);
  EXPECT_LT(last(renames_to(folder().current())), settled);
}

/// A later owner would take a part for done by a marker whose files are gone.
TEST_F(PublicationSteps, APlanIsWithdrawnBeforeAnythingOfItIsRemoved) {
  watch_run([&](PrefixRank& rank) {
    const RankRecord record = write_part(rank, 2);
    if (record.rank == 1)
      std::fstream(cached(2, 1).file("ckpt/r1/f1"), std::ios::binary | std::ios::in | std::ios::out)
          .seekp(40)
          .put('#');
    ASSERT_FALSE(flush(rank.comm, rank.site, record, cached_paths(record, 2), "job"));
  });
  const std::size_t withdrawn = last(renames_to(DatasetFolder::withdrawn(pending())));
  const std::size_t forgotten = last(does("remove_file", DatasetFolder::manifest(pending(), 0)));
  EXPECT_TRUE(is_between(withdrawn, first(removes_below(prefix() + "/ckpt")),
                         does("sync_folder", pending())));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string marker = fmt::format("{}/0.{}", DatasetFolder::markers(pending()), rank);
    const std::size_t unstaged = last(does("remove_file", staged(2, rank, 1)));
    EXPECT_LT(unstaged, last(does("remove_file", marker)));
    EXPECT_TRUE(is_between(unstaged, forgotten, does("sync_folder", own_folder(rank))))
        << "what comes back after a power failure must still be known";
  }
  EXPECT_FALSE(fs::exists(pending()));
}

/// Its files are made anew: a process that carries on must not take them for done.
TEST_F(PublicationSteps, ANewTryForgetsTheMarkersOfTheOneBefore) {
  run([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(rank.keeper->begin(info_of(1)));
    const std::string plan = folder().pending(rank.site.epoch, info_of(1));
    ASSERT_TRUE(DoneMarkers(*rank.files, plan, ranks).mark(0));
    ASSERT_TRUE(rank.keeper->begin(info_of(1)));
    EXPECT_FALSE(DoneMarkers(*rank.files, plan, ranks).is_done(0).value());
  });
}

/// What the caller hears of as failed is not there.
/// What was scavenged is staged by links. A run that leaves such a plan half done may copy the same
/// dataset from its caches.
TEST_F(PublicationSteps, ACopyDoesNotWriteIntoAFileThatWasStagedByALink) {
  const std::string saved = base_ / "saved";
  std::ofstream(saved) << "scavenged";
  watch_run([&](PrefixRank& rank) {
    if (rank.comm.rank() == 0) {
      fs::create_directories(own_folder(0));
      fs::create_hard_link(saved, staged(2, 0, 0));
    }
    rank.comm.barrier();
    ASSERT_TRUE(flush_dataset(rank, 2));
  });
  std::ostringstream content;
  content << std::ifstream(saved).rdbuf();
  EXPECT_EQ(content.str(), "scavenged");
  EXPECT_EQ(fetch_again(2), "");
}

TEST_F(PublicationSteps, ARenameThatCannotBeSyncedIsTakenBack) {
  flush_well(1);
  std::atomic<bool> fails = true;
  for (const int dataset : {2, 1}) {
    fails = true;
    run(
        [&](PrefixRank& rank) {
          const Status first = flush_dataset(rank, dataset);
          ASSERT_FALSE(first);
          EXPECT_EQ(fs::exists(folder().dataset(info_of(dataset))), dataset == 1)
              << "what stood aside is back";
          rank.comm.barrier();
          fails = false;
          rank.comm.barrier();
          EXPECT_TRUE(flush_dataset(rank, dataset));
        },
        [&](int, const FileOperation& operation) -> Status {
          const bool struck = fails && is_watching_ && operation.name == "sync_folder" &&
                              operation.path == folder().datasets();
          if (operation.to == folder().dataset(info_of(dataset))) is_watching_ = true;
          return struck ? fail(Code::io, "injected") : Status{};
        });
    is_watching_ = false;
  }
}

// --- one process alone ---

/// Processes that share no message and no keeper: each has its part of a plan in its cache.
class PublishAlone : public PrefixFixture {
 protected:
  /// Dataset 1 is there. Then a run plans `dataset`, of whose parts none is done, and `act` is what
  /// its processes do after that.
  void plan_then(int dataset, const std::function<void(Site&, const DatasetRecord&)>& act) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    run_well([&](PrefixRank& rank) {
      ASSERT_TRUE(flush_dataset(rank, 1));
      ASSERT_TRUE(
          on_keeper(rank.comm, rank.site, [](Keeper& keeper) { return keeper.save_listing(); }));
    });
    run([&](PrefixRank& rank) {
      const RankRecord record = write_part(rank, dataset);
      DatasetRecord plan = cairn::record_of(record.dataset, "job");
      plan.ranks_per_manifest = ranks_per_manifest;
      const std::string pending = folder().pending(rank.site.epoch, record.dataset);
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.begin(record.dataset); }));
      ASSERT_TRUE(
          write_manifests(rank.comm, *rank.files, pending, Deal(ranks, ranks), {&record, 1}));
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.epoch_folder().plan(plan); }));
      if (rank.comm.rank() != 0) return;
      Site alone = rank.site;
      alone.keeper = nullptr;
      act(alone, plan);
    });
  }

  std::vector<CachedPart> part(int dataset, int rank) const {
    return {{info_of(dataset).uuid, rank, cached(dataset, rank)}};
  }

  bool is_published(int dataset) const {
    return fs::exists(DatasetFolder::record(folder().dataset(info_of(dataset))));
  }

  /// The site of a process that sees the files in its own way.
  static Site through(Files& files, const Site& site) {
    return {
        files,       site.clock, site.folder, site.epoch, site.ranks_on_node, site.copy_metadata,
        site.limits, site.io,    nullptr};
  }
};

TEST_F(PublishAlone, TheProcessThatDoesTheLastPartPublishesAndNoneBefore) {
  for (std::vector<int> order = {0, 1, 2}; std::next_permutation(order.begin(), order.end());) {
    plan_then(2, [&](Site& site, const DatasetRecord& plan) {
      for (const int rank : order) {
        EXPECT_FALSE(is_published(2));
        const auto state = publish_alone(site, plan, part(2, rank));
        ASSERT_TRUE(state) << state.error().text;
        EXPECT_EQ(*state,
                  rank == order.back() ? PublicationState::published : PublicationState::planned);
      }
      EXPECT_TRUE(is_published(2));
      for (const int rank : order)
        EXPECT_EQ(publish_alone(site, plan, part(2, rank)).value(), PublicationState::published)
            << "a later call returns it again";
    });
    EXPECT_EQ(fetch_again(2), "") << "the next owner gives the files their names";
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
  }
}

/// An error that may pass is no proof that another process has published it.
TEST_F(PublishAlone, WhereThePlanCannotBeSeenNowOnlyThePartsCount) {
  plan_then(2, [&](Site& site, const DatasetRecord& plan) {
    const std::string pending = site.folder.pending(site.epoch, plan.info);
    bool was_asked = false;
    const auto failing =
        make_hooked_files(site.files, [&](const FileOperation& operation) -> Status {
          if (operation.name != "info" || operation.path != pending) return {};
          was_asked = true;
          return fail(Code::io, "cannot inspect {}: stale", pending);
        });
    const Site troubled = through(*failing, site);
    const auto state = publish_alone(troubled, plan, part(2, 0));
    EXPECT_TRUE(was_asked);
    EXPECT_TRUE(!state || *state == PublicationState::planned);
    EXPECT_FALSE(is_published(2));
  });
}

TEST_F(PublishAlone, ProcessesAtTheSameTimePublishItOnce) {
  for (int round = 0; round < 20; ++round) {
    plan_then(2, [&](Site& site, const DatasetRecord& plan) {
      std::atomic<int> published = 0;
      std::vector<std::thread> processes;
      for (int rank = 0; rank < ranks; ++rank)
        processes.emplace_back([&, rank] {
          const auto state = publish_alone(site, plan, part(2, rank));
          EXPECT_TRUE(state) << state.error().text;
          if (state && *state == PublicationState::published) ++published;
        });
      for (std::thread& process : processes) process.join();
      EXPECT_GE(published, 1);
      EXPECT_TRUE(is_published(2));
    });
    ASSERT_EQ(fetch_again(2), "");
  }
}

/// The others go on; a process that has the same part does it again.
TEST_F(PublishAlone, AProcessThatDiesAtAnyStepIsReplacedByAnother) {
  for (int victim = 0; victim < ranks; ++victim) {
    bool crashed = true;
    for (std::uint64_t step = 0; crashed; ++step) {
      crashed = false;
      plan_then(2, [&](Site& site, const DatasetRecord& plan) {
        const auto mortal =
            make_hooked_files(site.files, [&](const FileOperation& operation) -> Status {
              if (operation.index < step) return {};
              crashed = true;
              throw Crash{};
            });
        Site dies = through(*mortal, site);
        for (int rank = 0; rank < ranks; ++rank) try {
            ASSERT_TRUE(publish_alone(rank == victim ? dies : site, plan, part(2, rank)));
          } catch (const Crash&) {
          }
        const auto state = publish_alone(site, plan, part(2, victim));
        ASSERT_TRUE(state) << state.error().text << " step " << step;
        ASSERT_EQ(*state, PublicationState::published) << victim << " step " << step;
      });
      ASSERT_EQ(fetch_again(2), "") << victim << " step " << step;
      ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << victim << " step " << step;
    }
  }
}

TEST_F(PublishAlone, ADatasetThatIsThereIsNotReplaced) {
  plan_then(1, [&](Site& site, const DatasetRecord& plan) {
    for (const int rank : {0, 1})
      EXPECT_EQ(publish_alone(site, plan, part(1, rank)).value(), PublicationState::planned);
    EXPECT_EQ(publish_alone(site, plan, part(1, 2)).value(), PublicationState::planned);
    EXPECT_TRUE(fs::exists(DatasetFolder::record(folder().pending(site.epoch, plan.info))));
  });
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(PublishAlone, AProcessOfAClosedEpochPublishesNothing) {
  plan_then(2, [&](Site& site, const DatasetRecord& plan) {
    for (const int rank : {0, 1}) ASSERT_TRUE(publish_alone(site, plan, part(2, rank)));
    ASSERT_TRUE(Keeper::take_over(site.files, site.clock, folder(), owner()));
    const auto late = publish_alone(site, plan, part(2, 2));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::busy) << late.error().text;
    EXPECT_FALSE(is_published(2));
  });
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(PublishAlone, NothingIsDurableByTheRenameAlone) {
  plan_then(2, [&](Site& site, const DatasetRecord& plan) {
    for (const int rank : {0, 1}) ASSERT_TRUE(publish_alone(site, plan, part(2, rank)));
    bool fails = true;
    const auto flaky = make_hooked_files(site.files, [&](const FileOperation& operation) -> Status {
      const bool struck =
          fails && operation.name == "sync_folder" && operation.path == folder().datasets();
      return struck ? fail(Code::io, "injected") : Status{};
    });
    Site other = through(*flaky, site);
    EXPECT_FALSE(publish_alone(other, plan, part(2, 2)));
    EXPECT_FALSE(publish_alone(other, plan, {}));
    fails = false;
    EXPECT_EQ(publish_alone(other, plan, {}).value(), PublicationState::published);
  });
}

}  // namespace
}  // namespace cairn
