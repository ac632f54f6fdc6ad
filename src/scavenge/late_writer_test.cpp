// A process of a dead run hangs in a call. Meanwhile the next run goes back to an older dataset,
// and makes the one that the process was copying once more: the same number, name and file names,
// but other bytes. Then the process goes on.
#include "support/drain_fixture.hpp"

namespace cairn {
namespace {

/// What the next run does with what the dead one has begun.
enum class Leftover { finished, removed };

class LateWriter : public DrainFixture, public ::testing::WithParamInterface<Leftover> {
 protected:
  void make_anew() {
    modify_ns = later_ns;
    run([&](PrefixRank& rank) {
      const int own = rank.comm.rank();
      std::vector<CachedPart> parts;
      if (GetParam() == Leftover::finished) parts.push_back({info_of(1).uuid, own, cached(1, own)});
      EXPECT_TRUE(tidy(rank.comm, rank.site, parts, Unfinished::removed));
      const Status flushed = flush_dataset(rank, made_anew + 1);
      EXPECT_TRUE(flushed) << flushed.error().text;
    });
  }

  void expect_made_anew(std::uint64_t step) {
    for (int rank = 0; rank < ranks; ++rank)
      for (int file = 0; file < 2; ++file)
        ASSERT_TRUE(read_all(fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file)) ==
                    content_of(made_anew + 1, rank, file))
            << step << " r" << rank << " f" << file;
    ASSERT_EQ(fetch_again(made_anew + 1), "") << step;
  }

  /// False if the drain makes no call number `step`.
  bool drain_hangs(std::uint64_t step) {
    bool reached = false;
    begin_anew();
    modify_ns = earlier_ns;
    plan_and_die(1, 1);
    (void)drain_node(held(1, {1, 2}), [&](const FileOperation& operation) -> Status {
      if (reached || operation.index != step) return {};
      reached = true;
      make_anew();
      return {};
    });
    return reached;
  }

  bool process_hangs(std::uint64_t step);

  static constexpr std::int64_t earlier_ns = 1'000'000'000;
  static constexpr std::int64_t later_ns = 2'000'000'000;
};

/// That of rank 1, in its call number `step` in the prefix directory since the plan is there. The
/// others die when their parts are copied, so rank 1 publishes the dataset. False if it makes no
/// such call.
bool LateWriter::process_hangs(std::uint64_t step) {
  begin_anew();
  modify_ns = earlier_ns;
  std::uint64_t calls = 0;
  bool has_begun = false;
  run(
      [&](PrefixRank& rank) {
        Flight flight = prepare(rank, 1);
        const bool is_late = rank.comm.rank() == 1;
        if (!is_late)
          (void)fly(flight, [&] {
            return flight.part->state() == State::staged &&
                   (!flight.owner || flight.owner->is_planned());
          });
        rank.comm.barrier();
        if (is_late) has_begun = true;
        Result<bool> moved = is_late;
        while (moved && *moved) moved = flight.part->advance();
      },
      [&](int rank, const FileOperation& operation) -> Status {
        if (rank != 1 || !has_begun || !operation.path.starts_with(prefix())) return {};
        if (calls++ == step) make_anew();
        return {};
      });
  return calls > step;
}

TEST_P(LateWriter, ADrainChangesNoByteOfADatasetThatWasMadeAnew) {
  std::uint64_t step = 0;
  for (; drain_hangs(step); ++step) ASSERT_NO_FATAL_FAILURE(expect_made_anew(step));
  EXPECT_GT(step, 50U);
}

TEST_P(LateWriter, AProcessOfTheRunChangesNoByteOfADatasetThatWasMadeAnew) {
  std::uint64_t step = 0;
  for (; process_hangs(step); ++step) ASSERT_NO_FATAL_FAILURE(expect_made_anew(step));
  EXPECT_GT(step, 20U);
}

INSTANTIATE_TEST_SUITE_P(All, LateWriter, ::testing::Values(Leftover::finished, Leftover::removed),
                         [](const auto& info) {
                           return info.param == Leftover::finished ? "Finished" : "Removed";
                         });

}  // namespace
}  // namespace cairn
