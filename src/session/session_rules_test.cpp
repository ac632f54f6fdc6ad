// What may be called when, by whom at once, and that a mistake is an error on all ranks and costs
// nothing.
#include <atomic>
#include <map>

#include "comm/group.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

struct Call {
  const char* name;
  const char* state;  ///< in which it is allowed
  std::function<Status(Session&)> make;
};

template <class Outcome>
Status status_of(const Outcome& outcome) {
  return outcome ? Status{} : Status(tl::unexpected(outcome.error()));
}

const std::vector<Call> calls = {
    {"SCR_Have_restart", "IDLE", [](Session& s) { return status_of(s.have_restart()); }},
    {"SCR_Start_restart", "IDLE", [](Session& s) { return status_of(s.start_restart()); }},
    {"SCR_Complete_restart", "RESTART", [](Session& s) { return s.complete_restart(true); }},
    {"SCR_Need_checkpoint", "IDLE",
     [](Session& s) { return status_of(s.schedule().need_checkpoint()); }},
    {"SCR_Start_checkpoint", "IDLE", [](Session& s) { return s.start_checkpoint(); }},
    {"SCR_Complete_checkpoint", "CHECKPOINT",
     [](Session& s) { return s.complete_checkpoint(true); }},
    {"SCR_Start_output", "IDLE", [](Session& s) { return s.start_output("o", flag_output); }},
    {"SCR_Complete_output", "OUTPUT", [](Session& s) { return s.complete_output(true); }},
    {"SCR_Should_exit", "IDLE", [](Session& s) { return status_of(s.schedule().should_exit()); }},
    {"SCR_Current", "IDLE", [](Session& s) { return s.datasets().current("ckpt.1"); }},
    {"SCR_Drop", "IDLE", [](Session& s) { return s.datasets().drop("ckpt.1"); }},
    {"SCR_Delete", "IDLE", [](Session& s) { return s.datasets().remove("ckpt.1"); }},
    {"SCR_Finalize", "IDLE", [](Session& s) { return s.finalize(); }},
};

const Call& call_named(std::string_view name) {
  return *std::find_if(calls.begin(), calls.end(),
                       [name](const Call& call) { return call.name == name; });
}

void expect_wrong_everywhere(Session& session) {
  const std::string state(name_of(session.phase()));
  for (const Call& call : calls) {
    if (call.state == state) continue;
    const Status refused = call.make(session);
    ASSERT_FALSE(refused) << call.name << " in " << state;
    EXPECT_EQ(refused.error().code, Code::wrong_state) << refused.error().text;
    EXPECT_NE(refused.error().text.find(call.name), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find(state), std::string::npos) << refused.error().text;
    EXPECT_EQ(name_of(session.phase()), state);
  }
}

TEST(SessionRules, EveryCallInEveryWrongStateIsRefusedAndHarmless) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    Session& session = *rank.session;
    expect_wrong_everywhere(session);
    ASSERT_TRUE(session.start_restart());
    expect_wrong_everywhere(session);
    rank.expect_files(1);
    ASSERT_TRUE(session.complete_restart(true));
    ASSERT_TRUE(session.start_checkpoint());
    ASSERT_TRUE(rank.write_files(2));
    expect_wrong_everywhere(session);
    ASSERT_TRUE(session.complete_checkpoint(true));
    ASSERT_TRUE(session.start_output("ckpt.3", flag_checkpoint));
    ASSERT_TRUE(rank.write_files(3));
    expect_wrong_everywhere(session);
    ASSERT_TRUE(session.complete_output(true));
    ASSERT_TRUE(session.finalize());
    expect_wrong_everywhere(session);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

bool mentions(const Status& refused, const std::vector<std::string>& words) {
  return !refused && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return refused.error().text.find(word) != std::string::npos;
  });
}

