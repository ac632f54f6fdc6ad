#include "comm/communicator.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <iterator>

#include "comm/blobs.hpp"

namespace cairn {
namespace {

// One tag per algorithm is enough: no algorithm sends twice from one rank to another in one call
// (exchange does, in an order both know), and calls follow each other in the same order everywhere.
enum ReservedTag : int {
  barrier_tag = Communicator::first_reserved_tag,
  reduce_tag,
  bcast_tag,
  allgather_tag,
  exchange_tag,
  gather_tag,
  scan_tag,
};

/// The rank `hops` after this one, around the ring; negative hops go back.
int neighbour(const Communicator& comm, int hops) {
  return (comm.rank() + comm.size() + hops) % comm.size();
}

void send_and_recv(Communicator& comm, Bytes data, int to, MutableBytes buffer, int from, int tag) {
  Request pair[] = {comm.irecv(buffer, from, tag), comm.isend(data, to, tag)};
  wait_all(comm, pair);
}

std::int64_t combine(std::int64_t a, std::int64_t b, Reduce op) {
  switch (op) {
    case Reduce::sum:
      return a + b;
    case Reduce::min:
      return std::min(a, b);
    case Reduce::max:
      return std::max(a, b);
  }
  return a;
}

/// Leaves the result on rank 0, partial ones elsewhere.
void reduce_to_first(Communicator& comm, std::span<std::int64_t> values, Reduce op) {
  std::vector<std::int64_t> theirs(values.size());
  for (int hop = 1; hop < comm.size(); hop *= 2) {
    if (comm.rank() & hop) return send(comm, std::as_bytes(values), comm.rank() - hop, reduce_tag);
    if (comm.rank() + hop >= comm.size()) continue;
    recv(comm, std::as_writable_bytes(std::span(theirs)), comm.rank() + hop, reduce_tag);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], theirs[i], op);
  }
}

}  // namespace

// --- collectives over point to point ---

void Communicator::barrier() {
  for (int hop = 1; hop < size(); hop *= 2)
    send_and_recv(*this, {}, neighbour(*this, hop), {}, neighbour(*this, -hop), barrier_tag);
}

void Communicator::allreduce(std::span<std::int64_t> values, Reduce op) {
  reduce_to_first(*this, values, op);
  bcast(std::as_writable_bytes(values), 0);
}

void Communicator::bcast(MutableBytes data, int root) {
  const int place = (rank() - root + size()) % size();  // in a tree whose root has place 0
  int hop = 1;
  while (hop < size() && !(place & hop)) hop *= 2;
  if (place != 0) recv(*this, data, neighbour(*this, -hop), bcast_tag);
  std::vector<Request> sends;
  for (hop /= 2; hop > 0; hop /= 2)
    if (place + hop < size()) sends.push_back(isend(data, neighbour(*this, hop), bcast_tag));
  wait_all(*this, sends);
}

void Communicator::allgather(Bytes mine, MutableBytes all) {
  assert(all.size() == mine.size() * static_cast<std::size_t>(size()));
  Blob ring(all.size());  // in the order of the ring, this rank first
  std::copy(mine.begin(), mine.end(), ring.begin());
  for (int hop = 1; hop < size(); hop *= 2) {
    const auto have = static_cast<std::size_t>(hop) * mine.size();
    const auto bytes = std::min(have, all.size() - have);
    send_and_recv(*this, Bytes(ring).first(bytes), neighbour(*this, -hop),
                  MutableBytes(ring).subspan(have, bytes), neighbour(*this, hop), allgather_tag);
  }
  const auto first = static_cast<std::size_t>((size() - rank()) % size()) * mine.size();
  std::rotate_copy(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(first), ring.end(),
                   all.begin());
}

// --- waiting ---

void wait(Communicator& comm, Request& request) { wait_all(comm, std::span(&request, 1)); }

