#include "soak.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <thread>

namespace cairn::sim {
namespace {

constexpr std::size_t most_jobs = 256;
constexpr std::chrono::seconds longest_seed{120};
constexpr auto poll_pause = std::chrono::milliseconds(20);

/// What the processes share.
struct Board {
  std::atomic<std::uint64_t> next = 0;  ///< index of the next seed to take
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<std::uint64_t> runs = 0;
  std::atomic<std::uint64_t> crashes = 0;
  std::atomic<std::uint64_t> restarts = 0;
  std::atomic<std::uint64_t> at[most_jobs] = {};  ///< index of the seed that each is at
};

class SharedBoard {
 public:
  SharedBoard() {
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
    board_ = new (memory) Board;
  }
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  Board& operator*() { return *board_; }
  Board* operator->() { return board_; }

 private:
  Board* board_;
};

/// In a process of its own: 0 if all seeds it took hold.
int work(Simulate simulate, const std::vector<std::uint64_t>& seeds, Board& board, int job) {
  while (true) {
    const std::uint64_t index = board.next++;
    if (index >= seeds.size()) return 0;
    board.at[job] = index;
    const Outcome outcome = simulate(seeds[index], false);
    board.calls += outcome.calls;
    board.runs += static_cast<std::uint64_t>(outcome.runs);
    board.crashes += static_cast<std::uint64_t>(outcome.crashes);
    board.restarts += static_cast<std::uint64_t>(outcome.restarts);
    if (outcome.failure.empty()) continue;
    fmt::print("seed {} fails: {}\n", seeds[index], outcome.failure);
    std::fflush(stdout);
    return 1;
  }
}

struct Worker {
  pid_t process = -1;
  std::uint64_t at = 0;
  std::chrono::steady_clock::time_point since;
};

pid_t start(Simulate simulate, const std::vector<std::uint64_t>& seeds, Board& board, int job) {
  std::fflush(stdout);
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("cannot start a process");
  if (process == 0) ::_exit(work(simulate, seeds, board, job));
  return process;
}

/// Ended how? -1 while it runs.
int poll(Worker& worker, const Board& board, int job) {
  int status = 0;
  const auto now = std::chrono::steady_clock::now();
  if (::waitpid(worker.process, &status, WNOHANG) == worker.process) return status;
  if (board.at[job] != worker.at) {
    worker.at = board.at[job];
    worker.since = now;
  }
  if (now - worker.since < longest_seed) return -1;
  ::kill(worker.process, SIGKILL);
  ::waitpid(worker.process, &status, 0);
  return status;
}

/// Index of a seed that failed; -1 if none did.
std::int64_t supervise(std::vector<Worker>& workers, Board& board) {
  std::int64_t failed = -1;
  std::size_t running = workers.size();
  while (running > 0) {
    std::this_thread::sleep_for(poll_pause);
    for (std::size_t job = 0; job < workers.size(); ++job) {
      if (workers[job].process < 0) continue;
      const int status = poll(workers[job], board, static_cast<int>(job));
      if (status == -1) continue;
      workers[job].process = -1;
      --running;
      if (status == 0) continue;
      board.next = ~std::uint64_t{0} >> 1;  // the others take no more
      failed = static_cast<std::int64_t>(board.at[job]);
      if (WIFSIGNALED(status))
        fmt::print("the process was ended by signal {}{}\n", WTERMSIG(status),
                   WTERMSIG(status) == SIGKILL ? ": it made no progress" : "");
    }
  }
  return failed;
}

}  // namespace

int soak(Simulate simulate, const std::vector<std::uint64_t>& seeds, int jobs,
         const std::string& program) {
  SharedBoard board;
  const auto from = std::chrono::steady_clock::now();
  std::vector<Worker> workers(
      std::min<std::size_t>(static_cast<std::size_t>(std::max(jobs, 1)), most_jobs));
  for (std::size_t job = 0; job < workers.size(); ++job)
    workers[job] = {start(simulate, seeds, *board, static_cast<int>(job)), 0, from};
  const std::int64_t failed = supervise(workers, *board);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  fmt::print("{} seeds: {} runs, {} crashes, {} restarts, {} calls in {:.1f} s, {} at once\n",
             seeds.size(), board->runs.load(), board->crashes.load(), board->restarts.load(),
             board->calls.load(), took.count(), workers.size());
  if (failed < 0) return 0;
  const std::uint64_t seed = seeds[static_cast<std::size_t>(failed)];
  fmt::print("replay it with: {} --seed {} --trace\n", program, seed);
  return 1;
}

}  // namespace cairn::sim
