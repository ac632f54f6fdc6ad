#include "tools/index/index_command.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "files/background.hpp"
#include "tools/index/index_changes.hpp"
#include "tools/index/index_fixture.hpp"
#include "tools/index/index_table.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Action = IndexCommand::Action;

using Names = std::vector<std::string>;

TEST_F(IndexCommandTest, ListsNewestFirstWithAStarAtTheCurrentOne) {
  flush_three();
  ASSERT_EQ(run_index(Action::list), 0) << logged();
  std::istringstream lines(printed());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 24), "  DSET KIND       STATE ");
  for (const char* start : {"*    3 checkpoint published", "     2 checkpoint published"}) {
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with(start)) << line;
  }
  EXPECT_TRUE(line.ends_with(" ckpt.2")) << line;
}

TEST_F(IndexCommandTest, ANameGoesBeforeANumber) {
  flush_three();
  ASSERT_EQ(run_index(Action::show, "2"), 0) << logged();
  EXPECT_TRUE(prints("ckpt.2")) << printed();
  run_well([](PrefixRank& rank) {  // the name of the first is the number of the second
    if (!rank.keeper) return;
    DatasetRecord first = rank.keeper->known().listing.back();
    first.info.name = "2";
    EXPECT_TRUE(rank.keeper->update(first));
    EXPECT_TRUE(rank.keeper->save_listing());
    EXPECT_TRUE(rank.keeper->resign());
  });
  ASSERT_EQ(run_index(Action::drop, "2"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.2"}));
  ASSERT_EQ(run_index(Action::add, "2"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.2", "2"}));
}

TEST_F(IndexCommandTest, ReadingChangesNothing) {
  flush_three();
  const auto snapshot = [&] {
    std::map<std::string, fs::file_time_type> times;
    for (const auto& entry : fs::recursive_directory_iterator(prefix()))
      times[entry.path()] = entry.last_write_time();
    return times;
  };
  const auto before = snapshot();
  EXPECT_EQ(run_index(Action::list), 0);
  IndexCommand show = command_for(Action::show, "ckpt.3");
  show.files = show.check = true;
  EXPECT_EQ(run_index(show), 0) << logged() << printed();
  EXPECT_EQ(snapshot(), before);
}

/// So that ten thousand datasets are listed as fast as one.
TEST_F(IndexCommandTest, ReadingTakesNoMoreFilesForMoreDatasets) {
  const auto posix = make_posix_files();
  int operations = 0;
  files_ = make_hooked_files(*posix, [&](const FileOperation&) {
    ++operations;
    return Status{};
  });
  std::vector<int> counts;
  for (const int dataset : {1, 2, 3}) {
    flush_well(dataset);
    run_well([](PrefixRank&) {});  // tidies, and so writes the listing
    for (const Action action : {Action::list, Action::show}) {
      operations = 0;
      EXPECT_EQ(run_index(action, "ckpt.1"), 0) << logged();
      counts.push_back(operations);
    }
  }
  EXPECT_EQ(counts[4], counts[0]) << "list";
  EXPECT_EQ(counts[5], counts[1]) << "show";
}

/// However many were dropped, of which no list is kept.
TEST_F(IndexCommandTest, WhatIsListedIsChangedWithoutALookAtWhatWasDropped) {
  flush_three();
  ASSERT_EQ(run_index(Action::drop, "ckpt.1"), 0) << logged();
  const auto posix = make_posix_files();
  int looks = 0;
  files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    looks += operation.path.starts_with(PrefixFolder{prefix()}.dropped()) ? 1 : 0;
    return {};
  });
  for (const Action action : {Action::current, Action::quarantine, Action::lift}) {
    EXPECT_EQ(run_index(action, "ckpt.3"), 0) << logged();
    EXPECT_LE(std::exchange(looks, 0), 1) << "the new owner syncs it";
  }
  EXPECT_EQ(run_index(Action::add, "ckpt.1"), 0) << logged();
  EXPECT_GT(looks, 2);
}

TEST_F(IndexCommandTest, AFolderWithoutDatasetsIsListedAndOtherwiseLeftAlone) {
  EXPECT_EQ(run_index(Action::list), 0);
  EXPECT_TRUE(prints("no datasets"));
  for (const Action action : {Action::show, Action::current, Action::drop, Action::drop_after,
                              Action::remove, Action::add, Action::quarantine, Action::lift})
    EXPECT_EQ(run_index(action, "x"), 1);
  EXPECT_EQ(run_index(Action::build), 1);
  EXPECT_TRUE(fs::is_empty(prefix()));
  IndexCommand elsewhere;
  elsewhere.source.prefix = "gone";
  EXPECT_EQ(run_index(elsewhere), 1);
  EXPECT_TRUE(logs(base_.path() + "/gone")) << logged();
}

TEST_F(IndexCommandTest, ShowsAllFieldsAndFiles) {
  flush_three();
  IndexCommand show = command_for(Action::show, "ckpt.3");
  show.files = true;
  ASSERT_EQ(run_index(show), 0) << logged();
  for (const char* words :
       {"ckpt.3 (current)", "number    3", "in 6 files", "ranks     3", "rank 2\n", "ckpt/r2/f1"})
    EXPECT_TRUE(prints(words)) << words << " in\n" << printed();
  const auto json = json_of_index(show);
  EXPECT_EQ(json["dataset"]["name"], "ckpt.3");
  EXPECT_EQ(json["dataset"]["state"], "published");
  EXPECT_EQ(json["dataset"]["kind"], "checkpoint");
  EXPECT_EQ(json["current"], true);
  ASSERT_EQ(json["files"].size(), 6U);
  EXPECT_EQ(json["files"][5]["name"], "ckpt/r2/f1");
  EXPECT_EQ(json["files"][5]["rank"], 2);
}

TEST_F(IndexCommandTest, ACheckNamesTheBadFileAndFails) {
  flush_three();
  IndexCommand show = command_for(Action::show, "ckpt.3");
  show.check = true;
  ASSERT_EQ(run_index(show), 0) << printed();
  EXPECT_TRUE(prints("6 files read"));
  std::fstream(own_name(1, 1), std::ios::in | std::ios::out).seekp(5000).put('!');
  EXPECT_EQ(run_index(show), 1);
  EXPECT_TRUE(prints("bad: " + own_name(1, 1) + " does not match its checksum")) << printed();
  EXPECT_EQ(json_of_index(show)["check"]["troubles"].size(), 1U);
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(IndexCommandTest, NamesTheCurrentOne) {
  flush_three();
  EXPECT_EQ(run_index(Action::current, "ckpt.1"), 0) << logged();
  EXPECT_EQ(current(), "ckpt.1");
  EXPECT_EQ(run_index(Action::current, "ckpt.9"), 1);
  EXPECT_TRUE(logs("no dataset ckpt.9")) << logged();
  EXPECT_EQ(current(), "ckpt.1");
}

TEST_F(IndexCommandTest, ACurrentOneThatARestartPassesOverIsNotCalledTheOneItBeginsWith) {
  flush_three();
  EXPECT_EQ(run_index(Action::current, "ckpt.2"), 0) << logged();
  EXPECT_TRUE(prints("is current: ")) << printed();
  EXPECT_EQ(json_of_index(command_for(Action::list, ""))["restart"], "ckpt.2");
  ASSERT_EQ(run_index(Action::quarantine, "ckpt.2"), 0) << logged();
  const auto index = json_of_index(command_for(Action::list, ""));
  EXPECT_EQ(index["current"], "ckpt.2");
  EXPECT_EQ(index["restart"], "ckpt.1") << "not what somebody went behind";
  ASSERT_EQ(run_index(Action::list), 0);
  EXPECT_TRUE(prints("*    1 checkpoint published")) << printed();
  EXPECT_EQ(run_index(Action::current, "ckpt.2"), 0) << logged();
  EXPECT_TRUE(prints("is in quarantine; cairn index quarantine --lift ckpt.2")) << printed();
}

TEST_F(IndexCommandTest, DropsAndAdds) {
  flush_three();
  ASSERT_EQ(run_index(Action::drop, "ckpt.3"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.2", "ckpt.1"}));
  EXPECT_EQ(listed(true), Names({"ckpt.3"}));
  EXPECT_EQ(current(), "");
  EXPECT_TRUE(fs::exists(own_name(0, 1)));
  ASSERT_EQ(run_index(Action::show, "ckpt.3"), 0);
  EXPECT_TRUE(prints("dropped"));
  ASSERT_EQ(run_index(Action::add, "ckpt.3"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
  EXPECT_EQ(fetch_again(3), "");
  EXPECT_EQ(run_index(Action::add, "ckpt.3"), 1) << "it is there";
}

TEST_F(IndexCommandTest, DropAfterDropsWhatIsNewer) {
  flush_three();
  ASSERT_EQ(run_index(Action::drop_after, "ckpt.1"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.1"}));
  EXPECT_EQ(listed(true), Names({"ckpt.3", "ckpt.2"}));
  EXPECT_EQ(run_index(Action::drop_after, "ckpt.1"), 0);
  EXPECT_TRUE(prints("nothing is newer"));
}

TEST_F(IndexCommandTest, WhatIsNotWhatItWasIsNotAdded) {
  flush_three();
  ASSERT_EQ(run_index(Action::drop, "ckpt.3"), 0);
  fs::resize_file(own_name(2, 1), 7);
  EXPECT_EQ(run_index(Action::add, "ckpt.3"), 1);
  EXPECT_TRUE(logs(own_name(2, 1) + " has 7 bytes")) << logged();
  EXPECT_EQ(listed(true), Names({"ckpt.3"}));
}

TEST_F(IndexCommandTest, DeletesListedAndDropped) {
  flush_three();
  ASSERT_EQ(run_index(Action::drop, "ckpt.3"), 0);
  ASSERT_EQ(run_index(Action::remove, "ckpt.3"), 0) << logged();
  ASSERT_EQ(run_index(Action::remove, "ckpt.2"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.1"}));
  EXPECT_EQ(listed(true), Names({}));
  EXPECT_FALSE(fs::exists(own_name(0, 1)));
}

TEST_F(IndexCommandTest, QuarantineIsSetAndLifted) {
  flush_three();
  const auto state = [&] {
    return json_of_index(command_for(Action::show, "ckpt.3"))["dataset"]["state"];
  };
  ASSERT_EQ(run_index(Action::quarantine, "ckpt.3"), 0) << logged();
  EXPECT_EQ(state(), "quarantined");
  run_well([](PrefixRank& rank) {
    if (!rank.keeper) return;
    DatasetRecord record = rank.keeper->known().listing[0];
    record.attempts = 3;
    record.failed_us = 5'000'000;
    record.failure = "r1/f1 does not match its checksum";
    ASSERT_TRUE(rank.keeper->update(record));
    ASSERT_TRUE(rank.keeper->resign());
  });
  ASSERT_EQ(run_index(Action::list), 0);
  EXPECT_TRUE(prints("quarantined") && prints("failed: r1/f1 does not match")) << printed();
  ASSERT_EQ(run_index(Action::lift, "ckpt.3"), 0) << logged();
  const auto lifted = json_of_index(command_for(Action::show, "ckpt.3"))["dataset"];
  EXPECT_EQ(lifted["state"], "published");
  EXPECT_EQ(lifted["attempts"], 0);
  EXPECT_TRUE(lifted["failed"].is_null());
}

TEST_F(IndexCommandTest, BuildMakesTheListingAnewAndTellsWhatCannotBeRead) {
  flush_three();
  fs::remove(folder().listing());
  ASSERT_EQ(run_index(Action::build), 0) << logged();
  EXPECT_TRUE(fs::exists(folder().listing()));
  std::ofstream(DatasetFolder::record(folder().dataset(info_of(2)))) << "nonsense";
  EXPECT_EQ(listed().size(), 3U) << "the listing is a copy";
  const auto built = json_of_index(command_for(Action::build));
  EXPECT_EQ(exit_code_, 1);
  ASSERT_EQ(built["damaged"].size(), 1U);
  EXPECT_TRUE(logs("dataset.2.")) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.1"}));
  IndexCommand of_number = command_for(Action::build);
  fs::remove_all(folder().dataset(info_of(2)));
  of_number.number = 3;
  EXPECT_EQ(run_index(of_number), 0) << logged();
  of_number.number = 2;
  EXPECT_EQ(run_index(of_number), 1);
}

TEST_F(IndexCommandTest, WhatCannotBeReadIsInTheJsonAndInTheExitCode) {
  flush_three();
  EXPECT_EQ(json_of_index(command_for(Action::list))["damaged"].size(), 0U);
  EXPECT_EQ(exit_code_, 0);
  ASSERT_EQ(run_index(Action::drop, "ckpt.2"), 0) << logged();
  fs::remove(folder().listing());
  for (const std::string& folder : {folder().dataset(info_of(1)), folder().dropped(info_of(2))})
    std::ofstream(DatasetFolder::record(folder)) << "nonsense";
  IndexCommand dropped;
  dropped.dropped = true;
  for (const IndexCommand& list : {command_for(Action::list), dropped}) {
    const auto json = json_of_index(list);
    EXPECT_EQ(exit_code_, 1);
    ASSERT_EQ(json["damaged"].size(), 1U) << json;
    EXPECT_TRUE(logs("cannot be used")) << logged();
    EXPECT_EQ(run_index(list), 1);
  }
  IndexCommand show = command_for(Action::show, "ckpt.3");
  show.files = true;
  EXPECT_EQ(json_of_index(show)["troubles"].size(), 0U);
  EXPECT_EQ(exit_code_, 0);
  std::ofstream(DatasetFolder::manifest(folder().dataset(info_of(3)), 0)) << "nonsense";
  EXPECT_EQ(json_of_index(show)["troubles"].size(), 1U);
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(IndexCommandTest, LiftsTheQuarantineOfWhatOnlyTheCachesHave) {
  flush_three();
  run_well([](PrefixRank& rank) {
    if (!rank.keeper) return;
    DatasetRecord record;
    record.info = info_of(4);
    record.attempts = 3;
    record.quarantined = true;
    ASSERT_TRUE(rank.keeper->set_attempts({record}));
    ASSERT_TRUE(rank.keeper->resign());
  });
  EXPECT_EQ(run_index(Action::quarantine, "ckpt.4"), 1) << "there is no such dataset there";
  ASSERT_EQ(run_index(Action::lift, "ckpt.4"), 0) << logged();
  EXPECT_TRUE(prints("(ckpt.4)"));
  EXPECT_TRUE(read_attempts(*files_, folder())->empty());
  EXPECT_EQ(run_index(Action::lift, "ckpt.4"), 1);
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
}

/// Its parts are in the caches of the job, of which a command knows nothing.
TEST_F(IndexCommandTest, AFlushThatDiedIsLeftToTheNextRunUnlessAllIsToBeEnded) {
  for (const Action action : {Action::quarantine, Action::build}) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    flush_three();
    const auto dies = [](int rank, const FileOperation& operation) -> Status {
      if (rank == 0 && operation.path.ends_with("/done/0.0")) throw Crash{};
      return {};
    };
    EXPECT_THROW(run([this](PrefixRank& rank) { (void)flush_dataset(rank, 4); }, dies), Crash);
    IndexCommand command = command_for(action, "ckpt.1");
    command.force = true;  // or it waits for a sign of life of the dead
    ASSERT_EQ(run_index(command), 0) << logged();
    const bool left = action != Action::build;
    EXPECT_EQ(names_of_cairn().empty(), !left);
    std::vector<DatasetRecord> published;
    run([&](PrefixRank& rank) {
      const int me = rank.comm.rank();
      const std::vector<CachedPart> parts = {{info_of(4).uuid, me, cached(4, me)}};
      Tidied found;
      const Status tidied = tidy(rank.comm, rank.site, parts, Unfinished::removed, &found);
      ASSERT_TRUE(tidied) << tidied.error().text;
      if (me == 0) published = std::move(found.published);
    });
    EXPECT_EQ(published.size(), left ? 1U : 0U);
    EXPECT_EQ(fetch_again(4), left ? "" : "not listed");
  }
}

TEST_F(IndexCommandTest, BuildEndsWhatAnEarlierRunLeftHalfDone) {
  flush_three();
  auto dead = Keeper::take_over(*files_, *clock_, folder(), owner());
  ASSERT_TRUE(dead && dead->take_out(info_of(3)) && dead->resign());
  ASSERT_EQ(run_index(Action::build), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.2", "ckpt.1"}));
  EXPECT_FALSE(fs::exists(own_name(0, 1)));
  EXPECT_EQ(names_of_cairn(), Names({}));
}

/// Bits may rot in the record of where a dead flush has staged files.
TEST_F(IndexCommandTest, FilesOfADeadFlushAreFoundThoughItsManifestIsDamaged) {
  flush_three();
  const auto dies = [](int rank, const FileOperation& operation) -> Status {
    if (rank == 0 && operation.path.ends_with("/done/0.0")) throw Crash{};
    return {};
  };
  EXPECT_THROW(run([this](PrefixRank& rank) { (void)flush_dataset(rank, 4); }, dies), Crash);
  for (const auto& entry : fs::recursive_directory_iterator(prefix()))
    if (entry.path().filename() == "manifest.0" &&
        entry.path().string().find("/epoch.") != std::string::npos) {
      std::fstream manifest(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      manifest.seekp(60).put('!');  // the record of rank 0, which has staged all
    }
  for (int again = 0; again < 2; ++again)
    run([](PrefixRank& rank) {
      const std::vector<CachedPart> none;
      Tidied found;
      const Status tidied = tidy(rank.comm, rank.site, none, Unfinished::removed, &found);
      ASSERT_TRUE(tidied) << tidied.error().text;
      ASSERT_EQ(found.damaged.size(), 1U) << "logged by every run until a user looks";
    });
  const auto staged = [this] {
    auto names = names_of_cairn();
    std::erase_if(names, [](const auto& name) { return name.starts_with(".cairn/"); });
    return names;
  };
  EXPECT_EQ(staged().size(), 2U) << "of the rank whose record is damaged";
  IndexCommand command = command_for(Action::quarantine, "ckpt.1");
  command.force = true;
  ASSERT_EQ(run_index(command), 0) << logged();
  EXPECT_TRUE(logs("cairn index build")) << logged();
  ASSERT_EQ(run_index(Action::build), 0) << logged();
  EXPECT_TRUE(prints("2 staged files were found")) << printed();
  EXPECT_EQ(names_of_cairn(), Names({}));
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
  ASSERT_EQ(run_index(Action::build), 0);
  EXPECT_FALSE(prints("staged"));
}

/// The caches have it too, which only the next run of the job can reach.
TEST_F(IndexCommandTest, WhatIsDeletedIsRememberedForTheNextRunWhereverTheCommandDies) {
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; ++step) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    flush_three();
    crashed = false;
    const auto posix = make_posix_files();
    files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      if (operation.index < step) return {};
      crashed = true;
      throw Crash{};
    });
    IndexCommand command = command_for(Action::remove, "ckpt.2");
    command.force = true;
    try {
      EXPECT_EQ(run_index(command), 0) << logged();
    } catch (const Crash&) {
    }
    files_ = make_posix_files();
    std::vector<std::string> damaged;
    const Listing there = *read_listing(*files_, folder(), damaged);
    const Listing deleted = *read_deleted(*files_, folder());
    const bool gone = *find_dataset(there, "ckpt.2") == nullptr;
    EXPECT_TRUE(!gone || *find_dataset(deleted, "ckpt.2") != nullptr) << "step " << step;
    EXPECT_TRUE(gone || crashed);
    EXPECT_LE(deleted.size(), 1U);
    ASSERT_FALSE(HasFailure());
  }
}

/// It may be a newer one of that name, and is newer than any that is known.
TEST_F(IndexCommandTest, OneThatCannotBeReadIsNotPassedOver) {
  flush_three();
  fs::remove(folder().listing());
  const auto posix = make_posix_files();
  const std::string record = DatasetFolder::record(folder().dataset(info_of(3)));
  bool passed = false;
  files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (passed || operation.path != record) return {};
    return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
  });
  for (const Action action :
       {Action::drop_after, Action::drop, Action::remove, Action::current, Action::quarantine}) {
    EXPECT_EQ(run_index(action, "ckpt.2"), 1) << static_cast<int>(action);
    EXPECT_TRUE(logs("it is unknown which dataset") && logs("give its UUID")) << logged();
  }
  const std::string uuid = text_of(info_of(2).uuid);
  for (const Action action : {Action::drop_after, Action::current}) {
    EXPECT_EQ(run_index(action, uuid), 1) << "another one may be newer";
    EXPECT_TRUE(logs("it is unknown")) << logged();
  }
  EXPECT_EQ(run_index(Action::quarantine, uuid), 0) << logged();
  EXPECT_EQ(run_index(Action::drop, uuid), 0) << logged();
  passed = true;
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.1"}));
  EXPECT_EQ(run_index(Action::drop_after, "ckpt.1"), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.1"}));
  files_ = make_posix_files();
}

/// Otherwise a user would take it that nothing has changed.
TEST_F(IndexCommandTest, WhatWasDoneBeforeAnErrorIsReported) {
  for (const bool json : {false, true}) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    flush_three();
    const auto posix = make_posix_files();
    files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      const bool drops =
          operation.name == "rename" && operation.path == folder().dataset(info_of(2));
      return drops ? fail(Code::io, "injected: cannot drop {}", operation.path) : Status{};
    });
    IndexCommand command = command_for(Action::drop_after, "ckpt.1");
    command.json = json;
    EXPECT_EQ(run_index(command), exit_failure);
    EXPECT_TRUE(prints("(ckpt.3) is dropped")) << printed();
    EXPECT_TRUE(logs("injected: cannot drop")) << logged();
    if (json) {
      EXPECT_EQ(printed_json().at("errors").size(), 1U) << printed();
    }
    files_ = make_posix_files();
    EXPECT_EQ(listed(), Names({"ckpt.2", "ckpt.1"}));
  }
}

TEST_F(IndexCommandTest, ThatTheListOfWhatWasDeletedIsDamagedIsReportedBeforeItIsLost) {
  flush_three();
  std::ofstream(folder().deleted_list()) << "no list";
  EXPECT_EQ(run_index(Action::remove, "ckpt.2"), 0) << logged();
  EXPECT_TRUE(logs("list of deleted datasets")) << logged();
  EXPECT_EQ(run_index(Action::remove, "ckpt.1"), 0) << logged();
  EXPECT_FALSE(logs("it is unknown")) << logged();
}

/// Rank 0 of a job, in another process; it lives until it is asked to end.
class LivingJob {
 public:
  LivingJob(const std::string& prefix, const OwnerRecord& owner) {
    std::array<int, 2> ready{};
    std::array<int, 2> end{};
    EXPECT_EQ(::pipe(ready.data()) + ::pipe(end.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(end[1]);
      live(prefix, owner, ready[1], end[0]);
    }
    ::close(end[0]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    end_ = end[1];
  }
  LivingJob(const LivingJob&) = delete;
  LivingJob& operator=(const LivingJob&) = delete;
  ~LivingJob() {
    ::close(end_);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  [[noreturn]] static void live(const std::string& prefix, const OwnerRecord& owner, int ready,
                                int end) {
    const auto files = make_posix_files();
    const auto clock = make_system_clock();
    const auto background = make_background_thread();
    const auto keeper = Keeper::take_over(*files, *clock, {prefix}, owner);
    if (!keeper) ::_exit(1);
    const auto heartbeat = background->repeat(50'000, keeper->heartbeat());
    char byte = 0;
    if (::write(ready, &byte, 1) == 1) (void)!::read(end, &byte, 1);
    ::_exit(0);
  }

  int child_ = 0;
  int end_ = -1;
};

TEST_F(IndexCommandTest, WhileAJobLivesNothingIsChangedUnlessForced) {
  flush_three();
  LivingJob job(prefix(), owner());
  for (const Action action : {Action::drop, Action::lift, Action::build}) {
    EXPECT_EQ(run_index(action, "ckpt.2"), 1);
    EXPECT_TRUE(logs("belongs to job job of tester") && logs("--force")) << logged();
  }
  EXPECT_EQ(run_index(Action::list), 0);
  EXPECT_EQ(listed().size(), 3U);
  IndexCommand forced = command_for(Action::drop, "ckpt.2");
  forced.force = true;
  EXPECT_EQ(run_index(forced), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.1"}));
}

TEST_F(IndexCommandTest, ADeadJobIsWaitedForOnce) {
  flush_three();
  ASSERT_TRUE(Keeper::take_over(*files_, *clock_, folder(), owner()));
  auto sleeper = std::make_unique<SleepersClock>();
  SleepersClock& clock = *sleeper;
  clock_ = std::move(sleeper);
  const std::int64_t from_us = clock.now;
  EXPECT_EQ(run_index(Action::lift, "ckpt.2"), 0) << logged();
  EXPECT_GE(clock.now - from_us, silence_us);
  clock.meanwhile = [] { FAIL() << "slept"; };
  EXPECT_TRUE(Keeper::take_over(*files_, clock, folder(), owner("another")));
}

TEST_F(IndexCommandTest, OfSeveralOfOneNameTheNewestIsMeantAndAnyByItsUuid) {
  flush_three();
  run_well([](PrefixRank& rank) {
    if (!rank.keeper) return;
    DatasetRecord record = rank.keeper->known().listing[1];
    record.info.name = "ckpt.3";
    ASSERT_TRUE(rank.keeper->update(record));
    ASSERT_TRUE(rank.keeper->save_listing());
    ASSERT_TRUE(rank.keeper->resign());
  });
  EXPECT_EQ(json_of_index(command_for(Action::show, "ckpt.3"))["dataset"]["number"], 3);
  EXPECT_EQ(json_of_index(command_for(Action::show, text_of(info_of(2).uuid)))["dataset"]["number"],
            2);
  ASSERT_EQ(run_index(Action::drop, text_of(info_of(2).uuid)), 0) << logged();
  EXPECT_EQ(listed(), Names({"ckpt.3", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
