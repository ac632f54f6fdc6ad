// A task queue beside MPI: its thread makes no MPI call, while the program makes many. With an
// argument, ranks die or hang, and the launcher does not notice:
//   go-on RANK    the others learn it within a second, and go on computing
//   end-job RANK  the others wait in a collective call, which ends with an error
//   end-plain RANK   the same without a network: the rank before it on its machine notices it
//   lose RANK     its connections end while it lives, and the others wait in collective calls
//   skip-close 0  the program calls MPI_Finalize while tasks are under way, which does them
//   exit CODE     the program ends by exit() while a task is under way that would never end
//   abort CODE    the same by MPI_Abort
//   exit-busy CODE   the same, with a task that reads large files, so to say, and looks at its
//   token wait RANK     as end-job, but the collective call does not know of the network
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "api/background_tasks.hpp"
#include "api/work_of_tasks.hpp"
#include "comm/communicator_checks.hpp"
#include "comm/mpi.hpp"
#include "comm/task_queue.hpp"
#include "support/own_connections.hpp"

namespace {

using namespace cairn;
using std::chrono::milliseconds;

std::unique_ptr<TaskQueue> start_queue(MpiCommunicator& program) {
  PeerNetworkOptions options;
  options.place = "n1";
  auto network = PeerNetwork::open(program, options);
  checks::require(network.has_value(), network ? "" : network.error().text);
  auto queue = TaskQueue::start(program, *std::move(network));
  checks::require(queue.has_value(), queue ? "" : queue.error().text);
  return *std::move(queue);
}

void work_beside_mpi(MpiCommunicator& program) {
  const auto queue = start_queue(program);
  std::vector<TaskTicket> tickets;
  for (int i = 0; i < 3; ++i)
    tickets.push_back(queue->add(program, "checks", [](Communicator& comm, const std::stop_token&) {
      checks::all(comm);
      return Status{};
    }));
  checks::all(program);
  checks::require(queue->close(program).has_value(), "close");
  for (const TaskTicket& ticket : tickets)
    checks::require(ticket.result().has_value(), "a task beside MPI");
}

/// The death comes in a task, at least a second after all have begun.
TaskTicket add_deadly_task(MpiCommunicator& program, TaskQueue& queue, int victim) {
  return queue.add(program, "a deadly task",
                   [victim](Communicator& comm, const std::stop_token&) -> Status {
                     comm.barrier();
                     if (comm.rank() == victim) ::raise(SIGKILL);
                     while (true) comm.barrier();
                   });
}

void go_on(MpiCommunicator& program, int victim) {
  const auto queue = start_queue(program);
  const auto begin = std::chrono::steady_clock::now();
  const TaskTicket deadly = add_deadly_task(program, *queue, victim);
  checks::require(deadly.wait(milliseconds(1000)), "the death is noticed within a second");
  checks::require(!deadly.result() && deadly.result().error().rank == victim, "names the rank");
  double sum = 0;
  while (std::chrono::steady_clock::now() < begin + milliseconds(2000)) sum += 1;
  std::printf("rank %d goes on: %s\n", program.rank(), deadly.result().error().text.c_str());
  std::fflush(stdout);
  ::_exit(sum > 0 ? 0 : 1);
}

[[noreturn]] void wait_in_calls(MpiCommunicator& program, int victim, bool knows_network) {
  const auto queue = start_queue(program);
  if (knows_network) program.end_job_on([&] { return queue->death(); });
  (void)add_deadly_task(program, *queue, victim);
  while (true) program.barrier();
}

[[noreturn]] void wait_beside_neighbour(MpiCommunicator& program, int victim) {
  program.end_job_on_neighbour("n1");
  for (int round = 0;; ++round) {
    if (program.rank() == victim && round == 100) ::raise(SIGKILL);
    program.barrier();
  }
}

void lose_connections(MpiCommunicator& program, int victim) {
  const auto queue = start_queue(program);
  program.end_job_on([&] { return queue->death(); });
  const TaskTicket lost =
      queue->add(program, "a task", [victim](Communicator& comm, const std::stop_token&) -> Status {
        comm.barrier();
        if (comm.rank() == victim) end_own_connections();
        while (true) comm.barrier();
      });
  checks::require(lost.wait(milliseconds(2000)) && !lost.result(), "the loss is noticed");
  const auto until = std::chrono::steady_clock::now() + milliseconds(1500);
  while (allreduce(program, std::chrono::steady_clock::now() < until ? 1 : 0, Reduce::max) != 0)
    std::this_thread::sleep_for(milliseconds(10));
  std::printf("rank %d goes on: %s\n", program.rank(), lost.result().error().text.c_str());
  std::fflush(stdout);
  program.end_job_on(nullptr);
}

std::atomic<int> tasks_done = 0;
/// Destroyed last.
struct LastWords {
  std::atomic<bool> has_task_stopped = false;
  ~LastWords() {
    if (has_task_stopped) std::puts("the task has stopped");
  }
} last_words;
/// As that of scr.h: never destroyed before exit().
std::unique_ptr<MpiCommunicator> program_of_process;
std::unique_ptr<BackgroundTasks> tasks_of_process;

void open_tasks_of_process() {
  program_of_process = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
  auto opened = BackgroundTasks::open(*program_of_process, "n1");
  checks::require(opened.has_value(), opened ? "" : opened.error().text);
  tasks_of_process = *std::move(opened);
}

void skip_close() {
  open_tasks_of_process();
  for (int i = 0; i < 5; ++i)
    tasks_of_process->queue().add(*program_of_process, "a task",
                                  [](Communicator& comm, const std::stop_token&) {
                                    std::this_thread::sleep_for(milliseconds(20));
                                    comm.barrier();
                                    ++tasks_done;
                                    return Status{};
                                  });
  MPI_Finalize();
  std::exit(tasks_done == 5 ? 0 : 1);
}

void end_early(int code, const std::function<void(int)>& end) {
  open_tasks_of_process();
  std::atomic<bool> has_begun = false;
  tasks_of_process->queue().add(*program_of_process, "an endless task",
                                [&](Communicator& comm, const std::stop_token&) -> Status {
                                  has_begun = true;
                                  while (true) comm.barrier();
                                });
  while (!has_begun) std::this_thread::sleep_for(milliseconds(1));
  program_of_process->barrier();
  end(code);
}

void exit_busy(int code) {
  open_tasks_of_process();
  std::atomic<bool> has_begun = false;
  WorkOfTasks(*program_of_process, tasks_of_process->queue())
      .post(0, [&](Communicator&, const std::stop_token& stop) {
        has_begun = true;
        for (int i = 0; i < 20000 && !stop.stop_requested(); ++i)
          std::this_thread::sleep_for(milliseconds(1));
        last_words.has_task_stopped = stop.stop_requested();
      });
  while (!has_begun) std::this_thread::sleep_for(milliseconds(1));
  program_of_process->barrier();
  std::exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    MpiCommunicator program(MPI_COMM_WORLD);
    const std::string what = argc > 2 ? argv[1] : "";
    if (what == "go-on") go_on(program, std::atoi(argv[2]));
    if (what == "end-job") wait_in_calls(program, std::atoi(argv[2]), true);
    if (what == "end-plain") wait_beside_neighbour(program, std::atoi(argv[2]));
    if (what == "lose") lose_connections(program, std::atoi(argv[2]));
    if (what == "skip-close") skip_close();
    if (what == "exit") end_early(std::atoi(argv[2]), [](int code) { std::exit(code); });
    if (what == "abort")
      end_early(std::atoi(argv[2]), [](int code) { MPI_Abort(MPI_COMM_WORLD, code); });
    if (what == "exit-busy") exit_busy(std::atoi(argv[2]));
    if (what == "wait") wait_in_calls(program, std::atoi(argv[2]), false);
    if (what.empty()) work_beside_mpi(program);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
