#include "comm/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "comm/communicator.hpp"

namespace cairn {
namespace {

using Kind = Frame::Kind;

TEST(Frames, AreDecodedToWhatWasEncoded) {
  const Frame frames[] = {
      {Kind::hello, 7, 9, Frame::token_bytes, 0, 0x7fff12345678},
      {Kind::message, 15001, 4, Frame::message_bytes_max, 0, 0},
      {Kind::offer, 16000, 0xffffffff, Communicator::max_message_bytes, ~std::uint64_t{0}, 1},
      {Kind::segment, 0, 1, 1, 5, 0},
      {Kind::credit, 0, 0, 0, 123456789012345, 0},
      {Kind::failed, 3, 0, Frame::error_bytes_max, 0, 0},
      {Kind::bye, 0, 0, 0, 0, 0},
      {Kind::trace, 3, 0, 0, 16, 10000},
  };
  for (const Frame& frame : frames) {
    const Result<Frame> decoded = decode(encode(frame));
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_EQ(*decoded, frame);
  }
}

TEST(Frames, OutOfRangeAreNotAccepted) {
  const Frame frames[] = {
      {Kind::hello, 7, 9, Frame::token_bytes - 1, 0, 0},
      {Kind::welcome, 7, 9, Frame::token_bytes + 1, 0, 0},
      {Kind::message, 16001, 4, 0, 0, 0},
      {Kind::message, 1, 4, Frame::message_bytes_max + 1, 0, 0},
      {Kind::offer, 1, 4, Communicator::max_message_bytes + 1, 0, 0},
      {Kind::segment, 0, 1, 0, 5, 0},
      {Kind::segment, 0, 1, Frame::segment_bytes_max + 1, 5, 0},
      {Kind::failed, 3, 0, Frame::error_bytes_max + 1, 0, 0},
      {Kind::bye, 0, 0, 1, 0, 0},
      {Kind::trace, 3, 0, 1, 16, 10000},
      {static_cast<Kind>(0), 0, 0, 0, 0, 0},
      {static_cast<Kind>(15), 0, 0, 0, 0, 0},
  };
  for (const Frame& frame : frames) {
    const Result<Frame> decoded = decode(encode(frame));
    ASSERT_FALSE(decoded) << static_cast<int>(frame.kind) << " with " << frame.bytes;
    EXPECT_EQ(decoded.error().code, Code::corrupt);
  }
}

TEST(Frames, OfRandomBytesNeverAskForMoreThanTheirKindMay) {
  std::mt19937_64 random(28);
  int accepted = 0;
  for (int i = 0; i < 300000; ++i) {
    FrameHeader header = encode({static_cast<Kind>(1 + random() % 14), 0, 0, 0, 0, 0});
    const std::size_t first = i % 3 == 0 ? 0 : 8;  // else never past the magic
    for (std::size_t at = first; at < header.size(); ++at)
      if (random() % 4 == 0) header[at] = static_cast<std::byte>(random() % 3 ? random() : 0);
    const Result<Frame> decoded = decode(header);
    if (!decoded) continue;
    ++accepted;
    EXPECT_LE(decoded->payload_bytes(), Frame::segment_bytes_max);
    EXPECT_EQ(encode(*decoded), header);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Frames, CarryErrors) {
  const Error sent{Code::no_space, "disk full", 3};
  const Error arrived = decode_error(encode_error(sent));
  EXPECT_EQ(arrived.code, sent.code);
  EXPECT_EQ(arrived.text, sent.text);
  const Error long_one{Code::io, std::string(5000, 'x'), 3};
  EXPECT_EQ(encode_error(long_one).size(), Frame::error_bytes_max);
  EXPECT_EQ(decode_error(encode_error(Error{Code::io, "a\nb\033[1m", -1})).text, "a?b?[1m");
  std::mt19937 random(29);
  for (int i = 0; i < 10000; ++i) {
    Blob rubbish(random() % 40);
    for (std::byte& byte : rubbish) byte = static_cast<std::byte>(random());
    EXPECT_NE(decode_error(rubbish).code, Code::ok);
  }
}

}  // namespace
}  // namespace cairn
