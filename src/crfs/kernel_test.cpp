// The features in the answer to the kernel's first request.
#include "crfs/kernel.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <tuple>

namespace cairn {
namespace {

struct Request {
  fuse_in_header header = {};
  fuse_init_in first = {};
};

Request first_request(std::uint32_t offered) {
  Request request;
  request.header.opcode = FUSE_INIT;
  request.header.unique = 7;
  request.first.flags = offered;
  return request;
}

fuse_init_out answer(Promises& promises, std::uint64_t unique, int error = 0) {
  fuse_out_header header = {};
  header.unique = unique;
  header.error = error;
  fuse_init_out out = {};
  out.flags = FUSE_BIG_WRITES;
  promises.put_in(header, mutable_bytes_of(out));
  return out;
}

std::uint32_t answered(Promises& promises, std::uint64_t unique, int error = 0) {
  return answer(promises, unique, error).flags;
}

constexpr std::uint32_t promised = FUSE_BIG_WRITES | FUSE_HANDLE_KILLPRIV_V2;

TEST(Promises, AreMadeOnceIfTheKernelKnowsThem) {
  Promises promises;
  promises.see(bytes_of(first_request(FUSE_HANDLE_KILLPRIV_V2 | FUSE_ASYNC_READ)));
  EXPECT_EQ(answered(promises, 6), FUSE_BIG_WRITES);  // to another request
  EXPECT_EQ(answered(promises, 7), promised);
  EXPECT_EQ(answered(promises, 7), FUSE_BIG_WRITES);
}

TEST(Promises, AreNotMadeToAnOldKernel) {
  Promises promises;
  promises.see(bytes_of(first_request(FUSE_ASYNC_READ)));
  EXPECT_EQ(answered(promises, 7), FUSE_BIG_WRITES);
}

TEST(Promises, AnErrorIsPassedOn) {
  Promises promises;
  promises.see(bytes_of(first_request(FUSE_HANDLE_KILLPRIV_V2)));
  EXPECT_EQ(answered(promises, 7, -EPROTO), FUSE_BIG_WRITES);
}

TEST(Promises, OtherRequestsAndShortOnesAreLeftAlone) {
  Promises promises;
  Request request = first_request(FUSE_HANDLE_KILLPRIV_V2);
  promises.see(bytes_of(request.header));
  request.header.opcode = FUSE_WRITE;
  promises.see(bytes_of(request));
  EXPECT_EQ(answered(promises, 7), FUSE_BIG_WRITES);
}

struct Offer {
  bool wanted = true;
  std::uint32_t minor = 41;
  std::uint32_t features = FUSE_INIT_EXT;
  std::uint32_t more_features = 1U << 5;  // passthrough is bit 37 of both together
};

/// The three fields that ask for it.
std::tuple<bool, std::uint32_t, std::uint32_t> asked(const Offer& offer) {
  Promises promises;
  promises.want_passthrough(offer.wanted);
  Request request = first_request(offer.features);
  request.first.flags2 = offer.more_features;
  request.first.minor = offer.minor;
  promises.see(bytes_of(request));
  const fuse_init_out out = answer(promises, 7);
  EXPECT_EQ(promises.has_passthrough(), out.flags2 != 0);
  std::uint32_t stack_depth = 0;  // behind flags2, also where the headers have no name for it
  std::memcpy(&stack_depth,
              reinterpret_cast<const std::byte*>(&out) + offsetof(fuse_init_out, flags2) + 4, 4);
  return {(out.flags & FUSE_INIT_EXT) != 0, out.flags2, stack_depth};
}

TEST(Promises, PassthroughIsRequestedIfItIsWantedAndSupported) {
  EXPECT_EQ(asked({}), std::tuple(true, 1U << 5, 1U));
  const std::tuple none(false, 0U, 0U);
  EXPECT_EQ(asked({.wanted = false}), none);
  EXPECT_EQ(asked({.more_features = 1U << 4}), none);
  EXPECT_EQ(asked({.minor = 40}), none);    // does not update the length of files it writes
  EXPECT_EQ(asked({.features = 0}), none);  // an old kernel, where the field means nothing
}

TEST(Promises, PagesAreDroppedFromLinux66On) {
  Promises promises;
  EXPECT_FALSE(promises.drops_pages());
  for (const std::uint32_t minor : {38U, 39U}) {
    Request request = first_request(FUSE_INIT_EXT);
    request.first.minor = minor;
    promises.see(bytes_of(request));
    EXPECT_EQ(promises.drops_pages(), minor == 39);
  }
}

}  // namespace
}  // namespace cairn
