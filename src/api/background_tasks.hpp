// The task queue of the process behind scr.h: opened over its MPI, and closed however the program
// ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "comm/mpi.hpp"
#include "comm/task_queue.hpp"

namespace cairn {

/// As long as it is there, a wait over `program` for a rank that has failed ends the job. If the
/// program calls MPI_Finalize first, that closes it. At exit() the destructor waits for 100 ms at
/// most. In both cases the tasks may still use what they were given, so that must not be destroyed
/// before this, and not at all if its thread has not ended.
class BackgroundTasks {
 public:
  /// Collective; `program` must outlive it. `node` is the name of this node, for messages; `log`
  /// gets a line of this rank about a rank that others wait for.
  static Result<std::unique_ptr<BackgroundTasks>> open(MpiCommunicator& program,
                                                       const std::string& node,
                                                       const Log& log = {});
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  TaskQueue& queue() { return *queue_; }

  /// Called by MPI_Finalize on all ranks before that does what was added, while all of MPI can be
  /// used. Not if close() was called.
  void call_at_finalize(std::function<void()> last_work) { last_work_ = std::move(last_work); }

  /// Collective. Does what was added, and closes the network. Only the first call does anything.
  Status close(Communicator& program);

 private:
  BackgroundTasks(MpiCommunicator& program, std::unique_ptr<TaskQueue> queue);
  static int at_finalize(MPI_Comm comm, int key, void* tasks, void* unused);

  MpiCommunicator& program_;
  std::unique_ptr<TaskQueue> queue_;
  std::function<void()> last_work_;
  int key_ = MPI_KEYVAL_INVALID;
  bool is_closed_ = false;
};

}  // namespace cairn
