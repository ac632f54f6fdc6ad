// Byte strings whose length the receiver does not know.
#pragma once

#include <vector>

#include "comm/communicator.hpp"

namespace cairn {

/// Local, blocking; two messages with one tag.
void send_blob(Communicator& comm, Bytes blob, int to, int tag);
Blob recv_blob(Communicator& comm, int from, int tag);

/// The blob of every rank, in rank order. For small groups: each gets all.
std::vector<Blob> allgather_blobs(Communicator& comm, Bytes mine);

}  // namespace cairn
