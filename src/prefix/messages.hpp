// Small messages between ranks, of many fields each.
#pragma once

#include <map>

#include "comm/communicator.hpp"
#include "records/wire.hpp"

namespace cairn {

/// Collective. Sends each of `messages` to the rank that is its key. Calls `read(peer, in)` until
/// it has read every message that arrived, to its end. For kilobytes.
template <class Read>
void exchange_messages(Communicator& comm, std::map<int, Encoder>&& messages, Read read) {
  std::vector<Parcel> parcels;
  for (auto& [peer, message] : messages) parcels.push_back({peer, message.take()});
  for (const Parcel& parcel : exchange(comm, std::move(parcels))) {
    Decoder in(parcel.payload);
    while (!in.at_end() && !in.failed()) read(parcel.peer, in);
  }
}

}  // namespace cairn
