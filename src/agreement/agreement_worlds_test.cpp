// Every order in which the ranks of small programs and the rounds of the agreement can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agreement/step_agreement.hpp"

namespace cairn {
namespace {

/// What a rank does next. Its step is 0 where it ends.
struct Event {
  enum class Kind { open, close, leave_out, end } kind = Kind::end;
  std::int64_t step = 0;
  std::string shape{};

  auto operator<=>(const Event&) const = default;
};
using Schedule = std::vector<Event>;

Schedule& add(Schedule& schedule, std::int64_t step, const std::vector<std::string>& shapes) {
  for (const std::string& shape : shapes) {
    schedule.push_back({Event::Kind::open, step, shape});
    schedule.push_back({Event::Kind::close, step, shape});
  }
  return schedule;
}

/// The shapes that a rank writes in steps 1, 2 and so on, and its end.
Schedule writes(const std::vector<std::vector<std::string>>& steps) {
  Schedule schedule;
  for (std::size_t i = 0; i < steps.size(); ++i)
    add(schedule, static_cast<std::int64_t>(i) + 1, steps[i]);
  schedule.push_back({});
  return schedule;
}

/// A program; and which event of a rank may come next, given how far all ranks are.
struct Program {
  std::vector<Schedule> ranks;
  std::function<bool(const Program&, const std::vector<std::size_t>& done, std::size_t rank)> may;
  bool names_repeat = false;  ///< a step overwrites the files of the one before

  bool has_left(std::size_t rank, std::size_t done, std::int64_t step) const {
    return std::any_of(ranks[rank].begin() + static_cast<std::ptrdiff_t>(done), ranks[rank].end(),
                       [step](const Event& event) { return event.step == step; });
  }
  bool is_complete(const std::vector<std::size_t>& done, std::int64_t step) const {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (has_left(rank, done[rank], step)) return false;
    return true;
  }
};

/// No rank begins a step, or ends, before all ranks have finished the step before.
bool in_step(const Program& program, const std::vector<std::size_t>& done, std::size_t rank) {
  const Event& next = program.ranks[rank][done[rank]];
  for (std::int64_t step = 1; next.kind == Event::Kind::end || step < next.step; ++step) {
    if (!program.is_complete(done, step)) return false;
    if (step > 5) break;
  }
  return true;
}

/// The same for the first step; afterwards each rank goes on by itself.
bool first_in_step(const Program& program, const std::vector<std::size_t>& done, std::size_t rank) {
  const Event& next = program.ranks[rank][done[rank]];
  return next.step == 1 || program.is_complete(done, 1);
}

bool alone(const Program&, const std::vector<std::size_t>&, std::size_t) { return true; }

/// Where the ranks are in a round of the agreement: each does these one after the other, and the
/// program goes on in between.
enum class Phase { looks, reports, concludes };

struct RankState {
  std::size_t done = 0;  ///< events
  Phase phase = Phase::looks;
  StepTracker tracker;
  StepAgreement agreement;
  OldestSteps oldest{};
  StepFacts facts{};
  std::size_t rounds = 0;
  std::set<std::int64_t> linked{};       ///< steps whose files a dataset has
  std::set<std::int64_t> overwritten{};  ///< before that

  auto operator<=>(const RankState&) const = default;
};

struct World {
  std::vector<RankState> ranks;
  std::set<std::int64_t> certain;  ///< and not withdrawn
  std::set<std::int64_t> stale;    ///< written to after they were certain

  auto operator<=>(const World&) const = default;
};

/// What may be true of all worlds of a program.
struct Found {
  bool wrong_certain = false;      ///< a step was certain before all its files were closed
  bool wrong_provisional = false;  ///< as all ranks had reported
  bool withdrawn_certain = false;
  std::set<std::int64_t> given_up;
  /// The certain steps when nothing can happen any more, with files that were not overwritten.
  std::set<std::set<std::int64_t>> ends;
  bool wrong_end = false;  ///< one of them was written to afterwards
  std::size_t worlds = 0;
};

class Explorer {
 public:
  explicit Explorer(Program program) : program_(std::move(program)) {}

  Found run() {
    World first;
    first.ranks.resize(program_.ranks.size());
    visit(first);
    while (!waiting_.empty()) {
      const World world = std::move(waiting_.front());
      waiting_.pop_front();
      expand(world);
    }
    found_.worlds = seen_.size();
    return found_;
  }

 private:
  void visit(const World& world) {
    if (seen_.insert(world).second) waiting_.push_back(world);
  }

  static std::vector<std::size_t> done_of(const World& world) {
    std::vector<std::size_t> done;
    for (const RankState& rank : world.ranks) done.push_back(rank.done);
    return done;
  }

  void expand(const World& world) {
    const auto done = done_of(world);
    bool all_ended = true;
    for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
      if (done[rank] < program_.ranks[rank].size()) {
        all_ended = false;
        if (program_.may(program_, done, rank)) act(world, rank);
      }
      communicate(world, rank);
    }
    if (all_ended && is_settled(world)) note_end(world);
  }

