// What the processes of a PeerNetwork send each other: frames of a header and a payload.
//
// A header has 40 bytes, little-endian: magic (4), kind (1), zeros (3), subject (4), channel (4),
// bytes (8), id (8), address (8). Whatever comes from a socket goes through decode(), which accepts
// only what a process of this version can have sent.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

struct Frame {
  enum class Kind : std::uint8_t {
    hello = 1,  ///< of rank `subject`, which has its token at `address`, to rank `channel`
    welcome,    ///< the answer to hello, with the same fields
    crossed,    ///< the answer to hello of a rank to which a connection is being made already
    message,    ///< a whole message with tag `subject`
    offer,      ///< a message with tag `subject` that lies at `address` of the sender, under `id`
    pull,       ///< the sender of offer `id` must send it in segments
    segment,    ///< the next piece of offer `id`
    taken,      ///< the receiver has copied offer `id`
    credit,     ///< the receiver has room for `id` more bytes of messages
    beat,       ///< a sign of life
    cancel,     ///< rank `subject` has left `channel`; the payload is an error
    failed,     ///< rank `subject` is lost, with `id` 1 has died; the payload is an error
    bye,        ///< nothing follows
    trace,  ///< report whom rank `subject` has waited for, for `address` ms; go on to `id` ranks
  };

  Kind kind = Kind::beat;
  std::uint32_t subject = 0;
  std::uint32_t channel = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  std::uint64_t address = 0;

  bool operator==(const Frame&) const = default;

  /// Of the bytes behind the header.
  std::size_t payload_bytes() const {
    return kind == Kind::offer ? 0 : static_cast<std::size_t>(bytes);
  }

  static constexpr std::size_t header_bytes = 40;
  static constexpr std::size_t token_bytes = 16;
  /// Longer messages are offered, so that the receiver never has to keep them.
  static constexpr std::size_t message_bytes_max = 32 << 10;
  /// Other frames have to wait for no more than that.
  static constexpr std::size_t segment_bytes_max = 256 << 10;
  static constexpr std::size_t error_bytes_max = 1024;
};

using FrameHeader = std::array<std::byte, Frame::header_bytes>;

FrameHeader encode(const Frame& frame);
/// Fails with corrupt.
Result<Frame> decode(const FrameHeader& header);

/// An error as the payload of a frame; a long text is cut.
Blob encode_error(const Error& error);
/// Of any bytes.
Error decode_error(Bytes payload);

}  // namespace cairn
