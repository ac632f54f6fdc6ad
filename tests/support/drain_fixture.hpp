// Datasets that a dead run had begun to copy, and the nodes that finish them.
#pragma once

#include "scavenge/drain.hpp"
#include "support/flush_in_flight.hpp"

namespace cairn {

class DrainFixture : public FlushInFlight {
 protected:
  using State = PartFlush::State;

  /// All processes die as soon as the plan is there and the ranks below `copied` have copied their
  /// parts.
  void plan_and_die(int dataset, int copied = 0) {
    run_well([&](PrefixRank& rank) {
      Flight flight = prepare(rank, dataset);
      const State until = rank.comm.rank() < copied ? State::staged : State::described;
      while (flight.part->state() < until || (flight.owner && !flight.owner->is_planned())) {
        if (flight.owner && !flight.owner->is_planned()) {
          ASSERT_TRUE(flight.owner->advance());
        }
        if (flight.part->state() < until) {
          ASSERT_TRUE(flight.part->advance());
        }
      }
    });
  }

  /// What a node with the caches of these ranks holds.
  std::vector<Remains> held(int dataset, const std::vector<int>& by) const {
    Remains remains;
    remains.uuid = info_of(dataset).uuid;
    for (const int rank : by) {
      HeldPart part;
      part.folder = cached(dataset, rank);
      part.owner = rank;
      part.own.push_back({PrefixFixture::record_of(info_of(dataset), rank), {}, true});
      remains.parts.push_back(std::move(part));
    }
    return {remains};
  }

  Result<std::vector<DrainedDataset>> drain_node(
      const std::vector<Remains>& on_node,
      const FileHook& hook = [](const FileOperation&) { return Status{}; },
      std::int64_t end_time_s = 0) {
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, hook);
    const auto clock = make_system_clock();
    const auto background = make_foreground();
    const PrefixFolder prefix_folder = folder();
    return drain(*files, *clock, prefix_folder, on_node,
                 {{{*background, 1, 1 << 20}, 0, end_time_s}, true}, nullptr);
  }

  void begin_anew() {
    std::filesystem::remove_all(prefix());
    std::filesystem::create_directories(prefix());
  }
};

}  // namespace cairn
