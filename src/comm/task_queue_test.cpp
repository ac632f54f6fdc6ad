#include "comm/task_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "comm/alone.hpp"
#include "comm/communicator_checks.hpp"
#include "comm/peer_processes.hpp"
#include "comm/team.hpp"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<TaskQueue> start_queue(Communicator& program) {
  auto network = PeerNetwork::open(program, {});
  checks::require(network.has_value(), network ? "" : network.error().text);
  auto queue = TaskQueue::start(program, *std::move(network));
  checks::require(queue.has_value(), queue ? "" : queue.error().text);
  return *std::move(queue);
}

Status sum_of_ranks(Communicator& comm, const std::stop_token&) {
  const std::int64_t sum = allreduce(comm, comm.rank(), Reduce::sum);
  if (sum != comm.size() * (comm.size() - 1) / 2) return fail(Code::corrupt, "wrong sum");
  return {};
}

TEST(TaskQueue, DoesAllTasksInOrderBesideTheProgram) {
  for (const int size : {1, 2, 5}) {
    Team team(size);
    team.run([](Communicator& program) {
      const auto queue = start_queue(program);
      std::vector<int> order;
      std::vector<TaskTicket> tickets;
      for (int i = 0; i < 20; ++i)
        tickets.push_back(queue->add(program, "a sum",
                                     [&order, i](Communicator& comm, const std::stop_token& stop) {
                                       order.push_back(i);
                                       if (i % 3 == comm.rank() % 3)
                                         std::this_thread::sleep_for(milliseconds(2));
                                       return i % 4 == 0 ? Status{} : sum_of_ranks(comm, stop);
                                     }));
      checks::all_of_one(program);  // goes on meanwhile
      const Status closed = queue->close(program);
      checks::require(closed.has_value(), "closes");
      for (std::size_t i = 0; i < tickets.size(); ++i) {
        checks::require(tickets[i].is_done() && tickets[i].result(), "done");
        checks::require(order[i] == static_cast<int>(i), "in order");
      }
    });
  }
}

TEST(TaskQueue, CloseReportsTheRankThatIsWaitedFor) {
  std::promise<std::string> report;
  std::atomic<bool> is_reported = false;
  const auto line = report.get_future().share();
  Team team(3);
  team.run([&](Communicator& program) {
    PeerNetworkOptions options;
    options.report = [&](const std::string& text) {
      if (!is_reported.exchange(true)) report.set_value(text);
    };
    auto network = PeerNetwork::open(program, options);
    checks::require(network.has_value(), "connects");
    const auto queue = *TaskQueue::start(program, *std::move(network));
    queue->add(program, "a task", [&](Communicator& comm, const std::stop_token&) {
      if (comm.rank() == 2) line.wait_for(seconds(10));
      return Status{};
    });
    checks::require(queue->close(program, milliseconds(20)).has_value(), "closes");
  });
  ASSERT_TRUE(is_reported);
  EXPECT_NE(line.get().find(" for background work: rank 2 (process "), std::string::npos)
      << line.get();
}

TEST(TaskQueue, GoesOnAfterATaskThatThrowsOnOneRank) {
  Team team(4);
  team.run([](Communicator& program) {
    const auto queue = start_queue(program);
    const TaskTicket throws =
        queue->add(program, "a task", [](Communicator& comm, const std::stop_token&) -> Status {
          if (comm.rank() == 2) throw std::bad_alloc();
          Blob never(1);
          recv(comm, never, (comm.rank() + 1) % comm.size(), 1);
          return {};
        });
    const TaskTicket next = queue->add(program, "a sum", sum_of_ranks);
    checks::require(next.wait(seconds(10)), "the next one is done");
    checks::require(next.result().has_value(), "and well");
    checks::require(!throws.result() && throws.result().error().rank == 2, "names the rank");
    checks::require(queue->close(program).has_value(), "closes");
  });
}

