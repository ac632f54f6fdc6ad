// Work of all ranks in the background: one task after the other, with messages among the ranks.
//
// All ranks add the same tasks in the same order, as they do so in collective calls only; so the
// tasks of one place in the order meet. A task gets a Communicator of its own; the one thread of
// the process does them one at a time, and takes no signals. A task whose messages fail, on any
// rank, is unwound on all ranks and ends with an error. Later tasks are begun all the same: after
// the failure of a process those with messages end at once, and those without are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/peer_network.hpp"

namespace cairn {

/// One task of one rank. Any thread of the process may ask.
class TaskTicket {
 public:
  struct State;

  bool is_done() const;
  /// False if it is not done in time.
  bool wait(std::chrono::milliseconds at_most) const;
  /// What the task has returned on this rank, once it is done. Ranks may differ: a task that has to
  /// know agrees with the others.
  Status result() const;

 private:
  friend class TaskQueue;
  explicit TaskTicket(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class TaskQueue {
 public:
  /// The token asks it to stop early: a task that sends no messages for long looks at it.
  using Task = std::function<Status(Communicator&, const std::stop_token&)>;

  /// Collective. Takes over the network, over which nothing else may be sent.
  static Result<std::unique_ptr<TaskQueue>> start(Communicator& program,
                                                  std::unique_ptr<PeerNetwork> network);

  /// As leave().
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Collective over the program's communicator, and sends nothing: it stands for the rule that all
  /// ranks do this in the same order. `name` is for messages.
  TaskTicket add(Communicator& program, std::string name, Task task);
  /// Collective in the same way. The task ends early with `why`; it may have been done already, on
  /// some ranks. It is not waited for.
  void cancel(Communicator& program, const TaskTicket& ticket, Error why);

  /// Local. True once all that was added is done.
  bool wait_for_all(std::chrono::milliseconds at_most) const;
  /// Local, from any thread: what has failed in the network, if anything has.
  Status failure() const;
  Status death() const;
  /// Local, from any thread: as those of the network.
  void report_awaited(std::chrono::milliseconds waited) const;
  void report_late(std::chrono::milliseconds waited) const;

  /// Collective. Does all that was added, and closes the network. Each time it has waited so long,
  /// a line names the rank that is waited for.
  Status close(Communicator& program,
               std::chrono::milliseconds reported_every = std::chrono::seconds(10));
  /// For the end of a process: ends the running task, begins no other one, and waits for no rank.
  /// False if the thread did not end in time; then it is left, and all that its tasks use must
  /// stay.
  bool leave(std::chrono::milliseconds at_most = std::chrono::milliseconds(100));

  struct Shared;

 private:
  explicit TaskQueue(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace cairn
