// Datasets of a Team on their way to the prefix directory and back, on real files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "comm/group.hpp"
#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/fetch.hpp"
#include "prefix/flush.hpp"
#include "prefix/manifest.hpp"
#include "prefix/tidy.hpp"
#include "redundancy/protect.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int ranks = 3;

struct Crash {};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string content_of(int dataset, int rank, int file) {
  std::string content(static_cast<std::size_t>(3000 * rank + 5000 * file), '\0');
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] =
        static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(dataset * 5 + rank)) % 23);
  return content;
}

/// One rank of a run: what it needs to flush and to fetch.
struct RankRun {
  Communicator& comm;
  Files& files;
  Site site;
  std::optional<Keeper> keeper;
};

using RankMain = std::function<void(RankRun&)>;
using RankHook = std::function<Status(int rank, const FileOperation&)>;

class Prefix : public ::testing::Test {
 protected:
  Prefix() {
    fs::create_directories(prefix());
    fs::create_directories(base_.path() + "/cache");
  }

  std::string prefix() const { return base_.path() + "/prefix"; }
  PrefixFolder folder() const { return {prefix()}; }

  /// One launch of the job: takes over, tidies, then does `rank_main`.
  void run(const RankMain& rank_main, const RankHook& hook = nullptr) {
    Team(ranks).run([&](Communicator& comm) {
      const auto posix = make_posix_files();
      const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) {
        return hook ? hook(comm.rank(), operation) : Status{};
      });
      const auto clock = make_system_clock();
      RankRun rank{comm, *files, {*files, *clock, folder(), 0, 1, true, {2, 0}, nullptr}, {}};
      ASSERT_NO_FATAL_FAILURE(take_over(rank, *clock));
      rank_main(rank);
    });
  }

  /// As run(), with every call good.
  void run_well(const RankMain& rank_main) {
    run([&](RankRun& rank) {
      const Status tidied = tidy(rank.comm, rank.site);
      ASSERT_TRUE(tidied) << tidied.error().text;
      rank_main(rank);
    });
  }

  static OwnerRecord owner(const std::string& job = "job") {
    return {0, {1, 2}, job, "tester", "n0", 1, 1, 0};
  }

  void take_over(RankRun& rank, Clock& clock) {
    if (rank.comm.rank() == 0) {
      auto keeper = Keeper::take_over(rank.files, clock, folder(), owner());
      ASSERT_TRUE(keeper) << keeper.error().text;
      rank.keeper.emplace(*std::move(keeper));
      rank.site.keeper = &*rank.keeper;
    }
    std::uint64_t epoch = rank.keeper ? rank.keeper->epoch() : 0;
    rank.comm.bcast(mutable_bytes_of(epoch), 0);
    rank.site.epoch = epoch;
  }

  static DatasetInfo info_of(int dataset) {
    const auto number = static_cast<std::uint64_t>(dataset);
    return {{1000 + dataset, 7}, number, number, 1, ranks, fmt::format("ckpt.{}", dataset)};
  }

  RankFolder cached(int dataset, int rank) const {
    return {fmt::format("{}/cache/{}.{}", base_.path(), dataset, rank)};
  }

  /// Writes a rank's part of a dataset into its cache. All datasets have files of the same names.
  RankRecord write_part(RankRun& rank, int dataset) const {
    RankRecord record;
    record.dataset = info_of(dataset);
    record.rank = rank.comm.rank();
    record.encoding.block_bytes = 4096;
    record.encoding.members = {record.rank};
    record.encoding.member_nodes = {"n"};
    const RankFolder folder = cached(dataset, record.rank);
    for (int file = 0; file < 2; ++file) {
      const std::string name = fmt::format("ckpt/r{}/f{}", record.rank, file);
      fs::create_directories(fs::path(folder.file(name)).parent_path());
      std::ofstream(folder.file(name), std::ios::binary) << content_of(dataset, record.rank, file);
      const FileInfo info = *rank.files.info(folder.file(name));
      record.files.push_back({name, info.size, 0640, info.owner, info.group, {5, 1'000'000'000}});
    }
    Group alone(rank.comm, {record.rank});
    EXPECT_TRUE(protect(alone, rank.files, folder, record, 1 << 20));
    return record;
  }

  std::vector<std::string> cached_paths(const RankRecord& record, int dataset) const {
    std::vector<std::string> paths;
    for (const FileEntry& file : record.files)
      paths.push_back(cached(dataset, record.rank).file(file.name));
    return paths;
  }

  Status flush_dataset(RankRun& rank, int dataset) const {
    const RankRecord record = write_part(rank, dataset);
    Status settled;
    auto account =
        flush(rank.comm, rank.site, record, cached_paths(record, dataset), "job", settled);
    CAIRN_TRY(account);
    return settled;
  }

  void flush_well(int dataset) {
    run_well([&](RankRun& rank) {
      const Status flushed = flush_dataset(rank, dataset);
      ASSERT_TRUE(flushed) << flushed.error().text;
    });
  }

  /// The error of fetching a dataset; empty if it came back byte for byte, with modes and times.
  std::string fetch_again(int dataset) {
    std::string trouble;
    run_well([&](RankRun& rank) {
      std::vector<std::string> damaged;
      const Listing listing = *read_listing(rank.files, folder(), damaged);
      const auto known = std::find_if(listing.begin(), listing.end(), [&](const auto& record) {
        return record.info == info_of(dataset);
      });
      if (known == listing.end()) {
        trouble = "not listed";
        return;
      }
      const RankFolder into{fmt::format("{}/fetched.{}", base_.path(), rank.comm.rank())};
      fs::remove_all(into.path);
      const auto record = fetch(rank.comm, rank.site, *known, into);
      if (!record && rank.comm.rank() == 0) trouble = record.error().text;
      if (record) expect_part(*record, into, dataset);
    });
    return trouble;
  }

  static void expect_part(const RankRecord& record, const RankFolder& into, int dataset) {
    for (int file = 0; file < 2; ++file) {
      const FileEntry& entry = record.files[static_cast<std::size_t>(file)];
      EXPECT_EQ(read(into.file(entry.name)), content_of(dataset, record.rank, file)) << entry.name;
      const FileInfo info = *make_posix_files()->info(into.file(entry.name));
      EXPECT_EQ(info.mode, 0640U);
      EXPECT_EQ(info.times.modify_ns, 1'000'000'000);
    }
  }

  std::vector<std::string> names_of_cairn() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(prefix())) {
      const std::string relative = fs::relative(entry.path(), prefix());
      const bool staged = entry.path().filename().string().starts_with(".cairn.");
      const bool closed = relative.starts_with(".cairn/closed.");
      if (staged || closed) found.push_back(relative);
    }
    return found;
  }

  TemporaryFolder base_{"/dev/shm"};
};

TEST_F(Prefix, FlushedFilesHaveTheirOwnNamesBytesAndModes) {
  flush_well(1);
  for (int rank = 0; rank < ranks; ++rank)
    for (int file = 0; file < 2; ++file) {
      const std::string path = fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file);
      EXPECT_EQ(read(path), content_of(1, rank, file)) << path;
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
      crashed = false;
      try {
        run([&](RankRun& rank) { (void)flush_dataset(rank, 2); },
            [&](int rank, const FileOperation& operation) -> Status {
              if (rank == victim && operation.index >= step &&
                  std::string(operation.path).starts_with(prefix())) {
                crashed = true;
                throw Crash{};
              }
              return {};
            });
      } catch (const Crash&) {
      }
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

TEST_F(Prefix, AnErrorAtAnyStepIsToldToAllAndHarmsNothing) {
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
            [&](RankRun& rank) {
              const Status tidied = tidy(rank.comm, rank.site);
              const RankRecord record = write_part(rank, 2);
              Status settled;
              failed[static_cast<std::size_t>(rank.comm.rank())] =
                  !flush(rank.comm, rank.site, record, cached_paths(record, 2), "job", settled);
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

TEST_F(Prefix, DamagedFilesAreRefusedByName) {
  flush_well(1);
  const std::string path = prefix() + "/ckpt/r1/f1";
  const std::string whole = read(path);
  const auto refused = [&](const std::function<void()>& damage, const std::string& names) {
    damage();
    const std::string told = fetch_again(1);
    EXPECT_NE(told.find(names), std::string::npos) << told;
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
  refused([&] { fs::remove(path), fs::copy(prefix() + "/ckpt/r2/f1", path); }, path);
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Prefix, ADamagedManifestOrRecordIsRefused) {
  flush_well(1);
  const std::string manifest = PrefixFolder::manifest(folder().dataset(info_of(1)), 0);
  const std::string whole = read(manifest);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    std::ofstream(manifest, std::ios::binary) << damaged;
    ASSERT_NE(fetch_again(1), "") << at;
  }
  std::ofstream(manifest, std::ios::binary) << whole;
  ASSERT_EQ(fetch_again(1), "");
  fs::resize_file(PrefixFolder::record(folder().dataset(info_of(1))), 20);
  fs::remove(folder().listing());
  std::vector<std::string> damaged;
  EXPECT_TRUE(read_listing(*make_posix_files(), folder(), damaged)->empty());
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_NE(damaged[0].find("dataset.1."), std::string::npos) << damaged[0];
}

TEST_F(Prefix, TheListingIsMadeAgainFromTheRecords) {
  flush_well(1);
  flush_well(2);
  run_well([](RankRun& rank) {
    if (rank.keeper) {
      ASSERT_TRUE(rank.keeper->save_listing());
    }
  });
  const std::string kept = read(folder().listing());
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

TEST_F(Prefix, TwoRanksWithOneNameAreRefused) {
  run_well([&](RankRun& rank) {
    RankRecord record = write_part(rank, 1);
    const std::vector<std::string> paths = cached_paths(record, 1);
    if (record.rank == 2) record.files[0].name = "ckpt/r0/f0";
    Status settled;
    const auto flushed = flush(rank.comm, rank.site, record, paths, "job", settled);
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code, Code::invalid);
    EXPECT_NE(flushed.error().text.find("a name of its own"), std::string::npos);
  });
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

TEST_F(Prefix, ALinkOnTheWayIsRefused) {
  fs::create_directories(base_.path() + "/elsewhere");
  fs::create_symlink(base_.path() + "/elsewhere", prefix() + "/ckpt");
  run_well([&](RankRun& rank) {
    const Status flushed = flush_dataset(rank, 1);
    ASSERT_FALSE(flushed);
    EXPECT_NE(flushed.error().text.find(prefix() + "/ckpt"), std::string::npos)
        << flushed.error().text;
  });
  EXPECT_TRUE(fs::is_empty(base_.path() + "/elsewhere"));
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
  EXPECT_EQ(late->epoch(), early->epoch() + 1);
  DatasetRecord record = early->listing()[0];
  const auto busy = [](const Status& status) {
    return !status && status.error().code == Code::busy;
  };
  record.quarantined = true;
  EXPECT_TRUE(busy(early->update(record)));
  EXPECT_TRUE(busy(early->set_current("x")));
  EXPECT_TRUE(busy(early->begin(info_of(3))));
  record.info = info_of(2);
  EXPECT_TRUE(busy(early->publish(record)));
  const auto dropped = early->take_out(info_of(1), Keeper::TakenOut::dropped);
  EXPECT_FALSE(dropped);
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*files, folder(), damaged);
  ASSERT_EQ(listing.size(), 1U);
  EXPECT_FALSE(listing[0].quarantined);
}

/// Time goes on where somebody sleeps; what happens meanwhile is the test's.
class SleepersClock final : public Clock {
 public:
  std::int64_t now_us() override { return now; }
  std::int64_t steady_us() override { return now; }
  void sleep_us(std::int64_t us) override {
    now += us;
    if (meanwhile) meanwhile();
  }
  std::uint64_t random() override { return 0; }
  std::int64_t now = std::int64_t{1} << 50;
  std::function<void()> meanwhile;
};

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

TEST_F(Prefix, NobodyWaitsForAJobThatHasEndedOrIsTheSame) {
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

TEST_F(Prefix, AnOwnerRecordThatNobodyCanReadKeepsNobodyOut) {
  const auto files = make_posix_files();
  SleepersClock clock;
  const auto first = Keeper::take_over(*files, clock, folder(), owner("a"));
  ASSERT_TRUE(first);
  fs::resize_file(folder().owner(), 20);
  const auto next = Keeper::take_over(*files, clock, folder(), owner("b"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->epoch(), first->epoch());
}

TEST_F(Prefix, ADeletedDatasetTakesItsFilesAlongAndNobodyElses) {
  flush_well(1);
  std::ofstream(prefix() + "/ckpt/r0/mine") << "the user's";
  run_well([&](RankRun& rank) {
    std::string taken;
    if (rank.keeper) taken = *rank.keeper->take_out(info_of(1), Keeper::TakenOut::deleted);
    Blob blob(std::as_bytes(std::span(taken)).begin(), std::as_bytes(std::span(taken)).end());
    bcast_blob(rank.comm, blob, 0);
    const std::string removed(reinterpret_cast<const char*>(blob.data()), blob.size());
    ASSERT_TRUE(remove_files(rank.comm, rank.site, removed, ranks, ranks_per_manifest));
  });
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r1"));
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r0/f1"));
  EXPECT_EQ(read(prefix() + "/ckpt/r0/mine"), "the user's");
  EXPECT_EQ(fetch_again(1), "not listed");
}

}  // namespace
}  // namespace cairn
