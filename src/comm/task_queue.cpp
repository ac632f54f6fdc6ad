#include "comm/task_queue.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.hpp"

namespace cairn {

struct TaskTicket::State {
  explicit State(std::shared_ptr<TaskQueue::Shared> its_queue) : queue(std::move(its_queue)) {}

  const std::shared_ptr<TaskQueue::Shared> queue;
  std::uint32_t channel = 0;
  std::string name;
  TaskQueue::Task task;
  std::stop_source stop;
  bool is_done = false;  ///< this and the result are under the lock of the queue
  Status result;
};

/// What the thread and its owner share.
struct TaskQueue::Shared : std::enable_shared_from_this<TaskQueue::Shared> {
  using StatePointer = std::shared_ptr<TaskTicket::State>;
  using Lock = std::unique_lock<std::mutex>;

  void work();
  Status run(TaskTicket::State& task);
  void finish(Lock& lock, TaskTicket::State& task, Status result);
  bool is_in_its_process() const { return ::getpid() == process; }
  template <class Condition>
  bool wait(std::chrono::milliseconds at_most, Condition holds) {
    Lock lock(mutex);
    return changed.wait_for(lock, at_most, holds);
  }

  std::unique_ptr<PeerNetwork> network;
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<StatePointer> queued;  ///< the first one is running, or is next
  std::uint32_t last_channel = 0;
  bool is_stopping = false;
  bool has_thread = false;
};

// --- the thread ---

void TaskQueue::Shared::work() {
  Lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return is_stopping || !queued.empty(); });
    if (is_stopping) break;
    const StatePointer next = queued.front();
    lock.unlock();
    Status result = run(*next);
    lock.lock();
    finish(lock, *next, std::move(result));
  }
  while (!queued.empty()) {
    const StatePointer next = queued.front();
    finish(lock, *next, fail(Code::io, "{}: the process ends before it is done", next->name));
  }
  has_thread = false;
  changed.notify_all();
}

/// No exception leaves it. One that is not of the network must still end the task on the other
/// ranks.
Status TaskQueue::Shared::run(TaskTicket::State& task) {
  std::string what;
  try {
    const std::unique_ptr<Communicator> comm = network->begin(task.channel);
    try {
      return task.task(*comm, task.stop.get_token());
    } catch (const TransportFailed& failed) {
      return tl::unexpected(failed.error());
    } catch (const std::exception& error) {
      what = error.what();
    }
    Error unwound{Code::io, fmt::format("{}: {}", task.name, what), comm->rank()};
    network->cancel(task.channel, unwound);
    return tl::unexpected(std::move(unwound));
  } catch (const std::exception& error) {
    return fail(Code::io, "{}: {}", task.name, error.what());
  }
}

void TaskQueue::Shared::finish(Lock& lock, TaskTicket::State& task, Status result) {
  // What the task holds is given back without the lock, and before anything that waits goes on.
  TaskQueue::Task over = std::exchange(task.task, nullptr);
  lock.unlock();
  over = nullptr;
  lock.lock();
  task.result = std::move(result);
  task.is_done = true;
  queued.pop_front();
  changed.notify_all();
}

// --- tickets ---

bool TaskTicket::is_done() const {
  const std::lock_guard lock(state_->queue->mutex);
  return state_->is_done;
}

bool TaskTicket::wait(std::chrono::milliseconds at_most) const {
  return state_->queue->wait(at_most, [&] { return state_->is_done; });
}

Status TaskTicket::result() const {
  const std::lock_guard lock(state_->queue->mutex);
  if (!state_->is_done) return fail(Code::wrong_state, "{} is not done", state_->name);
  return state_->result;
}

// --- the owner ---

TaskQueue::TaskQueue(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

TaskQueue::~TaskQueue() { leave(); }

Result<std::unique_ptr<TaskQueue>> TaskQueue::start(Communicator& program,
                                                    std::unique_ptr<PeerNetwork> network) {
  auto shared = std::make_shared<Shared>();
  shared->network = std::move(network);
  shared->has_thread = true;
  Status started;
  try {
    const BlockedSignals blocked;
    std::thread([shared] { shared->work(); }).detach();
  } catch (const std::system_error& error) {
    shared->has_thread = false;
    started = fail(Code::io, "cannot start a thread for background work: {}", error.what());
  }
  std::unique_ptr<TaskQueue> queue(new TaskQueue(std::move(shared)));
  CAIRN_TRY(agree(program, std::move(started)));
  return queue;
}

TaskTicket TaskQueue::add(Communicator& /*program*/, std::string name, Task task) {
  auto state = std::make_shared<TaskTicket::State>(shared_);
  state->name = std::move(name);
  state->task = std::move(task);
  const std::lock_guard lock(shared_->mutex);
  state->channel = ++shared_->last_channel;
  shared_->queued.push_back(state);
  shared_->changed.notify_all();
  return TaskTicket(std::move(state));
}

void TaskQueue::cancel(Communicator& /*program*/, const TaskTicket& ticket, Error why) {
  ticket.state_->stop.request_stop();
  shared_->network->cancel(ticket.state_->channel, std::move(why));
}

bool TaskQueue::wait_for_all(std::chrono::milliseconds at_most) const {
  return shared_->wait(at_most, [this] { return shared_->queued.empty(); });
}

Status TaskQueue::failure() const { return shared_->network->failure(); }
Status TaskQueue::death() const { return shared_->network->death(); }
void TaskQueue::report_awaited(std::chrono::milliseconds waited) const {
  shared_->network->report_awaited(waited);
}
void TaskQueue::report_late(std::chrono::milliseconds waited) const {
  shared_->network->report_late(waited);
}

/// A task ends if its messages fail, so there is no time limit here: what it does else is its own
/// matter.
Status TaskQueue::close(Communicator& program, std::chrono::milliseconds reported_every) {
  for (auto waited = reported_every;; waited += reported_every) {
    const bool is_done = wait_for_all(reported_every);
    if (!is_done) report_late(waited);
    const std::int64_t mine = is_done ? 0 : program.size() - program.rank();
    const std::int64_t lowest_busy = allreduce(program, mine, Reduce::max);
    if (lowest_busy == 0) break;
    if (lowest_busy == mine && program.rank() != 0) report_awaited(waited);
  }
  Status closed = shared_->network->close();
  leave();
  return closed;
}

bool TaskQueue::leave(std::chrono::milliseconds at_most) {
  if (!shared_->is_in_its_process()) return false;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::unique_lock lock(shared_->mutex);
    // What an earlier call has waited for in vain, the destructor does not wait for again.
    if (std::exchange(shared_->is_stopping, true)) at_most = std::chrono::milliseconds(0);
    if (!shared_->queued.empty()) shared_->queued.front()->stop.request_stop();
    shared_->changed.notify_all();
  }
  // This ends the messages that the thread may be waiting for.
  shared_->network->leave(at_most / 2);
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_until(lock, begin + at_most,
                                     [this] { return !shared_->has_thread; });
}

}  // namespace cairn
