// The job dies at any file operation of any phase, and the next run finds a whole dataset.
// EVERY_DEATH=1: at each of them, as in `make soak`; else at every few.
#include <atomic>

#include "support/every_death.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// Where the crashing rank is, and how many operations apart the crash points are.
struct Victim {
  int rank;
  int stride;
};

std::vector<Victim> writers() {
  if (sanitized) return {{3, 3}};
  const int apart = steps_between_deaths();
  return {{3, 1}, {0, apart}, {6, apart}};
}

std::vector<Victim> restorers() {
  if (sanitized) return {{2, 3}};
  const int apart = steps_between_deaths();
  return {{2, apart}, {0, apart}, {5, apart}};
}

/// Dataset 1 is committed and dataset 2 begun, with room for one, when `victim` crashes after
/// `count` operations; then `node` is lost, if any. Returns false when there were no more
/// operations.
bool survives_crash_while_writing(JobBed& bed, int victim, int count, const std::string& node) {
  bed.bring_back("one");
  std::atomic<bool> completed = false;
  const bool ended = bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    if (rank.number() == victim) rank.hook = crash_after(count);
    if (rank.write(2)) completed = true;
    rank.hook = {};
  });
  Nodes nodes = four_nodes();
  if (!node.empty()) {
    bed.lose(node);
    nodes = replaced(nodes, node, "n4");
  }
  const int from = bed.restart(nodes, [](JobRank& rank) { rank.expect_written(3); });
  EXPECT_TRUE(from == 2 || (from == 1 && !completed)) << "restarted from " << from;
  for (const std::string& each : nodes)
    EXPECT_EQ(bed.parts(each), bed.parts(each, std::max(from, 1) + 1)) << "remains on " << each;
  EXPECT_EQ(bed.restart(nodes), 3);
  return !ended;
}

void crash_everywhere_while_writing(JobBed& bed, const std::vector<Victim>& who, bool with_node) {
  bed.write(four_nodes(), {1});
  bed.save("one");
  for (const Victim& victim : who) {
    const std::string node = with_node ? fmt::format("n{}", victim.rank / 2) : "";
    int count = 0;
    while (survives_crash_while_writing(bed, victim.rank, count, node)) {
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim.rank << " after " << count;
      count += victim.stride;
    }
    EXPECT_GT(count, 20) << "Start to Complete is more than a few operations";
    ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim.rank << " after " << count;
  }
}

TEST(SessionCrash, WhileWritingAtAnyOperation) {
  JobBed bed;
  crash_everywhere_while_writing(bed, writers(), false);
}

TEST(SessionCrash, WhileWritingAtAnyOperationAndTheNodeIsLost) {
  JobBed bed;
  crash_everywhere_while_writing(bed, writers(), true);
}

TEST(SessionCrash, WhileWritingToADisk) {
  JobBed bed("/tmp");
  crash_everywhere_while_writing(bed, {{2, sanitized ? 17 : 5}}, true);
}

/// What a run finds, and what comes after it was crashed.
struct Recovery {
  const char* name;
  std::vector<std::string> lost;        ///< before the run
  Nodes nodes;                          ///< of the run
  std::vector<std::string> lost_later;  ///< after the crash
  Nodes later;                          ///< of the run after it
  Scheme scheme = Scheme::xor_;
};

/// Rank 0 and 2, which protect each other, come to the same node; so do the others, two by two.
const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
const Nodes turned = {"n3", "n3", "n0", "n0", "n1", "n1", "n2", "n2"};

std::vector<Recovery> recoveries() {
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  const Nodes crowded_spare = replaced(crowded, "n1", "n4");
  return {{"spare", {"n1"}, spare, {}, spare},
          {"spare lost too", {"n1"}, spare, {"n4"}, replaced(spare, "n4", "n5")},
          {"turned", {}, turned, {}, turned},
          {"turned, then a node lost", {}, turned, {"n0"}, replaced(turned, "n0", "n4")},
          {"turned with spare", {"n1"}, replaced(turned, "n1", "n4"), {}, four_nodes()},
          {"crowded", {}, crowded, {}, crowded},
          {"crowded, then back", {}, crowded, {}, four_nodes()},
          {"crowded, then a node lost", {}, crowded, {"n0"}, replaced(crowded, "n0", "n4")},
          {"crowded with spare", {"n1"}, crowded_spare, {}, crowded_spare},
          {"crowded with spare, lost too",
           {"n1"},
           crowded_spare,
           {"n4"},
           replaced(four_nodes(), "n1", "n5")}};
}