TEST(SessionRules, ACallInAWrongStateNamesTheCallThatIsMissing) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    Session& session = *rank.session;
    EXPECT_TRUE(mentions(session.complete_checkpoint(true), {"SCR_Start_checkpoint"}));
    EXPECT_TRUE(mentions(session.complete_output(true), {"SCR_Start_output"}));
    EXPECT_TRUE(mentions(session.complete_restart(true), {"SCR_Start_restart"}));
    ASSERT_TRUE(session.start_restart());
    EXPECT_TRUE(mentions(session.start_checkpoint(), {"SCR_Complete_restart", "ckpt.1"}));
    ASSERT_TRUE(session.complete_restart(true));
    ASSERT_TRUE(session.start_checkpoint());
    const std::vector<std::string> open = {"SCR_Complete_checkpoint", "scr.dataset.2"};
    EXPECT_TRUE(mentions(session.start_checkpoint(), open));
    EXPECT_TRUE(mentions(session.complete_output(true), open));
    EXPECT_TRUE(mentions(session.finalize(), open));
    ASSERT_TRUE(rank.write_files(2));
    ASSERT_TRUE(session.complete_checkpoint(true));
    ASSERT_TRUE(session.start_output("late", flag_output));
    EXPECT_TRUE(mentions(session.start_checkpoint(), {"SCR_Complete_output", "late"}));
    ASSERT_TRUE(session.complete_output(true));
  });
}

/// Rank 3 makes `odd`, the others `usual`; all learn the same, and can go on.
void expect_differs(JobRank& rank, const std::function<Status(Session&)>& usual,
                    const std::function<Status(Session&)>& odd,
                    const std::vector<std::string>& words = {}) {
  const Status refused = (rank.number() == 3 ? odd : usual)(*rank.session);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::differs) << refused.error().text;
  EXPECT_TRUE(mentions(refused, {"rank 3: ", "ranks 0-2, 4-7: "})) << refused.error().text;
  EXPECT_TRUE(mentions(refused, words)) << refused.error().text;
  EXPECT_EQ(name_of(rank.session->phase()), "IDLE");
}

TEST(SessionRules, RanksThatCallDifferentlyAreNamedWithWhatTheyPassed) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const auto output = [](const std::string& name, std::uint32_t flags) {
      return [=](Session& session) { return session.start_output(name, flags); };
    };
    expect_differs(rank, call_named("SCR_Start_checkpoint").make,
                   call_named("SCR_Need_checkpoint").make,
                   {"rank 3: SCR_Need_checkpoint", "4-7: SCR_Start_checkpoint"});
    expect_differs(rank, output("a", flag_output), output("b", flag_output),
                   {"name \"a\"", "name \"b\""});
    expect_differs(rank, output("a", flag_output), output("a", flag_output | flag_checkpoint),
                   {"flags SCR_FLAG_OUTPUT", "SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT"});
    const Status all_differ = rank.session->datasets().remove(std::to_string(rank.number()));
    EXPECT_TRUE(mentions(all_differ, {"rank 0: ", "rank 3: ", "4 more"}))
        << all_differ.error().text;
    const Status one_is_long =
        rank.session->datasets().remove(rank.number() == 3 ? std::string(5000, 'x') : "short");
    EXPECT_TRUE(mentions(one_is_long, {"xxx...", "short"}));
    EXPECT_LT(one_is_long.error().text.size(), 1000U);
  });
}

TEST(SessionRules, NoSpareOutlivesTheSession) {
  JobBed bed;
  const bool memory = *make_posix_files()->is_memory(bed.node(""));
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    if (rank.number() == 0) {
      EXPECT_EQ(std::filesystem::exists(bed.job_folder("n0") + "/spare.0"), memory);
    }
    ASSERT_TRUE(rank.session->finalize());
  });
  EXPECT_FALSE(std::filesystem::exists(bed.job_folder("n0") + "/spare.0"));
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

TEST(SessionRules, WhatIsSupersededGoesInAThreadOfItsOwn) {
  JobBed bed;
  bed.settings.block_bytes = 64 << 10;
  const auto write = [](JobRank& rank, int dataset) {
    ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
    const auto path = rank.session->route_file(fmt::format("/prefix/state.{}", rank.number()));
    ASSERT_TRUE(path);
    const Blob content(600'000, static_cast<std::byte>(dataset));  // worth a thread
    ASSERT_TRUE((*rank.files->create(*path, 0600))->write_at(0, content));
    ASSERT_TRUE(rank.session->complete_output(true));
  };
  bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    for (int dataset = 1; dataset <= 5; ++dataset) write(rank, dataset);
    ASSERT_TRUE(rank.session->finalize());
  });
  for (const std::string node : {"n0", "n1", "n2", "n3"}) {
    EXPECT_EQ(bed.parts(node).size(), 2U) << node;
    EXPECT_EQ(bed.parts(node, 5).size(), 2U) << node;
  }
}