  void act(World world, std::size_t rank) {
    RankState& state = world.ranks[rank];
    const Event& event = program_.ranks[rank][state.done++];
    if (world.certain.contains(event.step)) world.stale.insert(event.step);
    if (program_.names_repeat && event.kind == Event::Kind::open) overwrite(state, event.step - 1);
    if (event.kind == Event::Kind::open) state.tracker.opened({event.step}, event.shape);
    if (event.kind == Event::Kind::leave_out) state.tracker.left_out({event.step}, event.shape);
    if (event.kind == Event::Kind::close) state.tracker.closed({event.step}, event.shape);
    if (event.kind == Event::Kind::end) state.tracker.ended();
    visit(world);
  }

  static void overwrite(RankState& state, std::int64_t step) {
    if (step < 1 || state.linked.contains(step)) return;
    state.overwritten.insert(step);
    state.tracker.lost(step, Loss::overwritten);
  }

  /// One rank's next part in a round. It may reduce once all ranks have given theirs.
  void communicate(World world, std::size_t rank) {
    RankState& state = world.ranks[rank];
    const bool others_are_there =
        std::all_of(world.ranks.begin(), world.ranks.end(), [&state](const RankState& other) {
          return other.rounds > state.rounds ||
                 (other.rounds == state.rounds && other.phase >= state.phase);
        });
    if (!others_are_there) return;
    if (state.phase == Phase::looks) {
      state.oldest = oldest_steps(state.tracker);
      state.phase = Phase::reports;
    } else if (state.phase == Phase::reports) {
      state.facts = step_facts(smallest(world, &RankState::oldest), state.tracker);
      state.phase = Phase::concludes;
    } else {
      conclude(world, state);
    }
    visit(world);
  }

  template <class Facts>
  static Facts smallest(const World& world, Facts RankState::*facts) {
    Facts all = world.ranks[0].*facts;
    for (const RankState& rank : world.ranks)
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::min(all[i], (rank.*facts)[i]);
    return all;
  }

  /// What a rank has given to a round stays until all ranks have concluded it.
  void conclude(World& world, RankState& state) {
    const auto news = state.agreement.conclude(smallest(world, &RankState::oldest),
                                               smallest(world, &RankState::facts), state.tracker);
    ++state.rounds;
    for (const StepNews& one : news) link(state, one);
    const bool is_first =
        std::count_if(world.ranks.begin(), world.ranks.end(), [&state](const RankState& other) {
          return other.rounds == state.rounds;
        }) == 1;
    if (is_first)
      for (const StepNews& one : news) note(world, one);
    state.phase = Phase::looks;
    const bool is_last =
        std::all_of(world.ranks.begin(), world.ranks.end(),
                    [&state](const RankState& other) { return other.rounds == state.rounds; });
    if (!is_last) return;
    for (RankState& rank : world.ranks) {
      rank.rounds = 0;
      rank.oldest = {};
      rank.facts = {};
    }
  }

  static void link(RankState& state, const StepNews& news) {
    const bool is_whole =
        news.what == StepNews::What::provisional || news.what == StepNews::What::certain;
    if (!is_whole) state.linked.erase(news.step);
    if (is_whole && !state.overwritten.contains(news.step)) state.linked.insert(news.step);
  }

  void note(World& world, const StepNews& news) {
    const bool whole = program_.is_complete(done_of(world), news.step);
    switch (news.what) {
      case StepNews::What::provisional:
        found_.wrong_provisional = found_.wrong_provisional || !whole;
        break;
      case StepNews::What::certain:
        found_.wrong_certain = found_.wrong_certain || !whole;
        world.certain.insert(news.step);
        break;
      case StepNews::What::withdrawn:
        found_.withdrawn_certain = found_.withdrawn_certain || world.certain.contains(news.step);
        world.certain.erase(news.step);
        break;
      case StepNews::What::given_up:
        found_.withdrawn_certain = found_.withdrawn_certain || world.certain.contains(news.step);
        if (world.certain.erase(news.step) == 0) found_.given_up.insert(news.step);
        break;
    }
  }

  /// No round can bring anything new.
  static bool is_settled(const World& world) {
    return std::all_of(world.ranks.begin(), world.ranks.end(), [](const RankState& rank) {
      return rank.phase == Phase::looks && rank.rounds == 0 && !rank.tracker.oldest_undecided() &&
             !rank.tracker.oldest_late();
    });
  }

  void note_end(const World& world) {
    std::set<std::int64_t> kept = world.certain;
    for (const RankState& rank : world.ranks)
      for (const std::int64_t step : rank.overwritten) kept.erase(step);
    found_.ends.insert(kept);
    for (const std::int64_t step : world.certain)
      found_.wrong_end = found_.wrong_end || world.stale.contains(step);
  }