/// Where a scheme holds two nodes, the second one may be any that it holds, and any spare again.
std::vector<Recovery> recoveries_of_two() {
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  const Nodes spares = replaced(spare, "n3", "n5");
  const Nodes others = replaced(replaced(four_nodes(), "n1", "n6"), "n3", "n7");
  const Nodes neighbours = replaced(spare, "n2", "n5");
  return {{"partner, both spares lost too",
           {"n1", "n3"},
           spares,
           {"n4", "n5"},
           others,
           Scheme::partner},
          {"partner, then another", {"n1"}, spare, {"n3"}, spares, Scheme::partner},
          {"rs, both spares lost too", {"n1", "n3"}, spares, {"n4", "n5"}, others, Scheme::rs},
          {"rs, then another", {"n1"}, spare, {"n2"}, neighbours, Scheme::rs}};
}

bool survives_crash_while_recovering(JobBed& bed, const Recovery& recovery, int victim, int count) {
  bed.bring_back("two");
  for (const std::string& node : recovery.lost) bed.lose(node);
  const bool ended = bed.run(recovery.nodes, [&](JobRank& rank) {
    if (rank.number() == victim) rank.hook = crash_after(count);
    EXPECT_TRUE(rank.init());
    rank.hook = {};
  });
  for (const std::string& node : recovery.lost_later) bed.lose(node);
  EXPECT_EQ(bed.restart(recovery.later, [](JobRank& rank) { rank.expect_written(3); }), 2)
      << bed.log_text();
  for (const std::string& each : recovery.later)
    EXPECT_EQ(bed.parts(each), bed.parts(each, 3)) << "remains on " << each;
  return !ended;
}

class SessionCrashRecovery : public testing::TestWithParam<Recovery> {};

TEST_P(SessionCrashRecovery, AtAnyOperation) {
  JobBed bed;
  bed.settings.checkpoints[0].scheme = GetParam().scheme;
  bed.write(four_nodes(), {1, 2});
  bed.save("two");
  for (const Victim& victim : restorers()) {
    int count = 0;
    while (survives_crash_while_recovering(bed, GetParam(), victim.rank, count)) {
      ASSERT_FALSE(HasFailure()) << "rank " << victim.rank << " after " << count;
      count += victim.stride;
    }
    EXPECT_GT(count, 5) << "recovery is more than a few operations";
  }
}

std::string name_of_recovery(const testing::TestParamInfo<Recovery>& tested) {
  std::string name = tested.param.name;
  std::erase_if(name, [](char c) { return std::isalpha(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Session, SessionCrashRecovery, testing::ValuesIn(recoveries()),
                         name_of_recovery);
INSTANTIATE_TEST_SUITE_P(OfTwo, SessionCrashRecovery, testing::ValuesIn(recoveries_of_two()),
                         name_of_recovery);

/// The older of two datasets is not read through by Init; so half a rebuild of it must not look
/// like all of it.
TEST(SessionCrash, WhileTheOlderDatasetIsRebuilt) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  bed.save("two");
  const int stride = sanitized ? 11 : 3;
  for (int count = 0, ended = 0; ended == 0; count += stride) {
    bed.bring_back("two");
    bed.lose("n1");
    ended = bed.run(four_nodes(),
                    [&](JobRank& rank) {
                      if (rank.number() == 2) rank.hook = crash_after(count);
                      EXPECT_TRUE(rank.init());
                      rank.hook = {};
                    })
                ? 1
                : 0;
    bed.run_well(four_nodes(), [](JobRank&) {});
    for (const std::string node : {"n0", "n1", "n2", "n3"})
      for (const std::string& part : bed.parts(node, 2)) std::filesystem::remove_all(part);
    bed.lose("n0");
    ASSERT_EQ(bed.restart(four_nodes()), 1) << "after " << count << ": " << bed.log_text();
  }
}

}  // namespace
}  // namespace cairn
