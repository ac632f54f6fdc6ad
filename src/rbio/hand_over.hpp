// How the ranks of one group bring their data to the writer, the group's first rank.
//
// Ranks on the node of the writer map its buffer, and copy each piece to its final place: one copy.
// The others, and those that cannot map it, send messages, which the writer receives at these
// places: from a copy in a buffer of their own if the program is to go on meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "rbio/buffer_pool.hpp"
#include "rbio/field.hpp"
#include "rbio/plan.hpp"
#include "rbio/shared_memory.hpp"

namespace cairn::rbio {

/// Of one rank and step.
struct StepMemory {
  /// On the writer: the group's. On a rank that sends messages: its own; null if it has no data, or
  /// sends them straight from the fields.
  std::shared_ptr<StepBuffer> buffer;
  Segment* mapped = nullptr;  ///< the writer's buffer, where this rank can map it
};

/// The buffer of a step, seen from one rank.
struct OfferedBuffer {
  bool exists = false;         ///< else the writer has none, and the step is not begun
  Segment* segment = nullptr;  ///< null where this rank cannot map it
};

class HandOver {
 public:
  /// Of the messages with data.
  static constexpr int data_tag = 5;

  /// `is_near`: this rank is on the writer's node. `memory` may be null.
  HandOver(std::shared_ptr<SharedMemory> memory, bool is_near, Log log)
      : memory_(std::move(memory)), is_near_(is_near), log_(std::move(log)) {}

  /// Over one group: all map the writer's segment, if they can. Returns, on the writer, which ranks
  /// do. Null on the writer: there is nothing to map.
  std::vector<bool> share(Communicator& group, Segment* of_writer, std::unique_ptr<Segment>& mine);

  /// Over one group, with what only its writer has: the buffer of this step, null if there is none,
  /// and those it still has.
  OfferedBuffer map(Communicator& group, StepBuffer* buffer,
                    const std::vector<std::uint64_t>& buffers);

  /// Over one group; `mine` is what this rank writes, and `shares` are those of all, on its writer.
  /// On return the data of the fields may change. Returns messages that are still under way, into
  /// or from the buffer of this rank.
  std::vector<Request> bring(Communicator& group, const std::vector<Field>& fields,
                             const Share& mine, const std::vector<Share>& shares,
                             const StepMemory& memory);

 private:
  const std::shared_ptr<SharedMemory> memory_;
  const bool is_near_;
  const Log log_;
  std::map<std::uint64_t, std::unique_ptr<Segment>> mapped_;  ///< null: cannot be
};

}  // namespace cairn::rbio
