// The simulated job of session_harness.hpp with a prefix directory.
#pragma once

#include "prefix/keeper.hpp"
#include "session/session_harness.hpp"

namespace cairn {

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