TEST(SessionRules, UnequalCallsAndArgumentsAreReportedToAll) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    expect_differs(rank, call_named("SCR_Start_checkpoint").make,
                   [](Session& s) { return s.start_output("", flag_checkpoint); });
    expect_differs(rank, call_named("SCR_Need_checkpoint").make,
                   call_named("SCR_Should_exit").make);
    expect_differs(rank, call_named("SCR_Delete").make,
                   [](Session& s) { return s.datasets().remove("x"); });
    expect_differs(rank, call_named("SCR_Current").make,
                   [](Session& s) { return s.datasets().current("x"); });
    expect_differs(rank, call_named("SCR_Finalize").make, call_named("SCR_Have_restart").make);
    EXPECT_EQ(rank.restart(), 1);
    rank.expect_written(2);
  });
}

TEST(SessionRules, ArgumentsOutOfTheirDomain) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (const Status& refused :
         {rank.session->start_output("x", 4),
          rank.session->start_output(std::string(2000, 'x'), flag_output)}) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::bad_argument);
    }
    const auto restarted = rank.session->start_restart();
    ASSERT_FALSE(restarted);
    EXPECT_EQ(restarted.error().code, Code::not_found);
    rank.expect_written(1);
  });
}

TEST(SessionRules, NamesAndCurrentAndDelete) {
  JobBed bed;
  bed.settings.stores[0].count = 3;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    ASSERT_TRUE(rank.write_files(1));
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    EXPECT_FALSE(rank.session->have_restart().value())
        << "what this run has written needs no restart";
  });
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.3"));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->datasets().current("scr.dataset.1"));
    EXPECT_EQ(rank.session->have_restart().value(), "scr.dataset.1") << "it was asked for";
    rank.expect_written(7);
    EXPECT_FALSE(rank.session->have_restart().value());
  });
  for (const int removed : {2, 3}) EXPECT_TRUE(bed.parts("n0", removed).empty()) << removed;
  EXPECT_FALSE(bed.parts("n0", 4).empty()) << "no number is given twice";
  EXPECT_EQ(bed.restart(four_nodes()), 7);
}

TEST(SessionRules, DeleteRemovesAnOutputThatCannotBeRestored) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(1, flag_output); });
  for (const char* lost : {"n1", "n2"}) bed.lose(lost);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().remove("another"));
    rank.expect_written(2);
  });
  EXPECT_FALSE(bed.parts("n0", 1).empty()) << "it is the user's";
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().remove("ckpt.1")); });
  for (const char* node : {"n0", "n3"}) EXPECT_TRUE(bed.parts(node, 1).empty()) << node;
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionRules, DeleteRemovesWhatAnotherNumberOfRanksHasWritten) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well({"n0", "n1", "n2", "n3"},
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().remove("ckpt.1")); });
  for (const char* node : {"n0", "n1", "n2", "n3"}) EXPECT_TRUE(bed.parts(node).empty()) << node;
}

TEST(SessionRules, TheFirstCheckpointOfARunIsLoggedTheOthersAreNot) {
  JobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_TRUE(bed.logs("dataset 1 (ckpt.1): ")) << bed.log_text();
  EXPECT_TRUE(bed.logs("XOR over sets of 4")) << bed.log_text();
  EXPECT_FALSE(bed.logs("dataset 2 (ckpt.2): ")) << bed.log_text();
  bed.settings.debug = 1;
  bed.write(four_nodes(), {4, 5});
  EXPECT_TRUE(bed.logs("(ckpt.5): ")) << "SCR_DEBUG=1 logs all: " << bed.log_text();
}

TEST(SessionRules, NeedCheckpointEveryThirdCall) {
  JobBed bed;
  bed.settings.checkpoint_interval = 3;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (int call = 1; call <= 7; ++call)
      EXPECT_EQ(*rank.session->schedule().need_checkpoint(), call % 3 == 0) << call;
    EXPECT_FALSE(*rank.session->schedule().should_exit());
  });
}

