// A program whose outputs are copied to the prefix directory while it goes on (SCR_FLUSH_ASYNC=1).
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cairn.h"
#include "mpi_timing.hpp"
#include "scr.h"

namespace cairn::bench {

/// The prefix directory of a benchmark, below `folder`, and its cache in main memory. All functions
/// are collective.
class FlushFolders {
 public:
  FlushFolders(const std::string& folder, const std::string& name)
      : prefix_(folder + "/cairn." + name), memory_("/dev/shm/cairn." + name) {}

  const std::string& prefix() const { return prefix_; }
  const std::string& memory() const { return memory_; }

  /// Empty.
  void make() const {
    remove();
    if (rank() == 0)
      for (const std::string& folder : {prefix_, memory_})
        std::filesystem::create_directories(folder);
    barrier();
  }
  void remove() const {
    if (rank() == 0)
      for (const std::string& folder : {prefix_, memory_}) std::filesystem::remove_all(folder);
    barrier();
  }

 private:
  std::string prefix_;
  std::string memory_;
};

/// Before SCR_Init. `bytes_per_s`: of the node; 0 for no limit.
inline void configure(const FlushFolders& folders, std::uint64_t bytes_per_s) {
  const auto set = [](const std::string& key, const std::string& value) {
    (void)SCR_Config((key + "=" + value).c_str());
  };
  set("SCR_PREFIX", folders.prefix());
  set("SCR_CNTL_BASE", folders.memory());
  set("SCR_CACHE_BASE", folders.memory());
  set("SCR_USER_NAME", "bench");
  set("SCR_JOB_ID", "bench");
  set("SCR_COPY_TYPE", "SINGLE");
  set("SCR_FLUSH", "0");
  set("SCR_FLUSH_ASYNC", "1");
  set("SCR_FLUSH_ASYNC_BW", std::to_string(bytes_per_s));
}

/// Outputs, one after the other, of one file of each rank.
class FlushedOutput {
 public:
  FlushedOutput(std::string prefix, std::size_t bytes)
      : prefix_(std::move(prefix)), data_(bytes, 'x') {}

  /// Up to Complete.
  void write() {
    name_ = fmt::format("output.{}", ++number_);
    check(SCR_Start_output(name_.c_str(), SCR_FLAG_OUTPUT) == SCR_SUCCESS, "Start fails");
    char path[SCR_MAX_FILENAME];
    const std::string file = fmt::format("{}/{}/{}", prefix_, name_, rank());
    check(SCR_Route_file(file.c_str(), path) == SCR_SUCCESS, "Route_file fails");
    write_file(path, data_);
  }
  /// When this returns it is under way.
  void complete() const { check(SCR_Complete_output(1) == SCR_SUCCESS, "Complete fails"); }
  bool is_under_way() const {
    int state = 0;
    check(Cairn_Dataset_state(name_.c_str(), &state) == SCR_SUCCESS, "Dataset_state fails");
    return state < CAIRN_STATE_FLUSHED;
  }
  void wait() const {
    check(Cairn_Wait(name_.c_str(), CAIRN_STATE_FLUSHED, -1) == SCR_SUCCESS, "Wait fails");
  }
  void remove() const { check(SCR_Delete(name_.c_str()) == SCR_SUCCESS, "Delete fails"); }

 private:
  const std::string prefix_;
  const std::vector<char> data_;
  std::string name_;
  int number_ = 0;
};

}  // namespace cairn::bench