void wait_all(Communicator& comm, std::span<Request> requests) {
  while (true) {
    bool complete = true;
    for (Request& request : requests) {
      if (request && request->test()) request.reset();
      if (request) complete = false;
    }
    if (complete) return;
    comm.idle();
  }
}

int wait_any(Communicator& comm, std::span<Request> requests) {
  while (true) {
    bool pending = false;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!requests[i]) continue;
      if (requests[i]->test()) {
        requests[i].reset();
        return static_cast<int>(i);
      }
      pending = true;
    }
    if (!pending) return -1;
    comm.idle();
  }
}

void send(Communicator& comm, Bytes data, int to, int tag) {
  Request request = comm.isend(data, to, tag);
  wait(comm, request);
}

void recv(Communicator& comm, MutableBytes buffer, int from, int tag) {
  Request request = comm.irecv(buffer, from, tag);
  wait(comm, request);
}

// --- built on the above ---

std::int64_t allreduce(Communicator& comm, std::int64_t value, Reduce op) {
  comm.allreduce(std::span(&value, 1), op);
  return value;
}

Scan exclusive_scan(Communicator& comm, std::span<const std::int64_t> values) {
  std::vector<std::int64_t> sums(values.begin(), values.end());  // of this rank and those below
  std::vector<std::int64_t> received(values.size());
  Scan scan{std::vector<std::int64_t>(values.size()), {}};
  const auto add_received_to = [&](std::vector<std::int64_t>& into) {
    std::transform(into.begin(), into.end(), received.begin(), into.begin(), std::plus<>());
  };
  for (int hop = 1; hop < comm.size(); hop *= 2) {
    const std::vector<std::int64_t> sent = sums;
    std::array<Request, 2> pair;
    if (comm.rank() + hop < comm.size())
      pair[0] = comm.isend(std::as_bytes(std::span(sent)), comm.rank() + hop, scan_tag);
    if (comm.rank() >= hop)
      pair[1] =
          comm.irecv(std::as_writable_bytes(std::span(received)), comm.rank() - hop, scan_tag);
    wait_all(comm, pair);
    if (comm.rank() < hop) continue;
    add_received_to(sums);
    add_received_to(scan.before);
  }
  scan.total = sums;
  comm.bcast(std::as_writable_bytes(std::span(scan.total)), comm.size() - 1);
  return scan;
}

void bcast_blob(Communicator& comm, Blob& blob, int root) {
  auto bytes = static_cast<std::uint64_t>(blob.size());
  comm.bcast(mutable_bytes_of(bytes), root);
  blob.resize(bytes);
  MutableBytes rest = blob;
  do {
    const MutableBytes message = rest.first(std::min(rest.size(), Communicator::max_message_bytes));
    comm.bcast(message, root);
    rest = rest.subspan(message.size());
  } while (!rest.empty());
}

namespace {

/// The same path may be a file on each node.
void add_place(const Communicator& comm, Error& error) {
  if (concerns_files(error) && !comm.place().empty() &&
      error.text.find("(rank ") == std::string::npos)
    error.text += fmt::format(" ({})", comm.place());
}

}  // namespace

Status agree(Communicator& comm, Status mine) {
  const int vote = mine ? comm.size() : comm.rank();
  const int origin = static_cast<int>(allreduce(comm, vote, Reduce::min));
  if (origin == comm.size()) return {};

  Error verdict;
  if (!mine) {
    verdict = std::move(mine).error();
    add_place(comm, verdict);
  }
  auto code = static_cast<std::int32_t>(verdict.code);
  comm.bcast(mutable_bytes_of(code), origin);
  const Bytes text = std::as_bytes(std::span(verdict.text));
  Blob blob(text.begin(), text.end());
  bcast_blob(comm, blob, origin);
  return tl::unexpected<Error>(
      Error{static_cast<Code>(code),
            std::string(reinterpret_cast<const char*>(blob.data()), blob.size()), origin});
}

