#include "session/flush_queue.hpp"

#include "support/flush_in_flight.hpp"

namespace cairn {
namespace {

class FlushQueues : public FlushInFlight {};

/// Another flight goes first from then on, and the rank has nothing more to copy for this one.
TEST_F(FlushQueues, APartThatIsCopiedStaysSoWhenItsFlightIsTakenOut) {
  run_well([&](PrefixRank& rank) {
    std::atomic<std::uint64_t> copied = 0;
    rank.site.copied = &copied;
    auto prepared = prepare(rank, 1);
    const auto flight = std::make_shared<cairn::Flight>();
    flight->dataset = info_of(1);
    flight->part = std::move(prepared.part);
    flight->owner = std::move(prepared.owner);
    flight->copied = &copied;
    const auto clock = make_system_clock();
    const auto foreground = make_foreground();
    Pace pace(*clock, 0);
    FlushQueue queue(*foreground, *clock, pace);
    queue.add(flight);
    while (flight->part->state() <= PartFlush::State::planned) queue.help();
    ASSERT_GT(flight->part_bytes(), 0U);
    EXPECT_EQ(flight->copied_bytes(), flight->part_bytes());
    ASSERT_TRUE(queue.stop(0));
    EXPECT_EQ(queue.abandon().size(), 1U);
    EXPECT_EQ(flight->copied_bytes(), flight->part_bytes());
  });
}

}  // namespace
}  // namespace cairn
