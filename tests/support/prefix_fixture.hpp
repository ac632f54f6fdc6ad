// The fixture of tests of the prefix directory: a job of three ranks that flushes and fetches
// parts, without a session.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/team.hpp"
#include "files/temporary_folder.hpp"
#include "prefix/fetch.hpp"
#include "prefix/flush.hpp"
#include "prefix/manifest.hpp"
#include "prefix/remove_files.hpp"
#include "prefix/tidy.hpp"
#include "redundancy/protect.hpp"
#include "support/faults.hpp"
#include "support/file_contents.hpp"
#include "support/test_clocks.hpp"
#include "support/test_rank.hpp"

namespace cairn {

/// A rank with what it needs to flush and to fetch.
struct PrefixRank : TestRank {
  /// It copies by so many threads.
  PrefixRank(Communicator& its_comm, std::unique_ptr<Files> its_files, Clock& clock,
             const PrefixFolder& folder, int threads);

  Site site;
  std::optional<Keeper> keeper;
};

/// A prefix directory, and caches that datasets come from.
class PrefixFixture : public ::testing::Test {
 protected:
  static constexpr int ranks = 3;
  static constexpr std::int64_t minute_us = 60'000'000;

  using RankMain = std::function<void(PrefixRank&)>;
  using RankHook = std::function<Status(int rank, const FileOperation&)>;

  PrefixFixture();

  std::string prefix() const { return base_.path() + "/prefix"; }
  PrefixFolder folder() const { return {prefix()}; }

  // --- runs ---

  /// One run of the job: becomes the owner, then does `rank_main`.
  void run(const RankMain& rank_main, const RankHook& hook = nullptr, int processes = ranks);

  /// As run(), and tidies first. No call may fail.
  void run_well(const RankMain& rank_main);

  static OwnerRecord owner(const std::string& job = "job") {
    return {0, {1, 2}, job, "tester", "n0", 1, 1, 0};
  }
  void take_over(PrefixRank& rank, Clock& clock);

  // --- datasets ---

  /// Datasets with these numbers and above begin half an hour ago, half a minute ago, and in half
  /// an hour. Those with smaller numbers begin long before.
  static constexpr int begun_later = 1'000'000;
  static constexpr int begun_just_now = 2'000'000;
  static constexpr int begun_in_future = 3'000'000;

  /// Dataset made_anew + n has the number, the name, and the sizes of files of dataset n, but other
  /// bytes: a run has gone back to an older one, and has made it once more.
  static constexpr int made_anew = 500'000;

  static DatasetInfo info_of(int dataset);
  static std::string content_of(int dataset, int rank, int file);

  /// A part without files.
  static RankRecord record_of(const DatasetInfo& dataset, int rank);

  RankFolder cached(int dataset, int rank) const {
    return {fmt::format("{}/cache/{}.{}", base_.path(), dataset, rank)};
  }
  std::vector<std::string> cached_paths(const RankRecord& record, int dataset) const;

  /// Writes a rank's part of a dataset into its cache.
  RankRecord write_part(PrefixRank& rank, int dataset) const;

  Status flush_dataset(PrefixRank& rank, int dataset) const;
  void flush_well(int dataset);

  /// Flushes a dataset, but one rank dies at its call number `step`, or the next one in the
  /// prefix directory. False if it makes no such call.
  bool flush_crashes(int dataset, int victim, std::uint64_t step);

  /// Fetches a dataset. Returns the error; empty if all bytes, modes and times came back.
  std::string fetch_again(int dataset);
  void expect_part(const RankRecord& record, const RankFolder& into, int dataset) const;

  /// Files that Cairn has staged, and directories of closed epochs.
  std::vector<std::string> names_of_cairn() const;

  inline static std::int64_t test_begun_us = 0;
  TemporaryFolder base_{memory_base()};
  int threads = 1;                         ///< by which a rank copies
  std::string files_in = "ckpt";           ///< of all datasets to come
  std::int64_t modify_ns = 1'000'000'000;  ///< of all files
  std::uint32_t file_mode = 0640;          ///< the same
  std::function<std::unique_ptr<Clock>(int rank)> make_clock = [](int) {
    return make_system_clock();
  };
  /// What the ranks see of the files.
  std::function<std::unique_ptr<Files>()> make_files = make_posix_files;
};

}  // namespace cairn
