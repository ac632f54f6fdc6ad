#include "comm/frame.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "comm/communicator.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t magic = 0x314e6343;  // "CcN1"

template <class Number>
void put(std::byte*& at, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) *at++ = static_cast<std::byte>(number >> (8 * i));
}

template <class Number>
Number take(const std::byte*& at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = static_cast<Number>(number | static_cast<Number>(*at++) << (8 * i));
  return number;
}

std::size_t most_bytes(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::hello:
    case Frame::Kind::welcome:
      return Frame::token_bytes;
    case Frame::Kind::message:
      return Frame::message_bytes_max;
    case Frame::Kind::offer:
      return Communicator::max_message_bytes;
    case Frame::Kind::segment:
      return Frame::segment_bytes_max;
    case Frame::Kind::cancel:
    case Frame::Kind::failed:
      return Frame::error_bytes_max;
    default:
      return 0;
  }
}

bool is_possible(const Frame& frame) {
  if (frame.bytes > most_bytes(frame.kind)) return false;
  switch (frame.kind) {
    case Frame::Kind::hello:
    case Frame::Kind::welcome:
      return frame.bytes == Frame::token_bytes;
    case Frame::Kind::message:
    case Frame::Kind::offer:
      return frame.subject <= static_cast<std::uint32_t>(Communicator::max_tag);
    case Frame::Kind::segment:
      return frame.bytes > 0;
    default:
      return true;
  }
}

}  // namespace

FrameHeader encode(const Frame& frame) {
  FrameHeader header{};
  std::byte* at = header.data();
  put(at, magic);
  put(at, static_cast<std::uint32_t>(frame.kind));
  put(at, frame.subject);
  put(at, frame.channel);
  put(at, frame.bytes);
  put(at, frame.id);
  put(at, frame.address);
  return header;
}

Result<Frame> decode(const FrameHeader& header) {
  const std::byte* at = header.data();
  const auto found_magic = take<std::uint32_t>(at);
  const auto kind = take<std::uint32_t>(at);
  if (found_magic != magic || kind < static_cast<std::uint32_t>(Frame::Kind::hello) ||
      kind > static_cast<std::uint32_t>(Frame::Kind::trace))
    return fail(Code::corrupt, "these bytes are not a message of Cairn");
  Frame frame;
  frame.kind = static_cast<Frame::Kind>(kind);
  frame.subject = take<std::uint32_t>(at);
  frame.channel = take<std::uint32_t>(at);
  frame.bytes = take<std::uint64_t>(at);
  frame.id = take<std::uint64_t>(at);
  frame.address = take<std::uint64_t>(at);
  if (!is_possible(frame))
    return fail(Code::corrupt, "a message of kind {} has values out of range", kind);
  return frame;
}

Blob encode_error(const Error& error) {
  const Bytes text = std::as_bytes(std::span(error.text));
  const Bytes kept = text.first(std::min(text.size(), Frame::error_bytes_max - 4));
  Blob payload(4 + kept.size());
  std::byte* at = payload.data();
  put(at, static_cast<std::uint32_t>(error.code));
  std::copy(kept.begin(), kept.end(), payload.begin() + 4);
  return payload;
}

Error decode_error(Bytes payload) {
  Error error{Code::io, "", -1};
  if (payload.size() < 4) return error;
  const std::byte* at = payload.data();
  const auto code = take<std::uint32_t>(at);
  if (code > 0 && code <= static_cast<std::uint32_t>(Code::not_copied))
    error.code = static_cast<Code>(code);
  const Bytes text = payload.subspan(4);
  error.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
  // It is printed, and belongs on one line.
  std::replace_if(
      error.text.begin(), error.text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return error;
}

}  // namespace cairn
