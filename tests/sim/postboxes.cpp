#include "postboxes.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::sim {

/// Known to the box it was put into until it is done.
class Postboxes::Ticket final : public PendingMessage {
 public:
  explicit Ticket(Box& box) : box_(box) {}

  ~Ticket() override {
    if (done) return;
    const auto is_this = [this](const auto& entry) { return entry.ticket == this; };
    box_.posted.remove_if(is_this);
    // What a dead process sent after a message that never left does not arrive either.
    const auto unsent = std::find_if(box_.offers.begin(), box_.offers.end(), is_this);
    if (unsent != box_.offers.end())
      box_.offers.remove_if(
          [from = unsent->from](const Offer& offer) { return offer.from == from; });
    if (std::uncaught_exceptions() > 0) return;
    fmt::print(stderr, "a request was dropped that has not been waited for\n");
    std::abort();  // a destructor cannot throw, and the buffer may be gone already
  }

  bool test() override { return done; }

  bool done = false;

 private:
  Box& box_;
};

namespace {

template <class Queue>
auto find_in(Queue& queue, int from, int tag) {
  return std::find_if(queue.begin(), queue.end(),
                      [&](const auto& entry) { return entry.from == from && entry.tag == tag; });
}

void copy(Bytes data, MutableBytes buffer, int from, int tag) {
  if (data.size() != buffer.size())
    throw Violation(fmt::format("rank {} sends {} bytes with tag {}, its receiver expects {}", from,
                                data.size(), tag, buffer.size()));
  if (!data.empty()) std::memcpy(buffer.data(), data.data(), data.size());
}

}  // namespace

Postboxes::Postboxes(int ranks, Seam& seam, Chance chance, Owner owner)
    : seam_(seam),
      chance_(chance),
      buffered_of_four_(chance_.below(5)),
      owner_(owner),
      boxes_(static_cast<std::size_t>(ranks)) {}

std::size_t Postboxes::undelivered() const {
  std::size_t count = 0;
  for (const Box& box : boxes_) count += box.offers.size();
  return count;
}

void Postboxes::check(int peer, int tag) const {
  if (peer < 0 || peer >= size() || tag < 0 || tag > Communicator::max_tag)
    throw Violation(fmt::format("there is no rank {} or no tag {}", peer, tag));
}

void Postboxes::changed(int rank) {
  ++boxes_[static_cast<std::size_t>(rank)].version;
  if (owner_ == Owner::rank)
    seam_.scheduler().wake(rank);
  else
    seam_.scheduler().wake_helper(rank);
}

void Postboxes::break_off() {
  is_broken_ = true;
  for (int rank = 0; rank < size(); ++rank) changed(rank);
}

void Postboxes::pass(std::string_view what) {
  seam_.pass(what);
  if (is_broken_ && std::uncaught_exceptions() == 0) throw CannotReach();
}

Request Postboxes::send(Bytes data, int from, int to, int tag) {
  check(to, tag);
  pass("isend");
  Box& box = boxes_[static_cast<std::size_t>(to)];
  auto ticket = std::make_unique<Ticket>(box);
  ticket->done = true;
  const auto posted = find_in(box.posted, from, tag);
  if (posted != box.posted.end()) {
    copy(data, posted->buffer, from, tag);
    posted->ticket->done = true;
    box.posted.erase(posted);
    changed(to);
  } else if (chance_.below(4) < buffered_of_four_) {
    box.offers.push_back({from, tag, {}, Blob(data.begin(), data.end()), nullptr});
    box.offers.back().data = box.offers.back().kept;
  } else {
    ticket->done = false;
    box.offers.push_back({from, tag, data, {}, ticket.get()});
  }
  return ticket;
}

Request Postboxes::receive(MutableBytes buffer, int rank, int from, int tag) {
  check(from, tag);
  pass("irecv");
  Box& box = boxes_[static_cast<std::size_t>(rank)];
  auto ticket = std::make_unique<Ticket>(box);
  const auto offer = find_in(box.offers, from, tag);
  if (offer == box.offers.end()) {
    box.posted.push_back({from, tag, buffer, ticket.get()});
    return ticket;
  }
  ticket->done = true;
  copy(offer->data, buffer, from, tag);
  if (offer->ticket != nullptr) {
    offer->ticket->done = true;
    changed(from);
  }
  box.offers.erase(offer);
  return ticket;
}

// What changed after `seen` was taken may have been missed by the tests made since.
void Postboxes::idle(int rank, std::uint64_t& seen) {
  pass("idle");
  const Box& box = boxes_[static_cast<std::size_t>(rank)];
  if (box.version == seen) seam_.scheduler().block();
  if (is_broken_ && std::uncaught_exceptions() == 0) throw CannotReach();
  seen = box.version;
}

}  // namespace cairn::sim
