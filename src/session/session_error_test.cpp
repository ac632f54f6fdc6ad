// Any file operation fails, and no rank dies of it: all ranks get the same error, nothing older is
// lost.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

constexpr int stride = sanitized ? 5 : 1;

/// All ranks' verdicts of one collective call; none of them is a failure of its own.
class Verdicts {
 public:
  explicit Verdicts(const Nodes& nodes) : codes_(nodes.size()), texts_(nodes.size()) {}

  void take(int rank, const Status& status) {
    if (status) return;
    codes_[static_cast<std::size_t>(rank)] = status.error().code;
    texts_[static_cast<std::size_t>(rank)] = status.error().text;
  }
  /// The code that all ranks have got.
  Code agreed() const {
    EXPECT_EQ(codes_, std::vector<Code>(codes_.size(), codes_[0]));
    EXPECT_EQ(texts_, std::vector<std::string>(texts_.size(), texts_[0]));
    return codes_[0];
  }
  const std::string& text() const { return texts_[0]; }

 private:
  std::vector<Code> codes_;
  std::vector<std::string> texts_;
};

/// With dataset 1 committed, operation `count` of `victim` in the Complete of dataset 2 fails.
/// The run then goes on, or ends. False when there were no more operations.
bool survives_error_in_complete(JobBed& bed, int victim, int count, Code code, bool goes_on) {
  bed.bring_back("one");
  std::string injected;
  Verdicts verdicts(four_nodes());
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    ASSERT_TRUE(rank.write_files(2));
    if (rank.number() == victim) rank.hook = fail_after(count, code, injected);
    verdicts.take(rank.number(), rank.session->complete_output(true));
    rank.hook = {};
    if (goes_on) rank.expect_written(3);
  });
  const bool failed = verdicts.agreed() != Code::ok;
  if (failed) {
    EXPECT_TRUE(verdicts.agreed() == code || verdicts.agreed() == Code::invalid) << verdicts.text();
    EXPECT_NE(verdicts.text().find(bed.node(four_nodes()[static_cast<std::size_t>(victim)])),
              std::string::npos)
        << verdicts.text();
  }
  // A folder that could not be removed may have been removed by the other rank on the node since; a
  // spare that cannot be had is no loss.
  const bool harmless = injected == "remove_folder" || injected == "spare";
  EXPECT_TRUE(failed || injected.empty() || harmless || bed.logs("injected"))
      << injected << ": an error was swallowed";
  EXPECT_EQ(bed.restart(four_nodes()), goes_on ? 3 : failed ? 1 : 2);
  return !injected.empty();
}

TEST(SessionErrors, InCompleteAtAnyOperation) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.save("one");
  struct Case {
    int victim;
    Code code;
    bool goes_on;
  };
  for (const auto& [victim, code, goes_on] :
       {Case{2, Code::no_space, true}, Case{5, Code::io, false}}) {
    int count = 0;
    while (survives_error_in_complete(bed, victim, count, code, goes_on)) {
      ASSERT_FALSE(HasFailure()) << "rank " << victim << " at operation " << count;
      count += stride;
    }
    EXPECT_GT(count, 20);
  }
}

TEST(SessionErrors, InStartTheSessionStaysIdle) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  std::string injected;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    if (rank.number() == 7) rank.hook = fail_after(1, Code::no_space, injected);
    const Status started = rank.session->start_checkpoint();
    rank.hook = {};
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::no_space);
    EXPECT_EQ(started.error().rank, 7);
    EXPECT_EQ(name_of(rank.session->phase()), "IDLE");
    rank.expect_written(3);
  });
  EXPECT_FALSE(injected.empty());
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

TEST(SessionErrors, AFullStoreTellsHowManyOutputsItHolds) {
  JobBed bed;
  std::string injected;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    const auto fails_for_want_of_space = [&] {
      EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
      EXPECT_TRUE(rank.write_files(3));
      if (rank.number() == 3) rank.hook = fail_after(6, Code::no_space, injected);
      const Status done = rank.session->complete_output(true);
      rank.hook = {};
      EXPECT_FALSE(done);
      return done ? std::string() : done.error().text;
    };
    rank.expect_written(1);
    EXPECT_EQ(fails_for_want_of_space().find("outputs"), std::string::npos);
    for (const int output : {1, 2}) rank.expect_written(output, flag_output);
    const std::string text = fails_for_want_of_space();
    EXPECT_NE(text.find("injected"), std::string::npos) << text;
    EXPECT_NE(text.find("holds 2 outputs"), std::string::npos) << text;
    EXPECT_NE(text.find("SCR_Delete"), std::string::npos) << text;
  });
}

/// Operation `count` of `victim` fails in an Init that has to restore datasets 1 and 2. Whatever
/// that Init comes to, the next one finds dataset 2. False when there were no more operations.
bool survives_error_in_init(JobBed& bed, const std::string& lost, const Nodes& nodes, int victim,
                            int count) {
  bed.bring_back("two");
  if (!lost.empty()) bed.lose(lost);
  std::string injected;
  Verdicts verdicts(nodes);
  bed.run(nodes, [&](JobRank& rank) {
    if (rank.number() == victim) rank.hook = fail_after(count, Code::io, injected);
    const Status ready = rank.init();
    verdicts.take(rank.number(), ready);
    rank.hook = {};
    if (ready) rank.restart();
  });
  if (verdicts.agreed() != Code::ok) {
    EXPECT_NE(verdicts.text().find("injected"), std::string::npos) << verdicts.text();
  }
  EXPECT_EQ(bed.restart(nodes), 2) << bed.log_text();
  return !injected.empty();
}

void fail_everywhere_in_init(JobBed& bed, const std::string& lost, const Nodes& nodes,
                             const std::vector<int>& victims) {
  bed.settings.stores[0].count = 2;
  bed.write(replaced(nodes, "spare", lost), {1, 2});
  bed.save("two");
  for (const int victim : victims) {
    int count = 0;
    while (survives_error_in_init(bed, lost, nodes, victim, count)) {
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " at operation " << count;
      count += 3 * stride;  // not even: operations often come in pairs
    }
    EXPECT_GT(count, 20);
  }
}

TEST(SessionErrors, InRecoveryAtAnyOperation) {
  JobBed bed;
  fail_everywhere_in_init(bed, "n1", replaced(four_nodes(), "n1", "spare"), {0, 2});
}

TEST(SessionErrors, InRecoveryOfOneRankWithoutProtection) {
  JobBed bed;
  fail_everywhere_in_init(bed, "", {"n0"}, {0});
}

TEST(SessionErrors, WithMoveAndNewSetsAtAnyOperation) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1, 2});
  bed.save("two");
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  int count = 0;
  while (survives_error_in_init(bed, "", crowded, 2, count)) {
    ASSERT_FALSE(HasFailure()) << "at operation " << count;
    count += 3 * stride;
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace cairn
