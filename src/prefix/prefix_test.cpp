// Datasets of a Team on their way to the prefix directory and back, on real files.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Prefix = PrefixFixture;

/// By its name alone, as a socket's address has room for few more characters.
void bind_socket(const std::string& path) {
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(path).parent_path());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  fs::path(path).filename().string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(made);
  fs::current_path(before);
}

void make_null_device(const std::string& path) {
  EXPECT_EQ(::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
}

TEST_F(Prefix, FlushedFilesHaveTheirOwnNamesBytesAndModes) {
  flush_well(1);
  for (int rank = 0; rank < ranks; ++rank)
    for (int file = 0; file < 2; ++file) {
      const std::string path = fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file);
      EXPECT_EQ(read_all(path), content_of(1, rank, file)) << path;
      EXPECT_EQ(make_posix_files()->info(path)->mode, 0640U);
      EXPECT_EQ(make_posix_files()->info(path)->times.modify_ns, 1'000'000'000);
    }
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*make_posix_files(), folder(), damaged);
  ASSERT_EQ(listing.size(), 1U);
  EXPECT_TRUE(listing[0].settled);
  EXPECT_EQ(listing[0].files, 6U);
  EXPECT_EQ(listing[0].info, info_of(1));
}

TEST_F(Prefix, AFolderThatGivesItsGroupOnGivesItToWhatIsFlushed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a folder to any group";
  constexpr ::gid_t group = 4321;
  ASSERT_EQ(::chown(prefix().c_str(), 0, group), 0);
  ASSERT_EQ(::chmod(prefix().c_str(), 02770), 0);
  flush_well(1);
  const auto files = make_posix_files();
  for (const char* name : {"/ckpt", "/ckpt/r0", "/ckpt/r0/f0", "/ckpt/r2", "/ckpt/r2/f1"}) {
    const FileInfo info = files->info(prefix() + name).value();
    EXPECT_EQ(info.group, group) << name;
    EXPECT_TRUE(info.kind == Kind::file || (info.mode & 02000) != 0) << name;
  }
}

TEST_F(Prefix, WhatWasFlushedIsFetchedByteForByte) {
  flush_well(1);
  EXPECT_EQ(fetch_again(1), "");
  EXPECT_EQ(fetch_again(2), "not listed");
}

TEST_F(Prefix, ANewerDatasetOfTheSameNamesReplacesAnOlderOne) {
  flush_well(1);
  flush_well(2);
  EXPECT_EQ(fetch_again(2), "");
  EXPECT_NE(fetch_again(1), "") << "its files are those of dataset 2 now";
}

/// All of dataset 2, or dataset 1 as it was: whatever call of whatever rank was the last.
TEST_F(Prefix, CrashAtEveryStepOfAFlushLeavesAllOrNothing) {
  int published = 0;
  for (int victim = 0; victim < ranks; ++victim) {
    bool crashed = true;
    for (std::uint64_t step = 0; crashed; ++step) {
      fs::remove_all(prefix());
      fs::create_directories(prefix());
      flush_well(1);
      crashed = flush_crashes(2, victim, step);
      const std::string second = fetch_again(2);
      if (second.empty())
        ++published;
      else
        ASSERT_EQ(fetch_again(1), "") << "victim " << victim << " step " << step << ": " << second;
      ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << victim << " step " << step;
      flush_well(3);
      ASSERT_EQ(fetch_again(3), "");
    }
  }
  EXPECT_GT(published, ranks) << "some crashes come after the dataset is there";
}

