// What is put into the answer to the kernel's first request.
#include "crfs/kernel.hpp"

#include <gtest/gtest.h>

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

std::uint32_t answered(Promises& promises, std::uint64_t unique, int error = 0) {
  fuse_out_header header = {};
  header.unique = unique;
  header.error = error;
  fuse_init_out out = {};
  out.flags = FUSE_BIG_WRITES;
  promises.put_in(header, mutable_bytes_of(out));
  return out.flags;
}

constexpr std::uint32_t promised = FUSE_BIG_WRITES | FUSE_HANDLE_KILLPRIV_V2;

TEST(Promises, AreMadeOnceWhereTheKernelKnowsThem) {
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

}  // namespace
}  // namespace cairn
