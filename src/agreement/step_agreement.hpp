// Which steps of a program that does not know Cairn are whole
// (docs/adr/0042-agreement-without-the-program.md).
#pragma once

#include <array>
#include <compare>
#include <mutex>
#include <optional>
#include <vector>

#include "agreement/step_tracker.hpp"
#include "comm/communicator.hpp"

namespace cairn {

/// What the ranks have found out of a step.
struct StepNews {
  enum class What : std::uint8_t {
    provisional,  ///< all ranks have closed the files that they usually have: protect it now
    withdrawn,    ///< a rank has opened a file of it again: its dataset is not whole
    certain,      ///< whole; nothing of it will be written again, unless it is withdrawn
    given_up,     ///< no dataset: its files go where the program wanted them
  };
  std::int64_t step = 0;
  What what = What::provisional;
  bool is_overwritten = false;  ///< given up, as the program has written a file of it again
  bool is_mixed = false;        ///< given up, as it may have files of several steps

  bool operator==(const StepNews&) const = default;
};

/// What the reports of all ranks on one step say together.
struct CommonReport {
  Progress writers = Progress::passed;  ///< the lowest of the ranks that have opened a file of it
  Progress others = Progress::passed;   ///< the lowest of the other ranks
  Loss loss = Loss::none;               ///< the greatest
  bool changed = false;
  bool differ = false;   ///< the ranks count steps differently
  bool crowded = false;  ///< a rank has more than most_undecided steps
};

/// What one round shows of a step.
enum class Look : std::uint8_t {
  undecided,
  whole,     ///< every rank is quiet, or has passed
  passed,    ///< every writer has passed, and the others are quiet
  hopeless,  ///< no round can make a dataset of it
};
Look look_of(const CommonReport& report);

/// So many steps may be under way. With more, the oldest is decided as it is.
inline constexpr std::size_t most_undecided = 2;

/// One look.
struct LookAt {
  std::int64_t step = -1;
  Look look = Look::undecided;
  bool is_crowded = false;

  auto operator<=>(const LookAt&) const = default;
};
/// The rule, a pure function. Nothing: undecided. `changed`: a rank has opened a file in between.
std::optional<StepNews::What> verdict_of(const LookAt& before, const LookAt& now, bool changed);

/// What each rank gives to a round. Of all ranks the smallest counts, element by element.
using OldestSteps = std::array<std::int64_t, 3>;  ///< undecided, late; 1 if the program has ended
using StepFacts = std::array<std::int64_t, 7>;
OldestSteps oldest_steps(const StepTracker& tracker);
/// Of the oldest undecided step of all ranks, if there is one.
StepFacts step_facts(const OldestSteps& oldest, StepTracker& tracker);

/// The program has ended on all ranks, and there is nothing left to decide.
bool is_over(const OldestSteps& oldest);

struct Round {
  std::vector<StepNews> news;
  bool is_last = false;  ///< no other round can have news
};

/// The same on all ranks. One step at a time is decided, the oldest first.
class StepAgreement {
 public:
  /// Collective. One look at the oldest undecided step: two reductions. The program goes on
  /// meanwhile: `mutex` guards `tracker`, and is not held while this rank waits for others.
  Round round(Communicator& comm, StepTracker& tracker, std::mutex& mutex);

  /// Local: what follows from the smallest of all ranks.
  std::vector<StepNews> conclude(const OldestSteps& oldest, const StepFacts& facts,
                                 StepTracker& tracker);

  auto operator<=>(const StepAgreement&) const = default;

 private:
  std::optional<std::int64_t> provisional_;
  LookAt last_;
};

}  // namespace cairn
