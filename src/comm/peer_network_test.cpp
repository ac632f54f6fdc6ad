#include "comm/peer_network.hpp"

#include <gtest/gtest.h>

#include "comm/communicator_checks.hpp"
#include "comm/team.hpp"

namespace cairn {
namespace {

class CommunicatorOverPeers : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(CommunicatorOverPeers, DoesWhatEveryCommunicatorMust) {
  const auto [size, over_tcp] = GetParam();
  Team team(size);
  PeerNetworkOptions options;
  options.avoid_local_sockets = over_tcp;
  EXPECT_NO_THROW(team.run([&](Communicator& comm) {
    auto network = PeerNetwork::open(comm, options);
    checks::require(network.has_value(), network ? "" : network.error().text);
    {
      const auto channel = (*network)->begin(1);
      checks::all(*channel);
    }
    comm.barrier();
    const Status closed = (*network)->close();
    checks::require(closed.has_value(), closed ? "" : closed.error().text);
  }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CommunicatorOverPeers,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 7, 8, 16),
                                          testing::Bool()));

}  // namespace
}  // namespace cairn
