// Files whose every byte is zero: of each only its size is kept. All checksums, parity and rebuilt
// blocks of zeros are zeros again, so the production code works on them as on any others, and 2048
// nodes fit in one process. What a real store would take is charged to the simulated clock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "files/files.hpp"

namespace cairn {

/// What passes per second on one node.
struct NodeRates {
  double read = 0;   ///< taking a block's checksum and adding it to the parity
  double write = 0;  ///< into main memory, by way of the kernel
};

/// Lets simulated time pass.
using Spend = std::function<void(double seconds)>;

std::unique_ptr<Files> make_zero_files(const NodeRates& rates, Spend spend);

}  // namespace cairn
