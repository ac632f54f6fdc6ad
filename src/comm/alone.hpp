// A process alone, as a communicator of one rank: what is collective elsewhere, it does by itself.
#pragma once

#include <map>

#include "comm/communicator.hpp"

namespace cairn {

/// Needs no transport, so that any thread may have one of its own; one thread at a time.
class Alone final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Request isend(Bytes data, int to, int tag) override;
  /// Of a message that is never sent, the wait never ends.
  Request irecv(MutableBytes buffer, int from, int tag) override;
  void idle() override {}

 private:
  /// Of one tag: the n-th receive gets the n-th message.
  struct Channel {
    std::map<std::uint64_t, Blob> messages;  ///< not received yet, by number
    std::uint64_t sent = 0;
    std::uint64_t awaited = 0;
  };
  class Received;

  std::map<int, Channel> channels_;
};

}  // namespace cairn
