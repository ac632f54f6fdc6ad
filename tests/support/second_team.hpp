// A second communicator of the ranks of a test's job, for what goes on behind the program.
#pragma once

#include <atomic>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "comm/team.hpp"

namespace cairn {

/// Its messages are its own. After break_off() the calls of all ranks throw.
class SecondTeam {
 public:
  explicit SecondTeam(int ranks) : seats_(static_cast<std::size_t>(ranks)) {
    thread_ = std::thread([this, ranks] {
      try {
        Team(ranks + 1).run([this, ranks](Communicator& all) { sit(all, ranks); });
      } catch (const std::runtime_error&) {
        return;  // it was broken off
      }
    });
  }
  SecondTeam(const SecondTeam&) = delete;
  SecondTeam& operator=(const SecondTeam&) = delete;
  ~SecondTeam() {
    for (Seat& seat : seats_)
      if (!seat.has_ended) seat.end.set_value();
    if (!is_broken_.exchange(true)) breaks_.set_value(false);
    thread_.join();
  }

  /// By the rank's own thread, once; until end() of the rank.
  Communicator& of(int rank) {
    return *seats_[static_cast<std::size_t>(rank)].comm.get_future().get();
  }
  void break_off() {
    if (!is_broken_.exchange(true)) breaks_.set_value(true);
  }
  void end(int rank) {
    Seat& seat = seats_[static_cast<std::size_t>(rank)];
    if (!std::exchange(seat.has_ended, true)) seat.end.set_value();
  }

 private:
  struct Seat {
    std::promise<Communicator*> comm;
    std::promise<void> end;
    bool has_ended = false;
  };

  /// One rank more than the job has is there to stop the others.
  void sit(Communicator& all, int ranks) {
    if (all.rank() == ranks) {
      if (breaks_.get_future().get()) throw std::runtime_error("broken off");
      return;
    }
    std::vector<int> members(static_cast<std::size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    Group comm(all, std::move(members));
    Seat& seat = seats_[static_cast<std::size_t>(all.rank())];
    seat.comm.set_value(&comm);
    seat.end.get_future().get();
  }

  std::vector<Seat> seats_;
  std::promise<bool> breaks_;
  std::atomic<bool> is_broken_ = false;
  std::thread thread_;
};

}  // namespace cairn
