// A simulated job in a prefix directory where SCR left checkpoints, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prefix/scr_harness.hpp"
#include "session/prefix_cluster.hpp"

namespace cairn {

/// SCR's checkpoint N has a file "ckpt.N/rank_R" of each rank.
class ScrCluster : public PrefixCluster {
 public:
  ScrCluster() { settings.flush_interval = 1; }

  /// What the directory holds but for Cairn's: names and contents.
  std::map<std::string, std::string> left_by_scr() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(settings.prefix)) {
      const std::string name = entry.path().lexically_relative(settings.prefix);
      if (entry.is_regular_file() && !name.starts_with(".cairn"))
        found[name] = read_all(entry.path());
    }
    return found;
  }

  ScrPrefix scr{settings.prefix};
};

inline std::string expected(int dataset, int rank) {
  return ScrPrefix::content_of(static_cast<std::uint64_t>(dataset), static_cast<std::size_t>(rank));
}

/// Restarts; from what, and every rank reads its file there.
inline int restart_from_scr(JobRank& rank) {
  const auto name = rank.session->have_restart();
  EXPECT_TRUE(name) << name.error().text;
  if (!name || !*name) return 0;
  EXPECT_TRUE(rank.session->start_restart());
  const int dataset = std::stoi((*name)->substr(5));
  const auto path = rank.session->route_file(
      fmt::format("{}/ckpt.{}/rank_{}", rank.settings.prefix, dataset, rank.number()));
  EXPECT_TRUE(path) << path.error().text;
  if (path) {
    EXPECT_EQ(read_all(*path), expected(dataset, rank.number()));
  }
  EXPECT_TRUE(rank.session->complete_restart(true));
  return dataset;
}

inline int restart_from_scr(ScrCluster& cluster) {
  std::vector<int> from(8, -1);
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    from[static_cast<std::size_t>(rank.number())] = restart_from_scr(rank);
  });
  EXPECT_EQ(from, std::vector<int>(8, from[0]));
  return from[0];
}

}  // namespace cairn
