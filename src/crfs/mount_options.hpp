// What a mount is to be like.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/aggregator.hpp"

namespace cairn {

/// Who takes what programs write.
enum class Mode {
  automatic,    ///< passthrough where the backing folder is as quick as memory, else direct
  direct,       ///< the daemon gathers each write as the program makes it
  writeback,    ///< the kernel gathers writes first
  passthrough,  ///< the kernel reads and writes the files of the backing folder by itself
};

/// As it is written on the command line.
constexpr std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::direct:
      return "direct";
    case Mode::writeback:
      return "writeback";
    case Mode::passthrough:
      return "passthrough";
    case Mode::automatic:
      break;
  }
  return "auto";
}

struct MountOptions {
  std::string backing;     ///< absolute
  std::string mountpoint;  ///< absolute
  AggregateOptions aggregate;
  Mode mode = Mode::automatic;
  bool foreground = false;
  bool close_async = false;  ///< close() does not wait
  int fuse_threads = 1024;   ///< at most
  bool stats = false;
  bool profile = false;
  bool json = false;
  std::string stats_file;                  ///< "" for stderr
  std::vector<std::string> mount_options;  ///< those for libfuse and the kernel

  bool writeback() const { return mode == Mode::writeback; }
  /// Something is asked for that only a daemon through which all writes go can do; or programs get
  /// the rights of their owner, of which the kernel would take no notice that they were changed.
  bool gathers_only() const {
    return close_async || profile || aggregate.discard ||
           std::find(mount_options.begin(), mount_options.end(), "suid") != mount_options.end();
  }
};

}  // namespace cairn
