#include "comm/communicator.hpp"

#include <gtest/gtest.h>

#include "comm/alone.hpp"
#include "comm/communicator_checks.hpp"
#include "comm/team.hpp"

namespace cairn {
namespace {

class CommunicatorOverTeam : public testing::TestWithParam<std::tuple<int, Team::Mode>> {};

TEST_P(CommunicatorOverTeam, DoesWhatEveryCommunicatorMust) {
  const auto [size, mode] = GetParam();
  Team team(size, mode);
  EXPECT_NO_THROW(team.run(checks::all));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CommunicatorOverTeam,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 7, 8, 16),
                                          testing::Values(Team::Mode::buffered,
                                                          Team::Mode::rendezvous)));

TEST(Alone, DoesWhatEveryCommunicatorMust) {
  Alone alone;
  EXPECT_NO_THROW(checks::all(alone));
}

TEST(Alone, RefusesAMessageOfAnotherSizeThanItsReceiverExpects) {
  Alone alone;
  std::int32_t sent = 7;
  std::int64_t received = 0;
  Request request = alone.irecv(mutable_bytes_of(received), 0, 1);
  EXPECT_FALSE(request->test());
  Request ready = alone.isend(bytes_of(sent), 0, 1);
  EXPECT_THROW(request->test(), std::logic_error);
}

/// Notes how long each message is, and sends none.
class LengthsOnly final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Request isend(Bytes, int, int) override { return nullptr; }
  Request irecv(MutableBytes, int, int) override { return nullptr; }
  void idle() override {}
  void bcast(MutableBytes data, int) override { lengths.push_back(data.size()); }

  std::vector<std::size_t> lengths;
};

TEST(BcastBlob, SendsAnyLengthInMessagesOfAtMostTheLongest) {
  LengthsOnly comm;
  Blob blob(Communicator::max_message_bytes + 5);
  bcast_blob(comm, blob, 0);
  EXPECT_EQ(comm.lengths, (std::vector<std::size_t>{8, Communicator::max_message_bytes, 5}));
}

}  // namespace
}  // namespace cairn
