// Messages between the processes of a program that touch nothing of its MPI, for a background
// thread.
//
// Processes of one machine use Unix-domain sockets, and copy long messages from each other's memory
// where the kernel allows it; others use TCP. Each rank is connected from the beginning with the
// ranks 1, 2, 4, 8 ... before and behind it, as the collectives need; other connections are made by
// the first message. A connection has to show a random token of its receiver.
//
// Failure (docs/adr/0040-messages-beside-mpi.md): if a process dies, gives no sign of life for
// `silence`, or loses its connection to another one, those that notice it pass that on. Then every
// call of every Communicator of the network throws TransportFailed, on all ranks, within a second
// for a death. The network stays failed. Only a death that is proven is a death(). A channel can
// also end alone, by cancel() or since a rank has left it early; then the calls of that channel
// throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"

namespace cairn {

/// Unwinds what communicates over a PeerNetwork. `error().rank` is the rank that has died, is not
/// reached, or has left.
class TransportFailed : public std::runtime_error {
 public:
  explicit TransportFailed(Error error)
      : std::runtime_error(error.text), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

struct PeerNetworkOptions {
  /// The name of this node, for messages.
  std::string place;
  /// A process that is connected and sends nothing for so long has failed.
  std::chrono::milliseconds silence{20000};
  /// Until a connection is made.
  std::chrono::milliseconds patience{10000};
  /// Copy long messages from the memory of processes on the same machine.
  bool may_copy_memory = true;
  /// TCP also between processes of one machine, over the loopback interface if all are on it.
  bool avoid_local_sockets = false;
  /// Gets the lines that report_awaited() leads to, on any rank, from a thread of the network.
  std::function<void(const std::string&)> report;

  // For tests.
  /// Called before each write with its size; returns how much of it may be written, at least 1.
  std::function<std::size_t(std::size_t)> limit_write;
  /// In place of the copy from another process's memory: an error number.
  std::function<int(std::uint64_t, MutableBytes)> refuse_copy;
};

/// What one process has done.
struct PeerNetworkCounts {
  std::uint64_t frames_sent = 0;
  std::uint64_t connections = 0;
  std::uint64_t copied_bytes = 0;  ///< from memory to memory
  std::uint64_t kept_bytes = 0;    ///< of messages that no receive has asked for yet
};

class PeerCore;

class PeerNetwork {
 public:
  /// Gives the bytes of all ranks, in their order; `mine` has the same size on all.
  using Exchange = std::function<Result<std::vector<Blob>>(Bytes mine)>;

  /// By all ranks. They all get a network or all an error. Starts a thread, which has no signals.
  static Result<std::unique_ptr<PeerNetwork>> open(int rank, int size, const Exchange& exchange,
                                                   PeerNetworkOptions options);
  /// Collective.
  static Result<std::unique_ptr<PeerNetwork>> open(Communicator& comm, PeerNetworkOptions options);

  /// As leave().
  ~PeerNetwork();
  PeerNetwork(const PeerNetwork&) = delete;
  PeerNetwork& operator=(const PeerNetwork&) = delete;

  /// The messages of one piece of work. Only one thread at a time may use it. `channel` is the same
  /// on all ranks and greater than all before; the one before must have been destroyed. Messages
  /// that no rank has received by then are dropped.
  std::unique_ptr<Communicator> begin(std::uint32_t channel);
  /// From any thread, on any rank: all ranks that use the channel, or will, are unwound with `why`.
  void cancel(std::uint32_t channel, Error why);

  /// From any thread. What has failed, if anything has.
  Status failure() const;
  /// The process that has died, if one has: not if it hangs, is held by a debugger, has left, or is
  /// no longer connected and may live.
  Status death() const;
  /// From any thread, of a program that has `waited`: the rank that its messages wait for, and that
  /// itself waits for none, is reported by a line, on that rank or on one that waits for it.
  void report_awaited(std::chrono::milliseconds waited);
  /// The same on each rank whose program has waited, before these agree which one reports it: one
  /// that is stopped takes no part in that. One line at most: rank 0 reports, or, if that gives no
  /// sign of life, rank 1.
  void report_late(std::chrono::milliseconds waited);
  PeerNetworkCounts counts() const;

  /// By all ranks, after the last channel: waits until all that was sent has arrived, at most for
  /// `patience`, says farewell, and waits at most as long until the others do so too.
  Status close();
  /// For the end of a process: says farewell, but waits for no rank. False if the thread did not
  /// end in time; it is then left, with what it uses. In a process made by fork() it does nothing.
  bool leave(std::chrono::milliseconds at_most = std::chrono::milliseconds(100));

 private:
  explicit PeerNetwork(std::shared_ptr<PeerCore> core);

  std::shared_ptr<PeerCore> core_;
};

}  // namespace cairn
