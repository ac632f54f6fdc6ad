// What a process of LU.C.64 writes when it is checkpointed, for tests and benchmarks: the write
// sizes that the authors of CRFS saw of NPB's LU, class C, on 64 processes, 8 of them on a node,
// under BLCR: 7,800 writes and 184 MB on each node. Known are that half of the writes are of less
// than 64 bytes and 0.04 % of the data, 36 % of 4 to 16 KiB with 11 % of the data, and 0.25 % of
// more than 1 MiB with 61 %; the classes between them share the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace cairn::lu_c_64 {

inline constexpr int processes_per_node = 8;
inline constexpr int writes_per_process = 975;
inline constexpr std::uint64_t bytes_per_process = 23'000'000;

struct SizeClass {
  std::uint64_t smallest = 0, largest = 0;  ///< bytes of one write
  std::uint64_t writes = 0, bytes = 0;      ///< of one process
};

/// Every second process has one large write more, and one small one less.
inline std::vector<SizeClass> size_classes(int process) {
  const std::uint64_t odd = static_cast<std::uint64_t>(process) % 2;
  return {{1, 63, 496 - odd, 9'200},
          {64, 255, 6, 900},
          {256, 1'023, 3, 1'800},
          {1'024, 4'095, 92, 351'900},
          {4'096, 16'383, 356, 2'612'800},
          {16'384, 65'535, 7, 177'100},
          {65'536, 262'143, 5, 750'000},
          {262'144, 524'287, 2, 760'000},
          {524'288, 1'048'575, 6, 4'257'700},
          {1'048'577, 8'388'608, 2 + odd, 14'078'600}};
}

/// The sizes of the writes of one process in the order in which it makes them, in bytes. The same
/// process and seed give the same. With another size of the image, all writes are larger or
/// smaller.
inline std::vector<std::uint64_t> writes(int process, std::uint64_t seed = 1,
                                         std::uint64_t image_bytes = bytes_per_process) {
  std::mt19937_64 random(seed * processes_per_node + static_cast<std::uint64_t>(process));
  std::vector<std::uint64_t> sizes;
  for (const SizeClass& of : size_classes(process)) {
    const std::size_t first = sizes.size();
    const std::uint64_t mean = of.bytes / of.writes;
    sizes.resize(first + of.writes, mean);
    for (std::size_t at = first; at < first + of.bytes % of.writes; ++at) ++sizes[at];
    // What one write has less, another has more.
    const std::uint64_t slack = std::min(mean - of.smallest, of.largest - mean - 1);
    for (std::size_t at = first; at + 1 < sizes.size(); at += 2) {
      const std::uint64_t moved = random() % (slack + 1);
      sizes[at] -= moved;
      sizes[at + 1] += moved;
    }
  }
  for (std::size_t left = sizes.size(); left > 1; --left)
    std::swap(sizes[left - 1], sizes[random() % left]);
  for (std::uint64_t& size : sizes)
    size = std::max<std::uint64_t>(1, size * image_bytes / bytes_per_process);
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  *largest += image_bytes - std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  return sizes;
}

}  // namespace cairn::lu_c_64
