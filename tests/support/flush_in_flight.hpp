// Datasets that the processes of a run copy to the prefix directory without messages.
#pragma once

#include <thread>

#include "prefix/async_flush.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {

class FlushInFlight : public PrefixFixture {
 protected:
  /// What one rank has of a dataset that is to be flushed.
  struct Flight {
    std::unique_ptr<PartFlush> part;
    std::unique_ptr<OwnerFlush> owner;

    bool is_over() const {
      return part->state() == PartFlush::State::settled && (!owner || owner->is_settled());
    }
    Result<bool> advance() {
      bool moved = false;
      if (owner) {
        CAIRN_ASSIGN(moved, owner->advance());
      }
      CAIRN_ASSIGN(const bool own, part->advance());
      return moved || own;
    }
  };

  /// Collective. `books`: what the owner does before and after.
  Flight prepare(PrefixRank& rank, int dataset, OwnerFlush::Books books = no_books()) const {
    const RankRecord record = write_part(rank, dataset);
    const Deal deal(ranks, ranks);
    std::vector<PartFlush::WrittenManifest> manifests;
    EXPECT_TRUE(gather_manifests(rank.comm, deal, dealt_records(rank.comm, deal, {&record, 1}),
                                 [&](std::uint32_t number, Blob content) {
                                   manifests.push_back({number, std::move(content)});
                                 }));
    const FlushTotals totals = totals_of(rank.comm, {&record, 1});
    Flight flight;
    flight.part = std::make_unique<PartFlush>(
        rank.site, record,
        CachedPart{record.dataset.uuid, record.rank, cached(dataset, record.rank)}, manifests);
    if (rank.keeper)
      flight.owner = std::make_unique<OwnerFlush>(
          rank.site, cairn::record_of(record.dataset, "job"), totals, std::move(books));
    return flight;
  }

  static OwnerFlush::Books no_books() {
    return {[](Communicator&) { return Status{}; }, [] { return Status{}; },
            [](Communicator&, const FlushAccount&) {}};
  }

  /// Until it is over, or `ends` says so; errors are tried again, and counted.
  int fly(
      Flight& flight, const std::function<bool()>& ends = [] { return false; }) const {
    int errors = 0;
    while (!flight.is_over() && !ends()) {
      const auto moved = flight.advance();
      if (!moved) ++errors;
      if (errors > 100) {
        ADD_FAILURE() << moved.error().text;
        break;
      }
      if (!moved || !*moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return errors;
  }

  bool is_published(int dataset) const {
    return std::filesystem::exists(DatasetFolder::record(folder().dataset(info_of(dataset))));
  }
};

}  // namespace cairn