TEST(TaskQueue, CancelsATaskThatRunsOrWaits) {
  Team team(3);
  team.run([](Communicator& program) {
    const auto queue = start_queue(program);
    std::atomic<bool> has_begun = false;
    const TaskTicket runs =
        queue->add(program, "endless", [&](Communicator& comm, const std::stop_token&) -> Status {
          has_begun = true;
          while (true) comm.barrier();
        });
    const TaskTicket computes =
        queue->add(program, "computes", [&](Communicator&, const std::stop_token& stop) -> Status {
          while (!stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
          return fail(Code::io, "stopped");
        });
    const TaskTicket next = queue->add(program, "a sum", sum_of_ranks);
    while (!has_begun) std::this_thread::sleep_for(milliseconds(1));
    program.barrier();
    queue->cancel(program, runs, Error{Code::io, "the program deletes the dataset", -1});
    queue->cancel(program, computes, Error{Code::io, "this one too", -1});
    checks::require(next.wait(seconds(10)) && next.result(), "the next one is done");
    checks::require(runs.is_done() && !runs.result() &&
                        runs.result().error().text == "the program deletes the dataset",
                    "the reason");
    checks::require(!computes.result(), "stopped");
    checks::require(queue->close(program).has_value(), "closes");
  });
}

TEST(TaskQueue, EndsTasksWithAnErrorWithinASecondOfTheDeathOfARank) {
  PeerProcesses processes(4);
  processes.start([&](int rank) -> std::string {
    auto network = processes.open(rank);
    // No program communicator is left that could be used after a death.
    Alone nothing;
    const auto queue = *TaskQueue::start(nothing, std::move(network));
    const TaskTicket dies =
        queue->add(nothing, "dies", [&](Communicator& comm, const std::stop_token&) -> Status {
          comm.barrier();
          if (comm.rank() == 3) {
            processes.number(0) = static_cast<std::int64_t>(PeerProcesses::now_s() * 1e6);
            ::raise(SIGKILL);
          }
          while (true) comm.barrier();
        });
    const TaskTicket sums = queue->add(nothing, "a sum", sum_of_ranks);
    const TaskTicket computes = queue->add(
        nothing, "computes", [](Communicator&, const std::stop_token&) { return Status{}; });
    if (!computes.wait(seconds(10))) return "waits for ever";
    const double took_s = PeerProcesses::now_s() - static_cast<double>(processes.number(0)) / 1e6;
    if (took_s > 1) return fmt::format("took {} s", took_s);
    if (dies.result() || dies.result().error().rank != 3) return "the first";
    if (sums.result() || sums.result().error().rank != 3) return "the second";
    if (!computes.result()) return "one without messages";
    if (queue->failure() || queue->failure().error().rank != 3) return "the failure";
    return "fine";
  });
  const auto ends = processes.wait();
  for (const std::size_t rank : {0, 1, 2}) EXPECT_EQ(ends[rank].text, "fine");
}

TEST(TaskQueue, LeavesWithinItsTimeWhateverItsTaskDoes) {
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    Alone nothing;
    std::unique_ptr<TaskQueue> queue = *TaskQueue::start(nothing, processes.open(rank));
    std::atomic<int> begun = 0;
    const auto add = [&](const TaskQueue::Task& task) {
      return queue->add(nothing, "a task", task);
    };
    if (rank == 0)
      add([&](Communicator&, const std::stop_token&) -> Status {
        ++begun;
        std::this_thread::sleep_for(seconds(1));  // as in a system call that hangs
        return {};
      });
    else
      add([&](Communicator& comm, const std::stop_token&) -> Status {
        ++begun;
        while (true) comm.barrier();
      });
    const TaskTicket second = add(sum_of_ranks);
    while (begun == 0) std::this_thread::sleep_for(milliseconds(1));
    const double begin_s = PeerProcesses::now_s();
    const bool has_ended = queue->leave();
    const double took_s = PeerProcesses::now_s() - begin_s;
    if (took_s > 0.3) return fmt::format("took {} s", took_s);
    if (has_ended != (rank == 1)) return "wrong about the thread";
    // The thread of rank 0 is left; what it uses is this frame, so this one waits.
    queue.reset();
    if (PeerProcesses::now_s() - begin_s > took_s + 0.05) return "waits once more";
    const bool is_done = second.wait(seconds(3));
    return is_done && !second.result() ? "fine" : "the second task";
  });
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

TEST(TaskQueue, DoesNothingInAChildOfTheProcess) {
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    Alone nothing;
    std::unique_ptr<TaskQueue> queue = *TaskQueue::start(nothing, processes.open(rank));
    const pid_t child = ::fork();
    if (child == 0) {
      queue.reset();
      ::_exit(3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WEXITSTATUS(status) != 3) return "the child";
    const TaskTicket sum = queue->add(nothing, "a sum", sum_of_ranks);
    return sum.wait(seconds(5)) && sum.result() ? "fine" : "the sum";
  });
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

}  // namespace
}  // namespace cairn
