// What a mount is to be like.
#pragma once

#include <string>
#include <vector>

#include "aggregate/aggregator.hpp"

namespace cairn {

struct MountOptions {
  std::string backing;     ///< absolute
  std::string mountpoint;  ///< absolute
  AggregateOptions aggregate;
  bool foreground = false;
  bool writeback = false;    ///< the kernel gathers writes first
  bool close_async = false;  ///< close() does not wait
  int fuse_threads = 1024;   ///< at most
  bool stats = false;
  bool profile = false;
  bool json = false;
  std::string stats_file;                  ///< "" for stderr
  std::vector<std::string> mount_options;  ///< those for libfuse and the kernel
};

}  // namespace cairn
