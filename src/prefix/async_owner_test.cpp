// What the owner of a flush in the background waits for, and what it learns of the others.
#include "support/flush_in_flight.hpp"

namespace cairn {
namespace {

using State = PartFlush::State;

class AsyncOwner : public FlushInFlight {
 protected:
  /// Until `part` has come so far; waits for the others.
  static void advance_to(PartFlush& part, State state) {
    while (part.state() < state) {
      const auto moved = part.advance();
      ASSERT_TRUE(moved) << moved.error().text;
      if (!*moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
};

/// From the plan on any process reads its part in them.
TEST_F(AsyncOwner, MakesNoPlanBeforeTheManifestsAreThere) {
  run_well([&](PrefixRank& rank) {
    const Flight flight = prepare(rank, 1);
    if (!flight.owner) return;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(flight.owner->advance());
    EXPECT_TRUE(flight.owner->is_begun());
    EXPECT_FALSE(flight.owner->is_planned());
    advance_to(*flight.part, State::described);
    ASSERT_TRUE(flight.owner->advance());
    EXPECT_TRUE(flight.owner->is_planned());
  });
}

/// Its last steps fail, or another run takes over: the copy is given up here, though it is there.
TEST_F(AsyncOwner, KnowsOfAGivenUpDatasetThatTheOthersHavePublished) {
  run_well([&](PrefixRank& rank) {
    const Flight flight = prepare(rank, 1);
    if (flight.owner) {
      ASSERT_TRUE(flight.owner->advance());
      advance_to(*flight.part, State::described);
      while (!flight.owner->is_planned()) ASSERT_TRUE(flight.owner->advance());
    }
    advance_to(*flight.part, State::published);
    if (!flight.owner) return;
    EXPECT_TRUE(rank.keeper->known().listing.empty());
    EXPECT_TRUE(flight.owner->take_in_if_published());
    ASSERT_EQ(rank.keeper->known().listing.size(), 1U);
    EXPECT_EQ(rank.keeper->known().listing.front().info.name, "ckpt.1");
  });
}

}  // namespace
}  // namespace cairn
