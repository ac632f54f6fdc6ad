// What a rank sends, counted.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"

namespace cairn {

/// Of one rank.
struct Traffic {
  std::uint64_t messages = 0;  ///< sent and received
  std::uint64_t bytes = 0;     ///< in them
  /// allgathers over all ranks are apart: what each rank gives, in bytes.
  std::uint64_t gathered_bytes = 0;
  std::uint64_t gathers = 0;
};

/// Counts messages of its own rank. Collectives are counted as the binomial trees that they are
/// built of, whatever the transport has of its own.
class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(Communicator& inner) : inner_(inner) {}

  const Traffic& traffic() const { return traffic_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request isend(Bytes data, int to, int tag) override {
    count(data.size());
    return inner_.isend(data, to, tag);
  }
  Request irecv(MutableBytes buffer, int from, int tag) override {
    count(buffer.size());
    return inner_.irecv(buffer, from, tag);
  }
  void idle() override { inner_.idle(); }
  void allgather(Bytes mine, MutableBytes all) override {
    ++traffic_.gathers;
    traffic_.gathered_bytes += mine.size();
    inner_.allgather(mine, all);
  }

 private:
  void count(std::size_t bytes) {
    ++traffic_.messages;
    traffic_.bytes += bytes;
  }

  Communicator& inner_;
  Traffic traffic_;
};

}  // namespace cairn
