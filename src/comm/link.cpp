#include "comm/link.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

/// EPIPE only says that the end has come before.
bool is_of_network(int error_number) {
  return error_number != EPIPE && error_number != EFAULT && error_number != ENOBUFS &&
         error_number != ENOMEM;
}

}  // namespace

Link::Link(std::uint64_t number_of_link, Socket its_socket, Stage begun_as,
           const std::function<std::size_t(std::size_t)>& limit, Time now)
    : number(number_of_link),
      socket(std::move(its_socket)),
      stage(begun_as),
      begun(now),
      last_heard(now),
      last_sent(now),
      limit_(limit) {}

// --- out ---

void Link::put(const Frame& frame, Bytes payload, Operation* owner) {
  output_.push_back(Output{encode(frame), payload, {}, owner, true, 0});
}

void Link::put(const Frame& frame, Blob payload) {
  Output& output = output_.emplace_back(Output{encode(frame), {}, std::move(payload)});
  output.payload = output.owned;
}

void Link::put_in_segments(Operation& send) {
  send.filled = 0;
  streams_.push_back(&send);
}

/// One of each message in turn.
void Link::next_segment() {
  Operation& send = *streams_.front();
  streams_.pop_front();
  const std::size_t bytes = std::min(send.data.size() - send.filled, Frame::segment_bytes_max);
  Frame frame{Frame::Kind::segment, send.tag, send.channel, bytes, send.id, 0};
  Output& output =
      output_.emplace_back(Output{encode(frame), send.data.subspan(send.filled, bytes), {}, &send});
  send.filled += bytes;
  output.is_last_of_owner = send.filled == send.data.size();
  if (!output.is_last_of_owner) streams_.push_back(&send);
}

int Link::flush(const std::function<void(Operation&)>& done) {
  while (has_output()) {
    if (output_.empty()) next_segment();
    Output& first = output_.front();
    const std::size_t header_left = first.header.size() - std::min(first.sent, first.header.size());
    const std::size_t payload_sent = first.sent - (first.header.size() - header_left);
    const std::size_t payload_left = first.payload.size() - payload_sent;
    std::size_t allowed = header_left + payload_left;
    if (limit_) allowed = std::min(allowed, limit_(allowed));
    iovec pieces[2];
    pieces[0] = {first.header.data() + (first.header.size() - header_left),
                 std::min(header_left, allowed)};
    pieces[1] = {const_cast<std::byte*>(first.payload.data()) + payload_sent,
                 allowed - pieces[0].iov_len};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (sent < 0) {
      // The kernel reports an error once; a read after that finds an end like any other.
      if (is_of_network(errno)) broken_by = errno;
      return errno;
    }
    first.sent += static_cast<std::size_t>(sent);
    if (first.sent < first.header.size() + first.payload.size()) continue;
    Operation* const owner = first.is_last_of_owner ? first.owner : nullptr;
    output_.pop_front();
    if (owner != nullptr) done(*owner);
  }
  return 0;
}

void Link::own_payload(Output& output) {
  output.owned.assign(output.payload.begin(), output.payload.end());
  output.payload = output.owned;
  output.owner = nullptr;
}

void Link::forget(const Operation& operation) {
  for (Output& output : output_)
    if (output.owner == &operation) own_payload(output);
  std::erase(streams_, &operation);
}

void Link::drop_output() {
  streams_.clear();
  while (output_.size() > 1 || (!output_.empty() && output_.front().sent == 0)) output_.pop_back();
}

// --- in ---

Link::End Link::read(LinkReader& reader, Time now) {
  constexpr int rounds_max = 16;
  for (int round = 0; round < rounds_max; ++round) {
    const std::size_t wanted = frame_ ? target_.size() - target_filled_ : 0;
    const bool directly = wanted > staged_.size();
    const MutableBytes into =
        directly ? target_.subspan(target_filled_) : MutableBytes(staged_).subspan(staged_bytes_);
    const ssize_t got = ::recv(socket.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (got == 0) return broken_by == 0 ? End::closed : End::broken;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return End::none;
    if (got < 0) {
      broken_by = errno;
      return End::broken;
    }
    last_heard = now;
    Bytes input(staged_.data(), staged_bytes_);
    if (directly) {
      target_filled_ += static_cast<std::size_t>(got);
    } else {
      input = Bytes(staged_.data(), staged_bytes_ + static_cast<std::size_t>(got));
    }
    if (!consume(reader, input)) return End::rubbish;
    std::memmove(staged_.data(), input.data(), input.size());
    staged_bytes_ = input.size();
    if (static_cast<std::size_t>(got) < into.size()) return End::none;
  }
  return End::more;
}

/// Takes whole frames, and the payload as far as it is there, from the front of `input`.
Status Link::consume(LinkReader& reader, Bytes& input) {
  while (true) {
    if (!frame_) {
      if (input.size() < Frame::header_bytes) return {};
      FrameHeader header;
      std::copy_n(input.begin(), header.size(), header.begin());
      CAIRN_ASSIGN(frame_, decode(header));
      input = input.subspan(header.size());
      CAIRN_TRY(begin_payload(reader));
    }
    const std::size_t bytes = std::min(target_.size() - target_filled_, input.size());
    if (bytes > 0) std::memcpy(target_.data() + target_filled_, input.data(), bytes);
    target_filled_ += bytes;
    input = input.subspan(bytes);
    if (target_filled_ < target_.size()) return {};
    const Frame frame = *std::exchange(frame_, std::nullopt);
    CAIRN_TRY(reader.received(*this, frame, target_));
    target_ = {};
    kept_ = {};
  }
}

Status Link::begin_payload(LinkReader& reader) {
  const std::size_t bytes = frame_->payload_bytes();
  target_filled_ = 0;
  // Before the other side has shown its token it gets no memory worth mentioning.
  if (stage != Stage::open && bytes > Frame::error_bytes_max)
    return fail(Code::corrupt, "a payload before the greeting");
  target_ = bytes == 0 ? MutableBytes() : reader.place_for(*this, *frame_);
  if (target_.size() == bytes) return {};
  kept_.resize(bytes);
  target_ = kept_;
  return {};
}

void Link::divert(MutableBytes buffer) {
  if (!frame_ || buffer.empty() || target_.data() < buffer.data() ||
      target_.data() >= buffer.data() + buffer.size())
    return;
  kept_.assign(target_.begin(), target_.end());
  target_ = kept_;
}

}  // namespace cairn
