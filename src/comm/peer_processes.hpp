// For tests: ranks as processes made by fork(), which find each other by memory that they share,
// and what they do there.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/peer_network.hpp"

namespace cairn {

class PeerProcesses {
 public:
  static constexpr int ranks_max = 16;
  using Clock = std::chrono::steady_clock;

  /// How one process has ended.
  struct End {
    int status = -1;   ///< of waitpid; -1 if it had to be killed here
    std::string text;  ///< what its function has returned or thrown
    double at_s = 0;   ///< when it has, on the clock of now_s()
  };

  explicit PeerProcesses(int size) : size_(size), processes_(static_cast<std::size_t>(size), -1) {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared;
  }
  ~PeerProcesses() {
    (void)wait(0);
    ::munmap(shared_, sizeof(Shared));
  }
  PeerProcesses(const PeerProcesses&) = delete;
  PeerProcesses& operator=(const PeerProcesses&) = delete;

  /// `rank_main` of each process returns a text. Its destructors are run, those of static objects
  /// not.
  void start(const std::function<std::string(int rank)>& rank_main) {
    for (int rank = 0; rank < size_; ++rank) {
      const pid_t process = ::fork();
      if (process < 0) throw std::runtime_error("cannot fork");
      if (process == 0) run(rank, rank_main);
      processes_[static_cast<std::size_t>(rank)] = process;
    }
  }

  pid_t process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  int size() const { return size_; }
  static double now_s() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

  /// A number that all processes see.
  std::atomic<std::int64_t>& number(int which) { return shared_->numbers[which]; }

  PeerNetwork::Exchange exchange(int rank) {
    return [this, rank, round = 0](Bytes mine) mutable -> Result<std::vector<Blob>> {
      Round& now = shared_->rounds[round++];
      std::memcpy(now.bytes[rank], mine.data(), mine.size());
      ++now.there;
      for (const double until = now_s() + 20; now.there < size_;) {
        if (now_s() > until) return fail(Code::io, "an exchange waits for {} ranks", size_);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      std::vector<Blob> all;
      for (int each = 0; each < size_; ++each) {
        const auto* const first = reinterpret_cast<const std::byte*>(now.bytes[each]);
        all.emplace_back(first, first + mine.size());
      }
      return all;
    };
  }

  /// Throws what fails.
  std::unique_ptr<PeerNetwork> open(int rank, PeerNetworkOptions options = {}) {
    if (options.place.empty()) options.place = "n1";
    auto network = PeerNetwork::open(rank, size_, exchange(rank), std::move(options));
    if (!network) throw std::runtime_error("open: " + network.error().text);
    return *std::move(network);
  }

  /// All ranks open a network, and meet. Each does `act`, and waits for what never comes: then for
  /// its failure, of which each returns the outcome.
  void start_waiting(const PeerNetworkOptions& options, const std::function<void(int rank)>& act) {
    start([this, options, act](int rank) {
      const auto network = open(rank, options);
      return outcome_of(*network, [&](Communicator& comm) {
        comm.barrier();
        act(rank);
        wait_for_ever(comm);
      });
    });
  }

  /// "3: TEXT" for a rank that was unwound: what the error names.
  static std::string outcome_of(PeerNetwork& network,
                                const std::function<void(Communicator&)>& work) {
    const auto comm = network.begin(1);
    try {
      work(*comm);
      return "no failure";
    } catch (const TransportFailed& failed) {
      if (!network.failure()) {
        // What comes later fails as well, at once.
        try {
          comm->isend({}, (comm->rank() + 1) % comm->size(), 1);
          return "a later send does not fail";
        } catch (const TransportFailed&) {
        }
      }
      return fmt::format("{}: {}", failed.error().rank, failed.error().text);
    }
  }
  static void wait_for_ever(Communicator& comm) {
    Blob never(1);
    Request request = comm.irecv(never, (comm.rank() + 1) % comm.size(), 99);
    cairn::wait(comm, request);
  }
  /// The outcome is the failure of this rank.
  static bool is_failure_of(const std::string& outcome, int rank) {
    return outcome.starts_with(fmt::format("{}: ", rank)) &&
           outcome.find(fmt::format("rank {} (process ", rank)) != std::string::npos;
  }

  /// A process ends only when all have come here.
  void meet(int which) {
    ++number(which);
    for (const double until = now_s() + 20; number(which) < size_ && now_s() < until;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// Lines that processes have noted for the test.
  void note(const std::string& line) {
    const int index = shared_->note_count++;
    if (index < notes_max) std::strncpy(shared_->notes[index], line.c_str(), 511);
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (int i = 0; i < std::min<int>(shared_->note_count, notes_max); ++i)
      all.emplace_back(shared_->notes[i]);
    return all;
  }

  /// Those that have not ended by then are killed.
  std::vector<End> wait(double at_most_s = 30) {
    std::vector<End> ends(static_cast<std::size_t>(size_));
    const double until = now_s() + at_most_s;
    for (int rank = 0; rank < size_; ++rank) {
      pid_t& process = processes_[static_cast<std::size_t>(rank)];
      End& end = ends[static_cast<std::size_t>(rank)];
      if (process < 0) continue;
      int status = -1;
      while (::waitpid(process, &status, WNOHANG) == 0) {
        if (now_s() > until) {
          ::kill(process, SIGKILL);
          ::waitpid(process, &status, 0);
          status = -1;
          break;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      process = -1;
      end = End{status, shared_->reports[rank].text, shared_->reports[rank].at_s};
    }
    return ends;
  }

 private:
  static constexpr int notes_max = 8;
  struct Round {
    std::atomic<int> there = 0;
    char bytes[ranks_max][1024];
  };
  struct Report {
    double at_s = 0;
    char text[1024] = {};
  };
  struct Shared {
    Round rounds[4];
    Report reports[ranks_max];
    std::atomic<std::int64_t> numbers[8] = {};
    std::atomic<int> note_count = 0;
    char notes[notes_max][512] = {};
  };

  [[noreturn]] void run(int rank, const std::function<std::string(int rank)>& rank_main) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string text;
    try {
      text = rank_main(rank);
    } catch (const std::exception& error) {
      text = fmt::format("exception: {}", error.what());
    }
    Report& mine = shared_->reports[rank];
    mine.at_s = now_s();
    std::strncpy(mine.text, text.c_str(), sizeof mine.text - 1);
    ::_exit(0);
  }

  const int size_;
  std::vector<pid_t> processes_;
  Shared* shared_;
};

}  // namespace cairn
