// Writes the steps of one group, one after the other: in a thread of its own, or in the caller.
//
// The thread makes no call of a Communicator. What it uses is shared with it, so that one that a
// hanging file system holds may outlive the series: it then ends as soon as the system call
// returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rbio/buffer_pool.hpp"
#include "rbio/removal.hpp"
#include "rbio/services.hpp"
#include "rbio/write_part.hpp"

namespace cairn::rbio {

/// A step that a writer has to write.
struct WriteJob {
  PartTask task;
  std::shared_ptr<StepBuffer> buffer;  ///< of task.buffer; free again when the job is done
  TimePoint begun;
  TimePoint deadline = TimePoint::max();  ///< set by post(): from then on the step has failed
  double paced_s = 0;        ///< from `begun` on, the thread writes the data over this time
  std::uint64_t number = 0;  ///< 1, 2 and so on
  std::vector<FailedAttempt> failed;  ///< earlier ones, whose files are of no use
};

class StepWriter {
 public:
  struct Settings {
    bool is_threaded = false;
    std::string directory;
    std::size_t keep = 0;           ///< steps; 0: all
    double timeout_s = 600;         ///< from post() on
    std::shared_ptr<Segment> page;  ///< done_page.hpp; may be null
  };

  StepWriter(Services services, Settings settings);
  StepWriter(const StepWriter&) = delete;
  StepWriter& operator=(const StepWriter&) = delete;
  /// As stop().
  ~StepWriter();

  /// Starts the thread, if there is one. io if there may be no more threads.
  Status start();
  /// All data are in its buffer. Without a thread, it is done on return.
  void post(std::shared_ptr<WriteJob> job);
  bool is_done(const WriteJob& job) const;
  /// It is not done, and its time is over.
  bool is_late(const WriteJob& job) const;
  /// The error with which it is done, before take_result(); success while it is not done.
  Status failure_of(const WriteJob& job) const;
  /// Waits until then at most, and returns whether the job is done; no pause delays it any more.
  bool wait_until_done(const WriteJob& job, TimePoint limit);
  /// Of a job that has been posted, once. If it is not done, it must end without being published.
  Result<Publication> take_result(const WriteJob& job);
  /// It must end without being published; it may be posted later. Nobody takes its result.
  void give_up(const WriteJob& job);
  /// Finishes what was posted, but only until the time of the last job is over. Then it leaves the
  /// thread to itself, and returns false: the thread may still rename or remove a step.
  bool stop();
  /// Time in which the jobs that are done were written, without pauses.
  double write_s() const;
  /// Bytes of the fields in the jobs that were written.
  std::uint64_t written_bytes() const;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<StartedThread> thread_;
  int process_ = 0;
};

/// Of a step that was begun, and not written until its deadline.
Error too_late(std::uint64_t step, double timeout_s);

}  // namespace cairn::rbio