TEST(SessionRules, ThatNoCheckpointWillEverBeDueIsLoggedOnceWithWhatToSet) {
  for (const int interval : {0, 2}) {
    JobBed bed;
    bed.settings.checkpoint_interval = interval;
    bed.run_well(four_nodes(), [](JobRank& rank) {
      for (int call = 1; call <= 3; ++call) EXPECT_TRUE(rank.session->schedule().need_checkpoint());
    });
    const std::string said = bed.log_text();
    EXPECT_EQ(bed.logs("SCR_CHECKPOINT_INTERVAL"), interval == 0) << said;
    EXPECT_EQ(said.find("SCR_Need_checkpoint"), said.rfind("SCR_Need_checkpoint")) << said;
  }
}

// --- several sessions ---

/// Time passes only by sleeping.
class PatientClock final : public Clock {
 public:
  std::int64_t now_us() override { return 1 + steady_us_; }
  std::int64_t steady_us() override { return steady_us_; }
  void sleep_us(std::int64_t us) override { steady_us_ += us; }
  std::uint64_t random() override { return ++draws_; }

 private:
  std::atomic<std::int64_t> steady_us_ = 0;
  std::atomic<std::uint64_t> draws_ = 0;
};

TEST(SessionRules, SecondSessionOfAJobOnANodeIsBusyWhileTheFirstLives) {
  JobBed bed;
  bed.clock = std::make_unique<PatientClock>();
  bed.run_well(four_nodes(), [&](JobRank& first) {
    JobRank second(first.comm, first.settings, first.clock, bed.log());
    const std::int64_t from_us = first.clock.steady_us();
    const Status busy = second.init();
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code, Code::busy);
    EXPECT_NE(busy.error().text.find("job job"), std::string::npos) << busy.error().text;
    EXPECT_NE(busy.error().text.find("node n"), std::string::npos) << busy.error().text;
    EXPECT_GE(first.clock.steady_us() - from_us, 10'000'000) << "it waits for a dying one";
    ASSERT_TRUE(first.session->finalize());
    EXPECT_TRUE(second.init());
    second.expect_written(1);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionRules, TwoJobsOnTwoHalvesOfATeamSideBySide) {
  JobBed bed;
  const Nodes nodes = {"n0", "n1", "n2", "n3", "n0", "n1", "n2", "n3"};
  const auto run = [&](const std::function<void(JobRank&, int job)>& main) {
    EXPECT_TRUE(bed.run(nodes, [&](JobRank& whole) {
      const int job = whole.number() / 4;
      Group half(whole.comm, {4 * job, 4 * job + 1, 4 * job + 2, 4 * job + 3});
      Settings mine = whole.settings;
      mine.job_id = fmt::format("job{}", job);
      JobRank rank(half, mine, whole.clock, bed.log());
      ASSERT_TRUE(rank.init());
      main(rank, job);
    }));
  };
  run([](JobRank& rank, int job) {
    for (int dataset = 1; dataset <= 2 + job; ++dataset) rank.expect_written(dataset);
  });
  bed.lose("n2");
  run([](JobRank& rank, int job) { EXPECT_EQ(rank.restart(), 2 + job); });
}

TEST(SessionRules, TwoJobsOnTheSameRanksSideBySide) {
  JobBed bed;
  bed.run_well(four_nodes(), [&](JobRank& one) {
    Settings others = one.settings;
    others.job_id = "other";
    JobRank other(one.comm, others, one.clock, bed.log());
    ASSERT_TRUE(other.init());
    ASSERT_TRUE(one.session->start_output("ckpt.1", flag_checkpoint));
    ASSERT_TRUE(other.session->start_output("ckpt.9", flag_checkpoint));
    ASSERT_TRUE(one.write_files(1));
    ASSERT_TRUE(other.write_files(9));
    ASSERT_TRUE(other.session->complete_output(true));
    ASSERT_TRUE(one.session->complete_output(true));
  });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.settings.job_id = "other";
  EXPECT_EQ(bed.restart(four_nodes()), 9);
}

}  // namespace
}  // namespace cairn