  Program program_;
  std::set<World> seen_;
  std::deque<World> waiting_;
  Found found_;
};

using Ends = std::set<std::set<std::int64_t>>;

Found explore(std::vector<Schedule> ranks,
              bool (*may)(const Program&, const std::vector<std::size_t>&, std::size_t),
              bool names_repeat = false) {
  const Found found = Explorer({std::move(ranks), may, names_repeat}).run();
  ::testing::Test::RecordProperty("worlds", std::to_string(found.worlds));
  return found;
}

void expect_never_wrong(const Found& found) {
  EXPECT_FALSE(found.wrong_certain);
  EXPECT_FALSE(found.withdrawn_certain);
  EXPECT_FALSE(found.wrong_end);
}

TEST(AgreementWorlds, EachStepOfARegularProgramBecomesCertain) {
  const Schedule two = writes({{"a"}, {"a"}, {"a"}});
  const Found found = explore({two, two}, in_step);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
  EXPECT_EQ(found.ends, (Ends{{1, 2, 3}}));
  EXPECT_TRUE(found.given_up.empty());
}

TEST(AgreementWorlds, RanksThatGoOnByThemselvesAreWaitedForOnceTheirFilesAreKnown) {
  const Found found =
      explore({writes({{"a"}, {"a"}, {"a"}}), writes({{"a"}, {"a"}, {"a"}})}, first_in_step);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
}

TEST(AgreementWorlds, ARankMayWriteNothingAndAnotherSeveralFiles) {
  const Found found = explore(
      {writes({{"a", "b"}, {"a", "b"}}), writes({{}, {}}), writes({{"a"}, {"a"}})}, in_step);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
  EXPECT_EQ(found.ends, (Ends{{1, 2}}));
}

TEST(AgreementWorlds, CertainStepsAreWholeWhateverTheRanksWriteIfTheyKeepInStep) {
  const std::vector<std::vector<std::string>> some = {{}, {"a"}, {"b"}};
  for (const auto& first : some)
    for (const auto& second : some)
      for (const auto& third : some) {
        const Found found =
            explore({writes({{"a"}, first, second}), writes({third, {"a"}, first})}, in_step);
        expect_never_wrong(found);
      }
}

TEST(AgreementWorlds, NoStepStaysCertainThatIsNotWholeWhateverTheRanksDo) {
  const std::vector<std::vector<std::string>> some = {{}, {"a"}};
  std::size_t withdrawn = 0;
  for (const auto& first : some)
    for (const auto& second : some) {
      const Found found =
          explore({writes({{"a"}, first, {"a"}}), writes({second, {"a"}, first})}, alone);
      EXPECT_FALSE(found.wrong_end);
      withdrawn += found.withdrawn_certain ? 1 : 0;
      EXPECT_FALSE(found.ends.empty());
    }
  EXPECT_GT(withdrawn, 0U);  // else a laggard was never tried
}

TEST(AgreementWorlds, WhereNamesRepeatTheFirstStepIsLostAndTheLastOneIsNot) {
  const Schedule three = writes({{"a"}, {"a"}, {"a"}});
  const Found found = explore({three, three}, in_step, true);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
  // The second one is lost only if the program leaves no time for it.
  EXPECT_EQ(found.ends, (Ends{{3}, {2, 3}}));
}

TEST(AgreementWorlds, AStepWithSeveralFilesIsWholeWhereNamesRepeat) {
  const Found found = explore(
      {writes({{"a", "b"}, {"a", "b"}, {"a", "b"}}), writes({{"a"}, {"a"}, {"a"}})}, in_step, true);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
  EXPECT_EQ(found.ends, (Ends{{3}, {2, 3}}));
}

TEST(AgreementWorlds, RanksThatOverwriteFilesByThemselvesNeverMixSteps) {
  const Schedule three = writes({{"a"}, {"a"}, {"a"}});
  const Found found = explore({three, three}, first_in_step, true);
  expect_never_wrong(found);
  EXPECT_FALSE(found.wrong_provisional);
}

/// The first step is given up while the ranks still write to it, whichever file is left out.
TEST(AgreementWorlds, AStepThatWasGivenUpShowsAllFilesOfARank) {
  for (const std::vector<bool>& is_left_out :
       {std::vector{true, false}, {false, true}, {true, true}}) {
    Schedule first;
    for (std::size_t i = 0; i < is_left_out.size(); ++i) {
      const std::string shape(1, static_cast<char>('a' + i));
      if (is_left_out[i])
        first.push_back({Event::Kind::leave_out, 1, shape});
      else
        add(first, 1, {shape});
    }
    add(first, 2, {"a", "b"});
    first.push_back({});
    for (const auto may : {in_step, first_in_step}) {
      const Found found = explore({first, writes({{"a"}, {"a"}})}, may);
      expect_never_wrong(found);
      EXPECT_FALSE(found.wrong_provisional);
      EXPECT_EQ(found.ends, (Ends{{2}}));
    }
  }
}

TEST(AgreementWorlds, AFileThatIsOpenedAgainWithdrawsTheStep) {
  Schedule twice;
  add(twice, 1, {"a", "a"});
  add(twice, 2, {"a", "a"});
  twice.push_back({});
  const Found found = explore({twice, writes({{"a"}, {"a"}})}, in_step);
  expect_never_wrong(found);
  EXPECT_EQ(found.ends, (Ends{{1, 2}}));
}

}  // namespace
}  // namespace cairn
