// A job of a few ranks with a prefix directory, for the tests of this room and of the commands.
#pragma once

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
#include "prefix/remove_files.hpp"
#include "prefix/tidy.hpp"
#include "redundancy/protect.hpp"

namespace cairn::prefix_harness {

inline constexpr int ranks = 3;
inline constexpr std::int64_t minute_us = 60'000'000;

struct Crash {};

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

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string content_of(int dataset, int rank, int file) {
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

/// A prefix directory, and caches that datasets come from.
class Prefix : public ::testing::Test {
 protected:
  Prefix() {
    test_begun_us = make_system_clock()->now_us();
    std::filesystem::create_directories(prefix());
    std::filesystem::create_directories(base_.path() + "/cache");
  }

  std::string prefix() const { return base_.path() + "/prefix"; }
  PrefixFolder folder() const { return {prefix()}; }

  /// One launch of the job: takes over, then does `rank_main`.
  void run(const RankMain& rank_main, const RankHook& hook = nullptr, int processes = ranks) {
    Team(processes).run([&](Communicator& comm) {
      const auto seen = make_files();
      const auto files = make_hooked_files(*seen, [&](const FileOperation& operation) {
        return hook ? hook(comm.rank(), operation) : Status{};
      });
      const auto clock = make_clock(comm.rank());
      const auto background = threads > 1 ? make_background_thread() : make_foreground();
      RankRun rank{comm,
                   *files,
                   {*files, *clock, folder(), 0, 1, true, {2, 0}, {*background, threads}, nullptr},
                   {}};
      ASSERT_NO_FATAL_FAILURE(take_over(rank, *clock));
      rank_main(rank);
    });
  }

  /// As run(), with every call good.
  void run_well(const RankMain& rank_main) {
    run([&](RankRun& rank) {
      const std::vector<CachedPart> none;
      const Status tidied = tidy(rank.comm, rank.site, none, Unfinished::removed);
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

  /// The first of those that are begun half an hour ago; the others are begun long before.
  static constexpr int begun_later = 1'000'000;
  /// And of those that are begun half a minute ago, and in half an hour.
  static constexpr int begun_just_now = 2'000'000;
  static constexpr int begun_in_future = 3'000'000;

  static DatasetInfo info_of(int dataset) {
    const auto number = static_cast<std::uint64_t>(dataset);
    const std::int64_t begun_us = dataset < begun_later       ? 1000
                                  : dataset < begun_just_now  ? test_begun_us - 30 * minute_us
                                  : dataset < begun_in_future ? test_begun_us - minute_us / 2
                                                              : test_begun_us + 30 * minute_us;
    return {{begun_us + dataset, 7}, number, number, 1, ranks, fmt::format("ckpt.{}", dataset)};
  }

  /// A part without files.
  static RankRecord record_of(const DatasetInfo& dataset, int rank) {
    RankRecord record;
    record.dataset = dataset;
    record.rank = rank;
    record.encoding.block_bytes = 4096;
    record.encoding.members = {rank};
    record.encoding.member_nodes = {"n"};
    return record;
  }

  RankFolder cached(int dataset, int rank) const {
    return {fmt::format("{}/cache/{}.{}", base_.path(), dataset, rank)};
  }

  /// Writes a rank's part of a dataset into its cache.
  RankRecord write_part(RankRun& rank, int dataset) const {
    RankRecord record = record_of(info_of(dataset), rank.comm.rank());
    const RankFolder folder = cached(dataset, record.rank);
    for (int file = 0; file < 2; ++file) {
      const std::string name = fmt::format("{}/r{}/f{}", files_in, record.rank, file);
      std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
      std::ofstream(folder.file(name), std::ios::binary) << content_of(dataset, record.rank, file);
      const FileInfo info = *rank.files.info(folder.file(name));
      record.files.push_back({name, info.size, 0640, info.owner, info.group, {5, modify_ns}});
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
    auto account = flush(rank.comm, rank.site, record, cached_paths(record, dataset), "job");
    CAIRN_TRY(account);
    return account->settled;
  }

  void flush_well(int dataset) {
    run_well([&](RankRun& rank) {
      const Status flushed = flush_dataset(rank, dataset);
      ASSERT_TRUE(flushed) << flushed.error().text;
    });
  }

  /// Flushes a dataset, but one rank dies at its call number `step`, or the next one in the
  /// prefix directory. False if it has none so late.
  bool flush_crashes(int dataset, int victim, std::uint64_t step) {
    bool crashed = false;
    try {
      run([&](RankRun& rank) { (void)flush_dataset(rank, dataset); },
          [&](int rank, const FileOperation& operation) -> Status {
            if (rank != victim || operation.index < step || !operation.path.starts_with(prefix()))
              return {};
            crashed = true;
            throw Crash{};
          });
    } catch (const Crash&) {
    }
    return crashed;
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
        if (rank.comm.rank() == 0) trouble = "not listed";
        return;
      }
      const RankFolder into{fmt::format("{}/fetched.{}", base_.path(), rank.comm.rank())};
      std::filesystem::remove_all(into.path);
      const auto record = fetch(rank.comm, rank.site, *known, into);
      if (!record && rank.comm.rank() == 0) trouble = record.error().text;
      if (record) expect_part(*record, into, dataset);
    });
    return trouble;
  }

  void expect_part(const RankRecord& record, const RankFolder& into, int dataset) const {
    for (int file = 0; file < 2; ++file) {
      const FileEntry& entry = record.files[static_cast<std::size_t>(file)];
      EXPECT_EQ(read(into.file(entry.name)), content_of(dataset, record.rank, file)) << entry.name;
      const FileInfo info = *make_posix_files()->info(into.file(entry.name));
      EXPECT_EQ(info.mode, 0640U);
      EXPECT_EQ(info.times.modify_ns, modify_ns);
    }
  }

  std::vector<std::string> names_of_cairn() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(prefix())) {
      const std::string relative = std::filesystem::relative(entry.path(), prefix());
      const bool staged = entry.path().filename().string().starts_with(".cairn.");
      const bool closed = relative.starts_with(".cairn/closed.");
      if (staged || closed) found.push_back(relative);
    }
    return found;
  }

  inline static std::int64_t test_begun_us = 0;
  TemporaryFolder base_{"/dev/shm"};
  int threads = 1;                         ///< by which a rank copies
  std::string files_in = "ckpt";           ///< of all datasets to come
  std::int64_t modify_ns = 1'000'000'000;  ///< of all files
  std::function<std::unique_ptr<Clock>(int rank)> make_clock = [](int) {
    return make_system_clock();
  };
  /// What the ranks see of the files.
  std::function<std::unique_ptr<Files>()> make_files = make_posix_files;
};

}  // namespace cairn::prefix_harness
