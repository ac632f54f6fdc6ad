// A process of a dead run hangs in a call. Meanwhile the next run goes back to an older dataset,
// and makes the one that the process was copying once more: the same number, name and file names,
// but other bytes. The process goes on before that is published, or afterwards.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <tuple>

#include "support/drain_fixture.hpp"

namespace cairn {
namespace {

/// What the next run does with what the dead one has begun.
enum class Leftover { finished, removed };
/// When the process goes on: the new files are staged, or have their names.
enum class Moment { staged, named };

class LateWriter : public DrainFixture,
                   public ::testing::WithParamInterface<std::tuple<Leftover, Moment>> {
 protected:
  using Writer = std::function<void(const FileHook&)>;

  /// Calls `hook` before each call that may hang.
  void drain_late(const FileHook& hook) { (void)drain_node(held(1, {1, 2}), hook); }
  void copy_late(const FileHook& hook);

  bool hangs(std::uint64_t step, const Writer& writer);
  void make_anew(const std::function<void()>& when_staged);
  void expect_made_anew(std::uint64_t step);

  static constexpr std::int64_t earlier_ns = 1'000'000'000;
  static constexpr std::int64_t later_ns = 2'000'000'000;
};

/// The process of rank 1. The others die when their parts are copied, so it publishes the dataset.
void LateWriter::copy_late(const FileHook& hook) {
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
        const bool is_asked = rank == 1 && has_begun && operation.path.starts_with(prefix());
        return is_asked ? hook(operation) : Status{};
      });
}

void LateWriter::make_anew(const std::function<void()>& when_staged) {
  modify_ns = later_ns;
  const std::string published = folder().dataset(info_of(made_anew + 1));
  run(
      [&](PrefixRank& rank) {
        const int own = rank.comm.rank();
        std::vector<CachedPart> parts;
        if (std::get<Leftover>(GetParam()) == Leftover::finished)
          parts.push_back({info_of(1).uuid, own, cached(1, own)});
        EXPECT_TRUE(tidy(rank.comm, rank.site, parts, Unfinished::removed));
        const Status flushed = flush_dataset(rank, made_anew + 1);
        EXPECT_TRUE(flushed) << flushed.error().text;
      },
      [&](int /*rank*/, const FileOperation& operation) -> Status {
        if (operation.name == "rename" && operation.to == published) when_staged();
        return {};
      });
}

/// False if the writer makes no call number `step`.
bool LateWriter::hangs(std::uint64_t step, const Writer& writer) {
  std::atomic<bool> has_come = false;
  std::atomic<bool> has_ended = false;
  std::atomic<bool> goes_on = false;
  std::thread late([&] {
    std::uint64_t calls = 0;
    writer([&](const FileOperation&) -> Status {
      if (calls++ != step) return {};
      has_come = true;
      while (!goes_on) std::this_thread::sleep_for(std::chrono::microseconds(50));
      return {};
    });
    has_ended = true;
  });
  while (!has_come && !has_ended) std::this_thread::sleep_for(std::chrono::microseconds(50));
  const auto let_it_go_on = [&] {
    goes_on = true;
    late.join();
  };
  if (has_come)
    make_anew([&] {
      if (std::get<Moment>(GetParam()) == Moment::staged) let_it_go_on();
    });
  if (late.joinable()) let_it_go_on();
  return has_come;
}

void LateWriter::expect_made_anew(std::uint64_t step) {
  for (int rank = 0; rank < ranks; ++rank)
    for (int file = 0; file < 2; ++file)
      ASSERT_TRUE(read_all(fmt::format("{}/ckpt/r{}/f{}", prefix(), rank, file)) ==
                  content_of(made_anew + 1, rank, file))
          << step << " r" << rank << " f" << file;
  ASSERT_EQ(fetch_again(made_anew + 1), "") << step;
}

TEST_P(LateWriter, ADrainChangesNoByteOfADatasetThatWasMadeAnew) {
  for (std::uint64_t step = 0;; ++step) {
    begin_anew();
    modify_ns = earlier_ns;
    plan_and_die(1, 1);
    if (!hangs(step, [this](const FileHook& hook) { drain_late(hook); })) {
      EXPECT_GT(step, 50U);
      return;
    }
    ASSERT_NO_FATAL_FAILURE(expect_made_anew(step));
  }
}

TEST_P(LateWriter, AProcessOfTheRunChangesNoByteOfADatasetThatWasMadeAnew) {
  for (std::uint64_t step = 0;; ++step) {
    begin_anew();
    modify_ns = earlier_ns;
    if (!hangs(step, [this](const FileHook& hook) { copy_late(hook); })) {
      EXPECT_GT(step, 20U);
      return;
    }
    ASSERT_NO_FATAL_FAILURE(expect_made_anew(step));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LateWriter,
                         ::testing::Combine(::testing::Values(Leftover::finished,
                                                              Leftover::removed),
                                            ::testing::Values(Moment::staged, Moment::named)),
                         [](const auto& info) {
                           const bool is_finished = std::get<0>(info.param) == Leftover::finished;
                           const bool is_staged = std::get<1>(info.param) == Moment::staged;
                           return fmt::format("{}{}", is_finished ? "Finished" : "Removed",
                                              is_staged ? "Staged" : "Named");
                         });

}  // namespace
}  // namespace cairn
