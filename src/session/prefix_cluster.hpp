// The simulated job of session_harness.hpp with a prefix directory.
#pragma once

#include <atomic>
#include <thread>

#include "prefix/keeper.hpp"
#include "session/session_harness.hpp"

namespace cairn {

/// That by which a rank tells that it has done its part of a flush.
inline bool is_marker_of(const FileOperation& operation, int rank) {
  return operation.name == "create" && operation.path.ends_with(fmt::format("/done/0.{}", rank));
}

/// A cluster with a prefix directory; every second checkpoint is copied there.
class PrefixCluster : public Cluster {
 public:
  PrefixCluster() {
    settings.prefix = node("pfs");
    std::filesystem::create_directories(settings.prefix);
    settings.flush = true;
    settings.flush_interval = 2;
    settings.fetch = true;
  }

  void lose_all_nodes() {
    for (const std::string name : {"n0", "n1", "n2", "n3"}) lose(name);
  }

  /// Checkpoint 4 is unprotected, and its flush dies; then n3 is lost, which had done its part.
  void lose_node_that_has_flushed() {
    settings.checkpoints[0].scheme = Scheme::single;
    write(four_nodes(), {1, 2, 3});
    std::atomic<int> done = 0;
    EXPECT_FALSE(run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      rank.hook = [&](const FileOperation& operation) -> Status {
        if (is_marker_of(operation, 6) || is_marker_of(operation, 7)) ++done;
        if (!is_marker_of(operation, 0)) return {};
        while (done < 2) std::this_thread::yield();
        throw Crash{};
      };
      (void)rank.write(4);
    }));
    lose("n3");
  }

  /// Writes these datasets, and ends well.
  void write_and_finalize(const std::vector<int>& datasets, std::uint32_t flags = flag_checkpoint) {
    run_well(four_nodes(), [&](JobRank& rank) {
      for (const int dataset : datasets) rank.expect_written(dataset, flags);
      EXPECT_TRUE(rank.session->finalize());
    });
  }

  std::string file(int dataset, int rank, int number = 0) const {
    return fmt::format("{}/ckpt.{}/rank {}.{}", settings.prefix, dataset, rank, number);
  }

  /// Names in the listing, newest first.
  std::vector<std::string> listed() const {
    std::vector<std::string> names;
    std::vector<std::string> damaged;
    const auto files = make_posix_files();
    const Listing listing = *read_listing(*files, {settings.prefix}, damaged);
    for (const DatasetRecord& record : listing) names.push_back(record.info.name);
    EXPECT_TRUE(damaged.empty());
    return names;
  }

  void expect_own_files(int dataset) const {
    for (int rank = 0; rank < 8; ++rank)
      for (int number = 0; number < files_per_rank; ++number)
        EXPECT_EQ(read_all(file(dataset, rank, number)), content_of(rank, number, dataset));
  }

  void flip(const std::string& path) const {
    std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
    const int byte = stream.get();
    stream.seekp(0).put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(stream.good()) << path;
  }
};

using Names = std::vector<std::string>;

}  // namespace cairn