TEST_F(Prefix, AnErrorAtAnyStepIsReportedToAllAndHarmsNothing) {
  for (const Code code : {Code::no_space, Code::io})
    for (int victim = 0; victim < ranks; ++victim) {
      bool struck = true;
      for (std::uint64_t step = 0; struck; ++step) {
        fs::remove_all(prefix());
        fs::create_directories(prefix());
        flush_well(1);
        struck = false;
        std::array<bool, ranks> failed{};
        run(
            [&](PrefixRank& rank) {
              const std::vector<CachedPart> none;
              const Status tidied = tidy(rank.comm, rank.site, none, Unfinished::removed);
              const RankRecord record = write_part(rank, 2);
              failed[static_cast<std::size_t>(rank.comm.rank())] =
                  !flush(rank.comm, rank.site, record, cached_paths(record, 2), "job");
            },
            [&, armed = std::array<std::uint64_t, ranks>{}](
                int rank, const FileOperation& operation) mutable -> Status {
              const std::string path(operation.path);
              const bool counts = rank == victim && path.starts_with(prefix()) &&
                                  (path.find("/ckpt/") != std::string::npos ||
                                   path.find("dataset.2.") != std::string::npos);
              if (!counts || armed[static_cast<std::size_t>(rank)]++ != step) return {};
              struck = true;
              return fail(code, "injected: {} {}", operation.name, operation.path);
            });
        for (const bool one : failed) ASSERT_EQ(one, failed[0]) << victim << " step " << step;
        ASSERT_EQ(fetch_again(failed[0] ? 1 : 2), "") << victim << " step " << step;
        ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << victim << " step " << step;
      }
    }
}

/// A file system that turns read-only, and comes back. What is said to be there must outlive a
/// power failure.
TEST_F(Prefix, ErrorsFromAnyStepOnAreReportedAndTheNextTryHeals) {
  bool struck = true;
  int hidden = 0;  // what was renamed could be neither synced nor taken back
  for (std::uint64_t step = 0; struck; ++step) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    flush_well(1);
    struck = false;
    std::array<bool, ranks> armed{};
    std::uint64_t count = 0;  // of rank 0, as the two below
    bool renamed = false;
    bool durable = false;
    const auto hook = [&](int rank, const FileOperation& operation) -> Status {
      const bool counts =
          operation.path.starts_with(prefix()) && !operation.path.ends_with("/beat");
      if (rank != 0 || !armed[0] || !counts) return {};
      if (count++ >= step) {
        struck = true;
        return fail(Code::io, "injected: {} {}", operation.name, operation.path);
      }
      if (operation.to.starts_with(folder().datasets())) renamed = true;
      if (operation.path == folder().datasets()) durable = renamed;
      return {};
    };
    const auto flush_twice = [&](PrefixRank& rank) {
      const RankRecord record = write_part(rank, 2);
      const auto flush_it = [&]() -> Status {
        CAIRN_TRY(flush(rank.comm, rank.site, record, cached_paths(record, 2), "job"));
        return {};
      };
      bool& mine = armed[static_cast<std::size_t>(rank.comm.rank())];
      mine = true;
      const Status first = flush_it();
      mine = false;
      EXPECT_TRUE(!rank.keeper || !first || durable) << step;
      if (rank.keeper && !first && renamed && !durable) ++hidden;
      if (first) return;
      ASSERT_TRUE(tidy(rank.comm, rank.site, {}, Unfinished::left)) << step;
      const Status again = flush_it();
      ASSERT_TRUE(again) << step << ": " << again.error().text;
    };
    run(flush_twice, hook);
    ASSERT_EQ(fetch_again(2), "") << step;
    ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << step;
  }
  EXPECT_EQ(hidden, 1);
}

/// What could not be taken back is in no listing, and gives no names, before it is durable.
TEST_F(Prefix, NothingIsBuiltOnWhatAPowerFailureWouldTakeAway) {
  std::atomic<bool> read_only = false;
  run(
      [&](PrefixRank& rank) {
        const RankRecord record = write_part(rank, 1);
        ASSERT_FALSE(flush(rank.comm, rank.site, record, cached_paths(record, 1), "job"));
        if (!rank.keeper) return;
        EXPECT_EQ(rank.keeper->known().listing.size(), 1U) << "it can be seen";
        EXPECT_FALSE(rank.keeper->save_listing());
        EXPECT_FALSE(rank.keeper->unfinished_work());
        read_only = false;
        EXPECT_TRUE(rank.keeper->save_listing());
        EXPECT_EQ(rank.keeper->unfinished_work()->size(), 1U)
            << "its files have their names to get";
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool read = operation.name != "sync_folder" && operation.name != "rename";
        if (read_only && !read && operation.path.starts_with(folder().datasets()))
          return fail(Code::io, "injected: {} {}", operation.name, operation.path);
        if (operation.to.starts_with(folder().datasets())) read_only = true;
        return {};
      });
}

