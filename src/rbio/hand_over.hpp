// How the ranks of one group bring their data to the writer, the group's first rank.
//
// Ranks on the node of the writer map its buffer, and copy each piece to its final place: one copy.
// The others, and those that cannot map it, send messages.
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

class HandOver {
 public:
  /// `is_near`: this rank is on the writer's node. `memory` may be null.
  HandOver(std::shared_ptr<SharedMemory> memory, bool is_near, Log log)
      : memory_(std::move(memory)), is_near_(is_near), log_(std::move(log)) {}

  /// Over one group: all map the writer's segment, if they can. Returns, on the writer, which ranks
  /// do. Null on the writer: there is nothing to map.
  std::vector<bool> share(Communicator& group, Segment* of_writer, std::unique_ptr<Segment>& mine);

  /// Over one group, with what only its writer has: the buffer, those it still has, and the shares
  /// of all. On return the data of the fields may change.
  void bring(Communicator& group, const std::vector<Field>& fields,
             const std::vector<Share>& shares, StepBuffer* buffer,
             const std::vector<std::uint64_t>& buffers);

 private:
  /// The buffer of this step in this rank; null if it cannot be mapped.
  Segment* mapped(Communicator& group, StepBuffer* buffer,
                  const std::vector<std::uint64_t>& buffers);

  const std::shared_ptr<SharedMemory> memory_;
  const bool is_near_;
  const Log log_;
  std::map<std::uint64_t, std::unique_ptr<Segment>> mapped_;  ///< null: cannot be
};

}  // namespace cairn::rbio
