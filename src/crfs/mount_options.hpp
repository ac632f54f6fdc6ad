// The options of a mount.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/aggregator.hpp"

namespace cairn {

/// Which part of the system gathers the writes of programs.
enum class Mode {
  automatic,    ///< passthrough where the backing directory is as fast as memory, else direct
  direct,       ///< the daemon gathers each write as the program makes it
  writeback,    ///< the kernel gathers writes first
  passthrough,  ///< the kernel reads and writes the files of the backing directory by itself
};

/// The name on the command line.
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

  bool scr = false;                   ///< closed steps become datasets, with the next two
  std::vector<std::string> patterns;  ///< regular expressions for checkpoint files
  std::vector<std::string> nodes;     ///< that mount this directory together; none: only this one

  bool writeback() const { return mode == Mode::writeback; }
  /// An option needs all writes to go through the daemon; or -o suid is set: for a second the
  /// kernel would not notice that a passed-through write has cleared set-id bits.
  bool gathers_only() const {
    return close_async || profile || aggregate.discard ||
           std::find(mount_options.begin(), mount_options.end(), "suid") != mount_options.end();
  }
};

}  // namespace cairn