/// Both have files of the same names: those of the older one must not get them last.
TEST_F(Prefix, NothingIsFlushedBesideAnOlderOneWhoseFilesHaveNoNamesYet) {
  const auto no_names = [&](int rank, const FileOperation& operation) -> Status {
    const bool struck = rank == 1 && std::string_view(operation.name) == "rename" &&
                        operation.path.starts_with(prefix() + "/ckpt/");
    return struck ? fail(Code::io, "injected: {}", operation.path) : Status{};
  };
  std::atomic<int> refused = 0;
  run(
      [&](PrefixRank& rank) {
        const Status first = flush_dataset(rank, 1);
        EXPECT_TRUE(!first && first.error().text.find("injected") != std::string::npos);
        const Status second = flush_dataset(rank, 2);
        if (!second && second.error().text.find("renamed first") != std::string::npos) ++refused;
      },
      no_names);
  EXPECT_EQ(refused, ranks);
  EXPECT_EQ(fetch_again(1), "");
  flush_well(2);
  EXPECT_EQ(fetch_again(2), "");
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

TEST_F(Prefix, DamagedFilesAreRefusedByName) {
  flush_well(1);
  const std::string path = prefix() + "/ckpt/r1/f1";
  const std::string whole = read_all(path);
  const auto refused = [&](const std::function<void()>& damage, const std::string& names) {
    damage();
    const std::string reported = fetch_again(1);
    EXPECT_NE(reported.find(names), std::string::npos) << reported;
    fs::remove_all(path);
    std::ofstream(path, std::ios::binary) << whole;
    fs::permissions(path, fs::perms(0640));
  };
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1})
    refused(
        [&] {
          std::string damaged = whole;
          damaged[at] ^= 1;
          std::ofstream(path, std::ios::binary) << damaged;
        },
        "f1");
  refused([&] { fs::resize_file(path, whole.size() - 1); }, path);
  refused([&] { fs::resize_file(path, whole.size() + 1); }, path);
  refused([&] { fs::remove(path); }, path);
  refused([&] { fs::remove(path), fs::create_directory(path); }, path);
  refused([&] { fs::remove(path), fs::create_symlink(prefix() + "/ckpt/r1/f0", path); }, path);
  refused([&] { fs::remove(path), ::mkfifo(path.c_str(), 0600); }, path);
  refused([&] { fs::remove(path), bind_socket(path); }, path);
  if (::geteuid() == 0) refused([&] { fs::remove(path), make_null_device(path); }, path);
  refused([&] { fs::remove(path), fs::copy(prefix() + "/ckpt/r2/f1", path); }, path);
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Prefix, ADamagedManifestOrRecordIsRefused) {
  flush_well(1);
  const std::string manifest = DatasetFolder::manifest(folder().dataset(info_of(1)), 0);
  const std::string whole = read_all(manifest);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    std::ofstream(manifest, std::ios::binary) << damaged;
    ASSERT_NE(fetch_again(1), "") << at;
  }
  fs::remove(manifest);
  ::mkfifo(manifest.c_str(), 0600);
  ASSERT_NE(fetch_again(1), "") << "a pipe";
  fs::remove(manifest);
  bind_socket(manifest);
  ASSERT_NE(fetch_again(1), "") << "a socket";
  if (::geteuid() == 0) {
    fs::remove(manifest);
    make_null_device(manifest);
    ASSERT_NE(fetch_again(1), "") << "a device";
  }
  fs::remove(manifest);
  std::ofstream(manifest + ".elsewhere", std::ios::binary) << whole;
  fs::create_symlink(manifest + ".elsewhere", manifest);
  ASSERT_NE(fetch_again(1), "") << "a link";
  fs::remove(manifest);
  std::ofstream(manifest, std::ios::binary) << whole;
  ASSERT_EQ(fetch_again(1), "");
  fs::resize_file(DatasetFolder::record(folder().dataset(info_of(1))), 20);
  fs::remove(folder().listing());
  std::vector<std::string> damaged;
  EXPECT_TRUE(read_listing(*make_posix_files(), folder(), damaged)->empty());
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_NE(damaged[0].find("dataset.1."), std::string::npos) << damaged[0];
}