namespace {

/// How a parcel travels: this before its payload, all of one step in one message.
struct Label {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint64_t bytes = 0;
};

struct Item {
  Label label;
  Blob payload;
};

void append(Blob& blob, Bytes data) { blob.insert(blob.end(), data.begin(), data.end()); }

Blob pack(const std::vector<Item>& items) {
  Blob packed;
  for (const Item& item : items) {
    append(packed, bytes_of(item.label));
    append(packed, item.payload);
  }
  return packed;
}

void unpack(Bytes packed, std::vector<Item>& items) {
  while (!packed.empty()) {
    Label label;
    std::memcpy(&label, packed.data(), sizeof label);
    const Bytes payload = packed.subspan(sizeof label, label.bytes);
    items.push_back(Item{label, Blob(payload.begin(), payload.end())});
    packed = packed.subspan(sizeof label + label.bytes);
  }
}

/// Takes out the items whose way from here to their peer has a step of `hop`, keeping the order.
std::vector<Item> take_those_for(const Communicator& comm, int hop, std::vector<Item>& items) {
  const auto goes = [&](const Item& item) {
    return ((item.label.to - comm.rank() + comm.size()) % comm.size() & hop) != 0;
  };
  const auto middle = std::stable_partition(items.begin(), items.end(), std::not_fn(goes));
  std::vector<Item> taken(std::make_move_iterator(middle), std::make_move_iterator(items.end()));
  items.erase(middle, items.end());
  return taken;
}

/// Swaps messages of any length with the neighbours `hop` away: sends ahead, receives from behind.
Blob pass_on(Communicator& comm, int hop, Bytes outgoing) {
  const int ahead = neighbour(comm, hop);
  const int behind = neighbour(comm, -hop);
  const auto bytes_out = static_cast<std::uint64_t>(outgoing.size());
  std::uint64_t bytes_in = 0;
  send_and_recv(comm, bytes_of(bytes_out), ahead, mutable_bytes_of(bytes_in), behind, exchange_tag);
  Blob incoming(bytes_in);
  send_and_recv(comm, outgoing, ahead, incoming, behind, exchange_tag);
  return incoming;
}

}  // namespace

// The way of a parcel is the binary digits of its distance around the ring, lowest first. Parcels
// of one pair of ranks take the same way together, so their order is kept.
std::vector<Parcel> exchange(Communicator& comm, std::vector<Parcel> outgoing) {
  std::vector<Item> items;
  for (Parcel& parcel : outgoing) {
    assert(parcel.peer >= 0 && parcel.peer < comm.size());
    const Label label{comm.rank(), parcel.peer, parcel.payload.size()};
    items.push_back(Item{label, std::move(parcel.payload)});
  }
  for (int hop = 1; hop < comm.size(); hop *= 2) {
    const Blob leaving = pack(take_those_for(comm, hop, items));
    unpack(pass_on(comm, hop, leaving), items);
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.label.from < b.label.from; });
  std::vector<Parcel> arrived;
  for (Item& item : items) arrived.push_back(Parcel{item.label.from, std::move(item.payload)});
  return arrived;
}

std::vector<Blob> gather_first(Communicator& comm, Bytes mine, std::size_t most) {
  std::vector<Item> items;
  if (!mine.empty())
    items.push_back({{comm.rank(), 0, mine.size()}, Blob(mine.begin(), mine.end())});
  for (int hop = 1; hop < comm.size(); hop *= 2) {
    if (comm.rank() & hop) {
      send_blob(comm, pack(items), comm.rank() - hop, gather_tag);
      return {};
    }
    if (comm.rank() + hop >= comm.size()) continue;
    unpack(recv_blob(comm, comm.rank() + hop, gather_tag), items);
    items.resize(std::min(items.size(), most));
  }
  std::vector<Blob> first;
  for (Item& item : items) first.push_back(std::move(item.payload));
  return first;
}

}  // namespace cairn
