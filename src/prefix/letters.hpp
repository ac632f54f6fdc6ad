// Small messages between ranks, of many fields each.
#pragma once

#include <map>

#include "comm/communicator.hpp"
#include "records/wire.hpp"

namespace cairn {

/// Collective. Sends each of `letters` to the rank that is its key. For every received one, calls
/// `read` with it and its sender until it is read to its end. For kilobytes.
template <class Read>
void exchange_letters(Communicator& comm, std::map<int, Encoder>&& letters, Read read) {
  std::vector<Parcel> parcels;
  for (auto& [peer, letter] : letters) parcels.push_back({peer, letter.take()});
  for (const Parcel& parcel : exchange(comm, std::move(parcels))) {
    Decoder in(parcel.payload);
    while (!in.at_end() && !in.failed()) read(parcel.peer, in);
  }
}

}  // namespace cairn
