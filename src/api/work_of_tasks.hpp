// What a session does behind the program, as tasks of this process's queue.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "comm/mpi.hpp"
#include "comm/task_queue.hpp"
#include "session/work_behind.hpp"

namespace cairn {

/// Both must outlive it.
class WorkOfTasks final : public WorkBehind {
 public:
  WorkOfTasks(MpiCommunicator& program, TaskQueue& queue) : program_(program), queue_(queue) {}

  void post(std::uint64_t /*bytes*/, Task task) override {
    const auto work = [task = std::move(task)](Communicator& comm, const std::stop_token& stop) {
      task(comm, stop);
      return Status{};
    };
    queue_.add(program_, "the protection of a dataset", work);
  }

  bool wait(std::chrono::milliseconds at_most) override { return queue_.wait_for_all(at_most); }
  void report_awaited(std::chrono::milliseconds waited) override { queue_.report_awaited(waited); }
  void report_late(std::chrono::milliseconds waited) override { queue_.report_late(waited); }
  Status failure() const override { return queue_.failure(); }
  std::shared_ptr<IdleCores> idle_cores() override { return idle_cores_; }

 private:
  MpiCommunicator& program_;
  TaskQueue& queue_;
  const std::shared_ptr<IdleCores> idle_cores_ = make_idle_cores();
};

}  // namespace cairn
