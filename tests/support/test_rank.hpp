// What a rank of a test's job has, whatever it does: a thread that sends messages, with files of
// its own that a test can disturb.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "files/background.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"

namespace cairn {

/// A directory in main memory, where most stores are; empty if this machine has none.
inline std::string memory_base() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "";
}

/// The rank calls `hook` before each of its file operations. A test may set it at any time.
struct TestRank {
  explicit TestRank(Communicator& its_comm, std::unique_ptr<Files> its_files = make_posix_files(),
                    std::unique_ptr<Background> its_background = make_foreground())
      : comm(its_comm),
        posix(std::move(its_files)),
        files(make_hooked_files(
            *posix,
            [this](const FileOperation& operation) { return hook ? hook(operation) : Status{}; })),
        background(std::move(its_background)) {}

  int number() const { return comm.rank(); }

  Communicator& comm;
  FileHook hook;
  std::unique_ptr<Files> posix;  ///< without the hook
  std::unique_ptr<Files> files;
  /// Usually in the rank's own thread: a hook cannot crash another. The simulation can.
  std::unique_ptr<Background> background;
};

}  // namespace cairn