TEST_F(Prefix, OneWhoseRecordCannotBeReadIsNotCopiedAgain) {
  flush_well(1);
  const std::string record = DatasetFolder::record(folder().dataset(info_of(1)));
  const std::string whole = read_all(record);
  fs::resize_file(record, 20);
  fs::remove(folder().listing());
  run_well([](PrefixRank& rank) {
    if (!rank.keeper) return;
    const Status begun = rank.keeper->begin(info_of(1));
    ASSERT_FALSE(begun);
    EXPECT_NE(begun.error().text.find("dataset.1."), std::string::npos) << begun.error().text;
  });
  std::ofstream(record, std::ios::binary) << whole;
  EXPECT_EQ(fetch_again(1), "");
  run_well([](PrefixRank& rank) {
    if (!rank.keeper) return;
    EXPECT_TRUE(rank.keeper->begin(info_of(1))) << "it is known now";
    EXPECT_TRUE(rank.keeper->epoch_folder().abandon(info_of(1)));
  });
}

TEST_F(Prefix, TheListingIsMadeAgainFromTheRecords) {
  flush_well(1);
  flush_well(2);
  run_well([](PrefixRank& rank) {
    if (rank.keeper) {
      ASSERT_TRUE(rank.keeper->save_listing());
    }
  });
  const std::string kept = read_all(folder().listing());
  ASSERT_FALSE(kept.empty());
  std::vector<std::string> damaged;
  for (const bool gone : {true, false}) {
    if (gone)
      fs::remove(folder().listing());
    else
      std::ofstream(folder().listing(), std::ios::binary) << kept.substr(1);
    const Listing again = *read_listing(*make_posix_files(), folder(), damaged);
    EXPECT_EQ(encode(again),
              Blob(std::as_bytes(std::span(kept)).begin(), std::as_bytes(std::span(kept)).end()));
  }
}

/// It would hide what is published after it.
TEST_F(Prefix, AListingThatCouldNotBeSyncedIsRemovedBeforeTheNextChange) {
  flush_well(1);
  std::atomic<bool> placed = false;
  bool published = false;
  run(
      [&](PrefixRank& rank) {
        ASSERT_TRUE(flush_dataset(rank, 2));
        EXPECT_FALSE(rank.keeper && rank.keeper->save_listing());
        ASSERT_TRUE(flush_dataset(rank, 3));
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool syncs = operation.name == "sync_folder" && operation.path == folder().root();
        if (syncs && placed.exchange(false)) return fail(Code::io, "injected");
        if (operation.name != "rename") return {};
        placed = placed || operation.to == folder().listing();
        if (operation.to != folder().dataset(info_of(3))) return {};
        published = true;
        EXPECT_FALSE(fs::exists(folder().listing()));
        return {};
      });
  EXPECT_TRUE(published);
}

TEST_F(Prefix, TwoRanksWithOneNameAreRefused) {
  run_well([&](PrefixRank& rank) {
    RankRecord record = write_part(rank, 1);
    const std::vector<std::string> paths = cached_paths(record, 1);
    if (record.rank == 2) record.files[0].name = "ckpt/r0/f0";
    const auto flushed = flush(rank.comm, rank.site, record, paths, "job");
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code, Code::invalid);
    EXPECT_NE(flushed.error().text.find("ckpt/r0/f0"), std::string::npos);
  });
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

