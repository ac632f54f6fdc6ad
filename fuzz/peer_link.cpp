// What a process of a PeerNetwork gets over a connection: frames, in pieces of any size.
#include "comm/link.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "decoder.hpp"

namespace cairn::fuzz {
namespace {

/// Has a buffer of its own for some payloads, as a receive that waits.
class Frames final : public LinkReader {
 public:
  MutableBytes place_for(Link&, const Frame& frame) override {
    if (frame.subject % 2 == 0) return {};
    buffer_.assign(frame.payload_bytes(), std::byte{0});
    return buffer_;
  }

  Status received(Link&, const Frame& frame, Bytes payload) override {
    expect(payload.size() == frame.payload_bytes(), "a payload is as long as its header says");
    expect(payload.size() <= Frame::segment_bytes_max, "no payload is longer than a segment");
    const FrameHeader header = encode(frame);
    taken.insert(taken.end(), header.begin(), header.end());
    taken.insert(taken.end(), payload.begin(), payload.end());
    if (frame.kind == Frame::Kind::failed || frame.kind == Frame::Kind::cancel) {
      const Error error = decode_error(payload);
      expect(error.code != Code::ok, "an error has a code");
      expect(error.text.find('\n') == std::string::npos, "an error has one line");
    }
    return {};
  }

  Blob taken;  ///< what it has got, encoded

 private:
  Blob buffer_;
};

Blob frame_of(const Frame& frame, std::string_view payload) {
  const FrameHeader header = encode(frame);
  Blob bytes(header.begin(), header.end());
  const Blob rest = blob_of(payload);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

}  // namespace

/// The first byte is the size of the pieces.
void check(Bytes input) {
  if (input.empty()) return;
  const std::size_t piece_bytes = std::size_t{1} + std::to_integer<std::size_t>(input[0]) * 37;
  const Bytes all = input.subspan(1);
  int ends[2];
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
  const Socket writer(ends[0]);
  const std::function<std::size_t(std::size_t)> no_limit;
  Link link(1, Socket(ends[1]), Link::Stage::open, no_limit, {});
  Frames frames;
  for (Bytes rest = all; !rest.empty();) {
    const Bytes piece = rest.first(std::min(rest.size(), piece_bytes));
    expect(::send(writer.get(), piece.data(), piece.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(piece.size()),
           "a piece can be sent");
    rest = rest.subspan(piece.size());
    Link::End end = Link::End::more;
    while (end == Link::End::more) end = link.read(frames, {});
    if (end != Link::End::none) break;
  }
  expect(frames.taken.size() <= all.size() &&
             std::equal(frames.taken.begin(), frames.taken.end(), all.begin()),
         "the frames are the bytes that were sent");
}

std::vector<Blob> seeds() {
  const std::string text(100, 'x');
  const std::string token(Frame::token_bytes, 't');
  const std::string long_text(2500, 'y');
  const Blob frames[] = {
      frame_of({Frame::Kind::hello, 1, 2, token.size(), 0, 77}, token),
      frame_of({Frame::Kind::message, 7, 1, text.size(), 0, 0}, text),
      frame_of({Frame::Kind::message, 8, 1, long_text.size(), 0, 0}, long_text),
      frame_of({Frame::Kind::offer, 7, 1, 1 << 20, 3, 4096}, ""),
      frame_of({Frame::Kind::segment, 7, 1, text.size(), 3, 0}, text),
      frame_of({Frame::Kind::credit, 0, 0, 0, 300000, 0}, ""),
      frame_of({Frame::Kind::failed, 3, 0, 13, 1, 0}, std::string_view("\5\0\0\0disk gone", 13)),
      frame_of({Frame::Kind::bye, 0, 0, 0, 0, 0}, ""),
  };
  std::vector<Blob> seeds;
  for (const char pieces : {'\0', '\1', '\xff'}) {
    Blob seed = blob_of(std::string_view(&pieces, 1));
    for (const Blob& frame : frames) seed.insert(seed.end(), frame.begin(), frame.end());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace cairn::fuzz
