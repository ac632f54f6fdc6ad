#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "interpose/clean_path.hpp"

namespace cairn::interpose {

/// The working directory of the process, so that a call with a relative path needs no system call
/// for it.
///
/// read() takes no lock: if another thread is writing, it asks the kernel. forget() only raises a
/// number, so that a child of vfork, which shares this memory but not the working directory, can
/// call it. Such a child never writes.
class WorkingDirectory {
 public:
  WorkingDirectory() { adopt_process(); }

  /// False if the directory is deleted, not reachable, or too long for `out`.
  bool read(PathText& out);

  /// After chdir and fchdir.
  void forget() { generation_.fetch_add(1, std::memory_order_acq_rel); }

  /// At the start, and in the child after fork.
  void adopt_process();

 private:
  static constexpr std::size_t words_most = 128;

  bool read_kept(PathText& out) const;
  void keep(std::string_view path, std::uint64_t generation);

  std::atomic<std::uint64_t> generation_{1};
  std::atomic<std::uint64_t> version_{0};  // odd while a thread writes what follows
  std::atomic<std::uint64_t> kept_generation_{0};
  std::atomic<std::uint64_t> length_{0};
  std::array<std::atomic<std::uint64_t>, words_most> words_{};
  std::atomic<pid_t> process_{0};
};

}  // namespace cairn::interpose
