// The communicator of the simulation: one thread, every order of events from a seed.
#pragma once

#include <list>
#include <stdexcept>
#include <vector>

#include "comm/communicator.hpp"
#include "seam.hpp"

namespace cairn::sim {

/// The transport has failed.
struct CannotReach : std::runtime_error {
  CannotReach() : std::runtime_error("the ranks cannot reach each other") {}
};

/// What is under way between the ranks of one run. Messages between two ranks with one tag arrive
/// in the order sent; whether a send is complete at once or only when it is received is drawn for
/// each message, with odds drawn for the run. A message of another size than its receiver expects,
/// and a request that is dropped without having been waited for, are Violations.
class Postboxes {
 public:
  /// Of each process one thread sends and receives: that of its rank, or its helper.
  enum class Owner { rank, helper };
  Postboxes(int ranks, Seam& seam, Chance chance, Owner owner = Owner::rank);

  /// From here on no rank can reach another: all calls throw CannotReach.
  void break_off();

  int size() const { return static_cast<int>(boxes_.size()); }
  /// Messages that were sent and that nobody has received.
  std::size_t undelivered() const;

  class Ticket;
  struct Offer {
    int from;
    int tag;
    Bytes data;      ///< the sender's own buffer, or `kept`
    Blob kept;       ///< the copy, where the sender has gone on
    Ticket* ticket;  ///< null where the sender has gone on
  };
  struct Posted {
    int from;
    int tag;
    MutableBytes buffer;
    Ticket* ticket;
  };
  struct Box {
    std::uint64_t version = 0;  ///< of all that its rank may be waiting for
    std::list<Offer> offers;
    std::list<Posted> posted;
  };

  Request send(Bytes data, int from, int to, int tag);
  Request receive(MutableBytes buffer, int rank, int from, int tag);
  void idle(int rank, std::uint64_t& seen);

 private:
  void check(int peer, int tag) const;
  void changed(int rank);
  void pass(std::string_view what);

  Seam& seam_;
  Chance chance_;
  std::uint64_t buffered_of_four_;
  Owner owner_;
  bool is_broken_ = false;
  std::vector<Box> boxes_;
};

/// One rank's end.
class ScheduledCommunicator final : public Communicator {
 public:
  ScheduledCommunicator(Postboxes& boxes, int rank) : boxes_(boxes), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return boxes_.size(); }
  Request isend(Bytes data, int to, int tag) override { return boxes_.send(data, rank_, to, tag); }
  Request irecv(MutableBytes buffer, int from, int tag) override {
    return boxes_.receive(buffer, rank_, from, tag);
  }
  void idle() override { boxes_.idle(rank_, seen_); }

 private:
  Postboxes& boxes_;
  int rank_;
  std::uint64_t seen_ = 0;
};

}  // namespace cairn::sim
