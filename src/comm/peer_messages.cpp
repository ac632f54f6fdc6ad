// How messages travel:
//
// A short one is sent at once, if its receiver is known to have room for it. A longer one is
// offered; its receiver copies it from the sender's memory ("taken"), or asks for it ("pull") and
// gets it in segments, each straight into the buffer of the receive. So a process keeps no more
// than `room_bytes` of each other.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/peer_core.hpp"

namespace cairn {
namespace {

/// What one rank may send another before that has received it.
constexpr std::size_t room_bytes = std::size_t{1} << 20;
/// The lock is given up between two pieces of a copy.
constexpr std::size_t copy_bytes = std::size_t{1} << 20;

/// What a message takes of the room: one without content has a place in the list, too.
std::size_t room_for(std::uint64_t bytes) { return static_cast<std::size_t>(bytes) + 128; }

template <class Queue>
auto find_message(Queue& queue, std::uint32_t channel, std::uint32_t tag) {
  return std::find_if(queue.begin(), queue.end(), [&](const auto& entry) {
    return entry.channel == channel && entry.tag == tag;
  });
}

}  // namespace

// --- of a communicator ---

void PeerCore::begin_channel(std::uint32_t channel) {
  const Lock lock(mutex_);
  drop_arrived_until(channel - 1);
}

void PeerCore::end_channel(std::uint32_t channel) {
  if (!is_in_its_process()) return;
  const Lock lock(mutex_);
  drop_arrived_until(channel);
}

void PeerCore::drop_arrived_until(std::uint32_t channel) {
  ended_channel_ = std::max(ended_channel_, channel);
  cancelled_.erase(cancelled_.begin(), cancelled_.upper_bound(channel));
  is_interrupted_ = failed_ || !cancelled_.empty();
  for (int from = 0; from < size_; ++from) {
    std::list<Arrived>& arrived = peer(from).arrived;
    for (auto each = arrived.begin(); each != arrived.end();) {
      if (!is_stale(each->channel)) {
        ++each;
        continue;
      }
      counts_.kept_bytes -= each->kept.size();
      if (each->is_offer)
        submit(from, Frame{Frame::Kind::taken, 0, 0, 0, each->id, 0});
      else if (each->own == nullptr)
        give_room(from, each->bytes);
      each = arrived.erase(each);
    }
  }
}

void PeerCore::begin(Operation& operation) {
  throw_if_over(operation.channel);
  operation.order = next_order_++;
  under_way_.emplace(operation.order, &operation);
}

void PeerCore::done(Operation& operation) {
  under_way_.erase(operation.order);
  operation.done = true;  // and its owner may destroy it
  ++version_;
}

bool PeerCore::test(const Operation& operation) {
  if (operation.done) return true;
  if (is_interrupted_) {
    const Lock lock(mutex_);
    throw_if_over(operation.channel);
  }
  return false;
}

void PeerCore::send(Operation& operation) {
  const Lock lock(mutex_);
  begin(operation);
  if (operation.peer == rank_) return send_to_self(operation);
  Peer& to = peer(operation.peer);
  const std::size_t bytes = operation.data.size();
  Frame frame{Frame::Kind::message, operation.tag, operation.channel, bytes, 0, 0};
  if (bytes <= Frame::message_bytes_max && to.unreturned + room_for(bytes) <= room_bytes) {
    to.unreturned += room_for(bytes);
    submit(operation.peer, frame, operation.data, &operation);
  } else {
    frame.kind = Frame::Kind::offer;
    frame.id = operation.id = next_id_++;
    frame.address = reinterpret_cast<std::uintptr_t>(operation.data.data());
    to.offered[operation.id] = &operation;
    submit(operation.peer, frame);
  }
  throw_if_over(operation.channel);
}

void PeerCore::submit(int to, const Frame& frame, Bytes payload, Operation* owner) {
  if (failed_) return;
  if (Link* link = link_of(to); link != nullptr && link->stage == Link::Stage::open) {
    link->put(frame, payload, owner);
    ++counts_.frames_sent;
    return flush(*link);
  }
  if (peer(to).has_left) {
    if (frame.kind == Frame::Kind::taken || frame.kind == Frame::Kind::credit) return;
    return fail_network(
        Error{Code::io, fmt::format("{} has closed its connections", name_of(to)), to});
  }
  peer(to).waiting.push_back(Waiting{frame, payload, {}, owner});
  reach(to);
}

void PeerCore::send_to_self(Operation& operation) {
  Peer& self = peer(rank_);
  const Frame frame{
      Frame::Kind::message, operation.tag, operation.channel, operation.data.size(), 0, 0};
  if (Operation* into = take_posted(rank_, frame)) {
    if (!operation.data.empty())
      std::memcpy(into->buffer.data(), operation.data.data(), operation.data.size());
    done(*into);
    return done(operation);
  }
  throw_if_over(operation.channel);
  self.arrived.push_back(Arrived{
      operation.channel, operation.tag, operation.data.size(), {}, false, 0, 0, &operation});
}

/// False, and the channel is over, if they do not have the same size.
bool PeerCore::deliver(Operation& receive, std::uint64_t bytes) {
  if (receive.buffer.size() == bytes) return true;
  cancel_locked(receive.channel,
                Error{Code::differs,
                      fmt::format("rank {} sends {} bytes with tag {}, and rank {} expects {}",
                                  receive.peer, bytes, receive.tag, rank_, receive.buffer.size()),
                      receive.peer});
  return false;
}

void PeerCore::receive(Operation& operation) {
  const Lock lock(mutex_);
  begin(operation);
  Peer& from = peer(operation.peer);
  const auto found = find_message(from.arrived, operation.channel, operation.tag);
  if (found == from.arrived.end()) {
    if (from.has_left)
      fail_network(Error{Code::io,
                         fmt::format("{} has closed its connections", name_of(operation.peer)),
                         operation.peer});
    throw_if_over(operation.channel);
    from.posted.push_back(&operation);
    return;
  }
  if (!deliver(operation, found->bytes)) return throw_if_over(operation.channel);
  const Arrived message = std::move(*found);
  from.arrived.erase(found);
  if (message.is_offer) return fetch(operation.peer, message, operation);
  const Bytes content = message.own != nullptr ? message.own->data : Bytes(message.kept);
  if (!content.empty()) std::memcpy(operation.buffer.data(), content.data(), content.size());
  done(operation);
  if (message.own != nullptr) return done(*message.own);
  counts_.kept_bytes -= message.kept.size();
  give_room(operation.peer, message.bytes);
}

void PeerCore::withdraw(Operation& operation) {
  if (!is_in_its_process()) return;
  const Lock lock(mutex_);
  if (operation.done) return;
  under_way_.erase(operation.order);
  Peer& other = peer(operation.peer);
  other.posted.remove(&operation);
  other.arrived.remove_if([&](const Arrived& each) { return each.own == &operation; });
  const auto is_of_it = [&](const auto& each) { return each.second == &operation; };
  std::erase_if(other.offered, is_of_it);
  std::erase_if(other.pulled, is_of_it);
  std::erase_if(copies_, [&](const Copy& each) { return each.into == &operation; });
  for (Waiting& each : other.waiting) {
    if (each.owner != &operation) continue;
    each.owned.assign(each.payload.begin(), each.payload.end());
    each.payload = each.owned;
    each.owner = nullptr;
  }
  if (Link* link = link_of(operation.peer)) {
    link->forget(operation);
    link->divert(operation.buffer);
    if (link->receiving == &operation) link->receiving = nullptr;
  }
  cancel_locked(operation.channel,
                Error{Code::io, fmt::format("rank {} has left before its end", rank_), rank_});
}

void PeerCore::idle(std::uint32_t channel, std::uint64_t& seen) {
  constexpr std::chrono::milliseconds longest{50};
  Lock lock(mutex_);
  throw_if_over(channel);
  last_idle_ = Clock::now();
  if (version_ == seen) pump(lock, copies_.empty() ? longest : std::chrono::milliseconds(0));
  throw_if_over(channel);
  if (!copies_.empty()) copy_first(lock);
  seen = version_;
  throw_if_over(channel);
}

// --- what arrives ---

/// The receive that waits for this message, if there is one; it no longer waits in the list.
Operation* PeerCore::take_posted(int from, const Frame& frame) {
  std::list<Operation*>& posted = peer(from).posted;
  const auto found = std::find_if(posted.begin(), posted.end(), [&](const Operation* each) {
    return each->channel == frame.channel && each->tag == frame.subject;
  });
  if (found == posted.end() || !deliver(**found, frame.bytes)) return nullptr;
  Operation* const operation = *found;
  posted.erase(found);
  return operation;
}

MutableBytes PeerCore::place_for(Link& link, const Frame& frame) {
  link.receiving = nullptr;
  if (link.stage != Link::Stage::open || failed_) return {};
  if (frame.kind == Frame::Kind::message) {
    link.receiving = take_posted(link.peer, frame);
    return link.receiving != nullptr ? link.receiving->buffer : MutableBytes();
  }
  if (frame.kind != Frame::Kind::segment) return {};
  const auto found = peer(link.peer).pulled.find(frame.id);
  if (found == peer(link.peer).pulled.end()) return {};
  Operation& into = *found->second;
  if (frame.bytes > into.buffer.size() - into.filled) return {};
  link.receiving = &into;
  return into.buffer.subspan(into.filled, frame.bytes);
}

Status PeerCore::received(Link& link, const Frame& frame, Bytes payload) {
  if (link.stage == Link::Stage::closing) return {};
  if (frame.kind == Frame::Kind::hello) return answer_hello(link, frame, payload);
  if (frame.kind == Frame::Kind::welcome) return take_welcome(link, frame, payload);
  if (frame.kind == Frame::Kind::crossed) {
    take_crossed(link);
    return {};
  }
  if (link.stage != Link::Stage::open) return fail(Code::untrusted, "a stranger");
  if (frame.kind == Frame::Kind::bye) {
    take_bye(link);
    return {};
  }
  // That a process has died is news even if the network has failed before.
  if (failed_ && frame.kind != Frame::Kind::failed) return {};
  switch (frame.kind) {
    case Frame::Kind::message:
      take_message(link, frame, payload);
      return {};
    case Frame::Kind::offer:
      take_offer(link, frame);
      return {};
    case Frame::Kind::segment:
      take_segment(link, frame);
      return {};
    case Frame::Kind::pull:
    case Frame::Kind::taken:
      return take_answer(link, frame);
    case Frame::Kind::credit:
      if (frame.id > peer(link.peer).unreturned) return fail(Code::corrupt, "too much room");
      peer(link.peer).unreturned -= static_cast<std::size_t>(frame.id);
      return {};
    case Frame::Kind::cancel:
    case Frame::Kind::failed: {
      if (frame.subject >= static_cast<std::uint32_t>(size_))
        return fail(Code::corrupt, "no such rank");
      Error error = decode_error(payload);
      error.rank = static_cast<int>(frame.subject);
      if (frame.kind == Frame::Kind::cancel)
        cancel_locked(frame.channel, std::move(error));
      else
        fail_network(std::move(error), frame.id != 0);
      return {};
    }
    case Frame::Kind::trace:
      if (frame.subject >= static_cast<std::uint32_t>(size_) ||
          frame.id > static_cast<std::uint64_t>(size_))
        return fail(Code::corrupt, "no such rank");
      trace(frame);
      return {};
    default:
      return {};
  }
}

void PeerCore::take_message(Link& link, const Frame& frame, Bytes payload) {
  Operation* into = std::exchange(link.receiving, nullptr);
  if (into == nullptr && !is_stale(frame.channel)) {
    // A receive may have been posted while it arrived.
    into = take_posted(link.peer, frame);
    if (into != nullptr && !payload.empty())
      std::memcpy(into->buffer.data(), payload.data(), payload.size());
    if (into == nullptr) {
      counts_.kept_bytes += payload.size();
      peer(link.peer).arrived.push_back(
          Arrived{frame.channel, frame.subject, frame.bytes, Blob(payload.begin(), payload.end())});
      return;
    }
  }
  if (into != nullptr) done(*into);
  give_room(link.peer, frame.bytes);
}

/// Room is given back in few frames.
void PeerCore::give_room(int to, std::uint64_t bytes) {
  Peer& other = peer(to);
  other.owed += room_for(bytes);
  if (other.owed < room_bytes / 4) return;
  submit(to, Frame{Frame::Kind::credit, 0, 0, 0, std::exchange(other.owed, 0), 0});
}

void PeerCore::take_offer(Link& link, const Frame& frame) {
  Arrived offer{frame.channel, frame.subject, frame.bytes, {}, true, frame.id, frame.address};
  if (is_stale(frame.channel))
    return submit(link.peer, Frame{Frame::Kind::taken, 0, 0, 0, frame.id, 0});
  if (Operation* into = take_posted(link.peer, frame)) return fetch(link.peer, offer, *into);
  peer(link.peer).arrived.push_back(std::move(offer));
}

void PeerCore::fetch(int from, const Arrived& offer, Operation& into) {
  if (offer.bytes == 0) {
    done(into);
    return submit(from, Frame{Frame::Kind::taken, 0, 0, 0, offer.id, 0});
  }
  into.filled = 0;
  const Link* link = link_of(from);
  if (link == nullptr || link->process == 0) return pull(from, offer.id, into);
  copies_.push_back(Copy{from, link->number, offer.id, offer.address, &into});
  ++version_;
}

void PeerCore::pull(int from, std::uint64_t id, Operation& into) {
  into.filled = 0;
  peer(from).pulled[id] = &into;
  submit(from, Frame{Frame::Kind::pull, 0, 0, 0, id, 0});
}

void PeerCore::take_segment(Link& link, const Frame& frame) {
  Operation* const into = std::exchange(link.receiving, nullptr);
  if (into == nullptr) return;
  into->filled += static_cast<std::size_t>(frame.bytes);
  if (into->filled < into->buffer.size()) return;
  peer(link.peer).pulled.erase(frame.id);
  done(*into);
}

/// To an offer: the receiver has it, or asks for it.
Status PeerCore::take_answer(Link& link, const Frame& frame) {
  if (frame.id >= next_id_) return fail(Code::corrupt, "an answer to no offer");
  std::map<std::uint64_t, Operation*>& offered = peer(link.peer).offered;
  const auto found = offered.find(frame.id);
  if (found == offered.end()) return {};  // withdrawn
  Operation& operation = *found->second;
  offered.erase(found);
  if (frame.kind == Frame::Kind::taken) {
    done(operation);
  } else {
    link.put_in_segments(operation);
    flush(link);
  }
  return {};
}

/// The other side needs nothing more. It is a failure only if this rank does.
void PeerCore::take_bye(Link& link) {
  link.has_said_bye = true;
  Peer& left = peer(link.peer);
  left.has_left = true;
  ++version_;
  if (has_messages_with(left))
    fail_network(Error{Code::io,
                       fmt::format("{} has closed its connections before the others were done",
                                   name_of(link.peer)),
                       link.peer});
  if (is_closing_) return;
  link.put(Frame{Frame::Kind::bye});
  flush(link);
  link.stage = Link::Stage::closing;
}

/// Of channels that are not over.
bool PeerCore::has_messages_with(Peer& left) const {
  const auto is_needed = [&](const Operation* each) {
    return !is_stale(each->channel) && cancelled_.count(each->channel) == 0;
  };
  const auto is_value_needed = [&](const auto& each) { return is_needed(each.second); };
  return std::any_of(left.posted.begin(), left.posted.end(), is_needed) ||
         std::any_of(left.offered.begin(), left.offered.end(), is_value_needed) ||
         std::any_of(left.pulled.begin(), left.pulled.end(), is_value_needed) ||
         std::any_of(copies_.begin(), copies_.end(), [&](const Copy& each) {
           return &peers_[static_cast<std::size_t>(each.peer)] == &left && is_needed(each.into);
         });
}

// --- copies ---

/// The whole first one, so that its content is used while it is in the processor's cache.
void PeerCore::copy_first(Lock& lock) {
  const Copy first = copies_.front();
  Operation& into = *first.into;
  const pid_t process = links_.count(first.link) != 0 ? links_[first.link]->process : 0;
  int error_number = process > 0 ? 0 : ESRCH;
  while (error_number == 0 && into.filled < into.buffer.size()) {
    const MutableBytes piece =
        into.buffer.subspan(into.filled, std::min(copy_bytes, into.buffer.size() - into.filled));
    error_number = copy(process, first.address + into.filled, piece);
    if (error_number != 0) break;
    into.filled += piece.size();
    lock.unlock();
    lock.lock();
    throw_if_over(into.channel);
  }
  copies_.pop_front();
  finish_copy(first, error_number);
}

void PeerCore::finish_copy(const Copy& done_copy, int error_number) {
  Link* const link = link_of(done_copy.peer);
  if (error_number != 0 || link == nullptr) {
    // EFAULT is of this message only; the others mean that the kernel does not allow it.
    if (link != nullptr && error_number != EFAULT) link->process = 0;
    return pull(done_copy.peer, done_copy.id, *done_copy.into);
  }
  // If the process has ended meanwhile, another one may have its number, and these are its bytes.
  pollfd ends[2] = {{link->socket.get(), POLLRDHUP, 0}, {link->process_watch.get(), POLLIN, 0}};
  ::poll(ends, link->process_watch ? 2 : 1, 0);
  if ((ends[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 ||
      (link->process_watch && ends[1].revents != 0)) {
    peer(done_copy.peer).pulled[done_copy.id] = done_copy.into;  // until the end is noticed
    return;
  }
  counts_.copied_bytes += done_copy.into->buffer.size();
  done(*done_copy.into);
  submit(done_copy.peer, Frame{Frame::Kind::taken, 0, 0, 0, done_copy.id, 0});
}

}  // namespace cairn