TEST_F(Prefix, WhoseEpochIsOverChangesNothing) {
  flush_well(1);
  const auto files = make_posix_files();
  const auto clock = make_system_clock();
  auto early = Keeper::take_over(*files, *clock, folder(), owner());
  ASSERT_TRUE(early);
  ASSERT_TRUE(early->begin(info_of(2)));
  auto late = Keeper::take_over(*files, *clock, folder(), owner());
  ASSERT_TRUE(late);
  EXPECT_EQ(late->epoch_folder().epoch(), early->epoch_folder().epoch() + 1);
  DatasetRecord record = early->known().listing[0];
  const auto busy = [](const Status& status) {
    return !status && status.error().code == Code::busy;
  };
  record.quarantined = true;
  EXPECT_TRUE(busy(early->update(record)));
  EXPECT_TRUE(busy(early->set_current("x")));
  EXPECT_TRUE(busy(early->begin(info_of(3))));
  record.info = info_of(2);
  EXPECT_TRUE(busy(early->publish(record, EpochFolder::Seen::by_us_only)));
  const auto dropped = early->drop(info_of(1));
  EXPECT_TRUE(busy(dropped));
  EXPECT_TRUE(busy(early->take_out(info_of(1))));
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*files, folder(), damaged);
  ASSERT_EQ(listing.size(), 1U);
  EXPECT_FALSE(listing[0].quarantined);
}

/// Of two that take over at the same time, without locks: where the second begins and ends within
/// one call of the first.
class AtOnce : public PrefixFixture {
 protected:
  Result<Keeper> take_over_unlocked(const std::string& job) {
    return Keeper::take_over(*unlocked_, clock_, folder(), owner(job));
  }

  /// The first, which another overtakes before the call for which `when` is true.
  Result<Keeper> overtaken(const std::string& other_job,
                           const std::function<bool(const FileOperation&)>& when) {
    hooked_ = make_hooked_files(*unlocked_, [&](const FileOperation& operation) -> Status {
      if (!second_ && when(operation)) second_.emplace(take_over_unlocked(other_job));
      return {};
    });
    auto first = Keeper::take_over(*hooked_, clock_, folder(), owner("a"));
    EXPECT_TRUE(second_ && *second_);
    return first;
  }

  static bool opens_epoch(const FileOperation& operation) {
    return operation.name == "make_new_folder";
  }

  std::unique_ptr<Files> posix_ = make_posix_files();
  std::unique_ptr<Files> unlocked_ =
      make_hooked_files(*posix_, [](const FileOperation& operation) -> Status {
        if (operation.name == "lock") return fail(Code::io, "no locks here");
        return {};
      });
  std::unique_ptr<Files> hooked_;
  SleepersClock clock_;
  std::optional<Result<Keeper>> second_;
};

TEST_F(AtOnce, NoTwoOwnersHaveOneEpoch) {
  const auto first = overtaken("a", opens_epoch);
  ASSERT_TRUE(first);
  EXPECT_EQ((*second_)->epoch_folder().epoch(), 1U);
  EXPECT_EQ(first->epoch_folder().epoch(), 2U);
  EXPECT_EQ((*second_)->set_current("x").error().code, Code::busy);
}

TEST_F(AtOnce, AJobThatHasJustTakenTheNextEpochKeepsAnotherOut) {
  const auto first = overtaken("b", opens_epoch);
  ASSERT_FALSE(first);
  EXPECT_NE(first.error().text.find("job b of tester has just become the owner"), std::string::npos)
      << first.error().text;
  EXPECT_TRUE((*second_)->set_current("x"));
}

TEST_F(AtOnce, TheEarlierDoesNotCloseTheLater) {
  bool opened = false;
  const auto first = overtaken("a", [&](const FileOperation& operation) {
    opened = opened || opens_epoch(operation);
    return opened && operation.name == "list";
  });
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Code::busy);
  EXPECT_EQ((*second_)->epoch_folder().epoch(), 2U);
  EXPECT_TRUE((*second_)->set_current("x"));
}

