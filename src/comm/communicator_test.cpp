#include "comm/communicator.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cairn
