// The job that a seed stands for: its nodes, its settings, and what its ranks write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chance.hpp"
#include "config/settings.hpp"
#include "volume.hpp"

namespace cairn::sim {

/// The node of every rank.
using Nodes = std::vector<std::string>;

// Where volumes are mounted. The last is one for all nodes, the others are each node's own.
inline constexpr const char* memory_mount = "/mem";
inline constexpr const char* disk_mount = "/disk";
inline constexpr const char* shared_mount = "/shared";
inline constexpr const char* prefix_mount = "/prefix";

struct JobShape {
  std::uint64_t seed = 0;
  std::vector<std::string> nodes;  ///< all there are, spares included
  Nodes first_placement;
  Settings settings;  ///< but for node_name

  int ranks() const { return static_cast<int>(first_placement.size()); }
  std::string describe() const;
};

JobShape draw_shape(std::uint64_t seed);
/// Some of its levels are protected behind the program.
void put_behind(JobShape& shape);

/// The same numbers of ranks per node, or another distribution, on nodes drawn from all there are.
Nodes draw_placement(const JobShape& shape, const Nodes& before, Chance& chance);

/// A file that a rank writes.
struct FileShape {
  std::string name;  ///< absolute, below the prefix
  std::size_t bytes = 0;
  std::uint32_t mode = 0;
};

/// What `rank` writes of dataset `key`. Rank 0 writes a file always.
std::vector<FileShape> files_of(const JobShape& shape, int key, int rank);
std::uint64_t data_bytes_of(const JobShape& shape, int key, int rank);
Blob content_of(const JobShape& shape, int key, int rank, const FileShape& file);

}  // namespace cairn::sim