/// By a process that still copies then: the names are the same.
TEST_F(Prefix, WhatTheNextOwnerHasStagedIsNotWrittenOver) {
  std::vector<std::string> made;
  Status reported;
  run(
      [&](PrefixRank& rank) {
        const Status flushed = flush_dataset(rank, 1);
        if (rank.comm.rank() == 0) reported = flushed;
      },
      [&](int rank, const FileOperation& operation) -> Status {
        if (rank != 1 || operation.name != "create" ||
            operation.path.find("/ckpt/r1/.cairn.") == std::string::npos)
          return {};
        made.emplace_back(operation.path);
        const auto files = make_posix_files();
        SleepersClock clock;
        EXPECT_TRUE(Keeper::take_over(*files, clock, folder(), owner()));
        return {};
      });
  EXPECT_FALSE(reported) << "whichever rank was the first to notice";
  EXPECT_EQ(made.size(), 1U) << "none after the takeover";
}

/// What its dying owner has published last need not be durable, and the next one settles it.
TEST_F(Prefix, ATakeoverMakesDurableWhatIsThere) {
  bool closed = false;
  std::vector<std::string> synced;
  const auto posix = make_posix_files();
  const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    closed = closed || (operation.name == "rename" && operation.to.ends_with("/owner"));
    if (closed && operation.name == "sync_folder") synced.emplace_back(operation.path);
    return {};
  });
  SleepersClock clock;
  ASSERT_TRUE(Keeper::take_over(*files, clock, folder(), owner("a")));
  EXPECT_TRUE(std::count(synced.begin(), synced.end(), folder().datasets()));
}

TEST_F(Prefix, AnotherLivingJobIsKeptOut) {
  const auto files = make_posix_files();
  SleepersClock clock;
  auto first = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(first);
  clock.meanwhile = first->heartbeat();
  const auto second = Keeper::take_over(*files, clock, folder(), owner("b"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::busy);
  EXPECT_NE(second.error().text.find("job a of tester"), std::string::npos) << second.error().text;
  EXPECT_TRUE(first->set_current("x")) << "it still owns it";
}

TEST_F(Prefix, DoesNotWaitForAJobThatHasEndedOrIsTheSame) {
  const auto files = make_posix_files();
  SleepersClock clock;
  clock.meanwhile = [] { FAIL() << "slept"; };
  auto first = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(first);
  auto again = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(again) << "its dead run must not stop a job that is started again";
  ASSERT_TRUE(again->resign());
  EXPECT_TRUE(Keeper::take_over(*files, clock, folder(), owner("b")));
}

TEST_F(Prefix, AJobThatIsSilentIsTakenForDead) {
  const auto files = make_posix_files();
  SleepersClock clock;
  auto dead = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(dead);
  const std::int64_t from_us = clock.now;
  const auto heartbeat = dead->heartbeat();
  const auto next = Keeper::take_over(*files, clock, folder(), owner("b"));
  ASSERT_TRUE(next) << next.error().text;
  EXPECT_GE(clock.now - from_us, 2 * beat_period_us);
  EXPECT_LE(clock.now - from_us, 2 * silence_us);
  heartbeat();  // it was only slow
  EXPECT_EQ((*read_owner(*files, folder()))->job_id, "b");
  EXPECT_EQ(dead->set_current("x").error().code, Code::busy);
}

TEST_F(Prefix, ADamagedOwnerRecordKeepsNoJobOut) {
  const auto files = make_posix_files();
  SleepersClock clock;
  const auto first = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(first);
  fs::resize_file(folder().owner(), 20);
  const auto next = Keeper::take_over(*files, clock, folder(), owner("b"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->epoch_folder().epoch(), first->epoch_folder().epoch());
}

}  // namespace
}  // namespace cairn
