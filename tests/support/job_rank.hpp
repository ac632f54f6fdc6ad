// One rank of a test's job, and the files that its program writes.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "session/session.hpp"
#include "support/test_rank.hpp"

namespace cairn {

inline constexpr int files_per_rank = 2;

/// The files have unequal sizes, and one is empty.
std::size_t size_of(int rank, int file, int dataset);
std::string content_of(int rank, int file, int dataset);

/// A rank with a session.
struct JobRank : TestRank {
  JobRank(Communicator& its_comm, Settings its_settings, Clock& its_clock, Log its_log)
      : TestRank(its_comm),
        settings(std::move(its_settings)),
        clock(its_clock),
        log(std::move(its_log)) {}

  /// Collective.
  Status init();

  /// The name that the program gives a file.
  std::string file_name(int file, int dataset) const;

  /// Writes the files of a dataset that has been started.
  Status write_files(int dataset);
  void expect_files(int dataset);

  /// Collective. Dataset "ckpt.<dataset>" from Start to Complete.
  Status write(int dataset, std::uint32_t flags = flag_checkpoint);
  void expect_written(int dataset, std::uint32_t flags = flag_checkpoint);

  /// The dataset was due for the prefix directory, and is only in the cache.
  void expect_not_copied(int dataset, std::uint32_t flags = flag_checkpoint);
  /// The run ends, and a dataset is only in the cache.
  void expect_not_all_copied();

  /// Collective. Restarts as a program does, and compares all bytes. Returns the dataset, or 0.
  int restart();

  Settings settings;
  Clock& clock;
  Log log;
  Communicator* second_comm = nullptr;  ///< of the same ranks, where the job has one
  std::unique_ptr<WorkBehind> behind;
  std::function<void()> break_behind;  ///< the ranks lose each other there
  std::stop_source stop_behind;        ///< what goes on there ends soon, as at the end of a process
  std::unique_ptr<Session> session;
};

}  // namespace cairn
