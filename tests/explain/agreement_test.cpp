// All commands, and a restart, agree about which datasets are whole.
#include "dead_job.hpp"
#include "tools/exit_codes.hpp"
#include "tools/index/index_command.hpp"

namespace cairn {
namespace {

class Agreement : public DeadJob {
 protected:
  /// Checkpoints of these contents, of which every rank calls its file by the same name; one before
  /// them has a name of its own.
  void write_same_names(const Names& contents = {"of the second", "of the third, and longer"}) {
    bed_.settings.flush_interval = 1;
    bed_.run_well(four_nodes(), [&](JobRank& rank) {
      rank.expect_written(1);
      for (const std::string& content : contents) {
        ASSERT_TRUE(rank.session->start_checkpoint());
        const auto path = rank.session->route_file(
            fmt::format("{}/state.{}", rank.settings.prefix, rank.number()));
        ASSERT_TRUE(path);
        std::ofstream(*path) << content;
        EXPECT_TRUE(rank.session->complete_checkpoint(true));
      }
      EXPECT_TRUE(rank.session->finalize());
    });
    bed_.lose_all_nodes();
  }

  /// What `cairn index list` has as the state of each dataset, the newest first.
  std::vector<std::string> listed_states() {
    IndexCommand command;
    command.json = true;
    EXPECT_EQ(run_index(command), 0) << logged();
    std::vector<std::string> states;
    const auto list = nlohmann::json::parse(printed());
    for (const auto& dataset : list.at("datasets")) states.push_back(dataset.at("state"));
    return states;
  }

  int run_index(const IndexCommand& command) {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_index_command(command, *files_, *clock_, process_, out, log);
    });
  }
};

TEST_F(Agreement, ADatasetThatLostItsFilesToANewerOneIsReplacedForAllCommands) {
  write_same_names();
  EXPECT_EQ(listed_states(), (Names{"published", "replaced", "published"}));
  verify_prefix();
  EXPECT_TRUE(prints("dataset 3 (scr.dataset.3) in")) << printed();
  EXPECT_NE(line_with("dataset 2 (scr.dataset.2) in").find("is replaced"), std::string::npos)
      << printed();
  IndexCommand show;
  show.action = IndexCommand::Action::show;
  show.name = "scr.dataset.2";
  EXPECT_EQ(run_index(show), 0) << logged();
  EXPECT_NE(line_with("state").find("replaced"), std::string::npos) << printed();
  EXPECT_NE(line_with("state").find("scr.dataset.3"), std::string::npos) << printed();
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(has(said_of("scr.dataset.2", "prefix"), "replaced")) << json_.dump(1);
  EXPECT_FALSE(said_of("scr.dataset.2", "prefix").at("taken"));
}

TEST_F(Agreement, WhatIsReplacedStaysSoWhenItIsLiftedFromQuarantine) {
  write_same_names();
  IndexCommand lift;
  lift.action = IndexCommand::Action::lift;
  lift.name = "scr.dataset.2";
  EXPECT_EQ(run_index(lift), 0) << logged();
  EXPECT_NE(line_with("scr.dataset.2").find("no restart uses it"), std::string::npos) << printed();
  EXPECT_EQ(listed_states(), (Names{"published", "replaced", "published"}));
  IndexCommand current;
  current.action = IndexCommand::Action::current;
  current.name = "scr.dataset.2";
  EXPECT_EQ(run_index(current), 0) << logged();
  EXPECT_NE(line_with("scr.dataset.2").find("no restart uses it"), std::string::npos) << printed();
  EXPECT_FALSE(prints("--lift")) << "it would be of no use: " << printed();
}

/// The second would be whole by its bytes, which are the fourth's.
TEST_F(Agreement, ADatasetThatLostItsFilesIsReplacedThoughANewerOneWroteTheSameBytes) {
  write_same_names({"of the second", "of the third, and longer", "of the second"});
  EXPECT_EQ(listed_states(), (Names{"published", "replaced", "replaced", "published"}));
  verify_prefix();
  EXPECT_NE(line_with("dataset 2 (scr.dataset.2) in").find("is replaced"), std::string::npos)
      << printed();
  EXPECT_NE(line_with("dataset 4 (scr.dataset.4) in").find("good"), std::string::npos) << printed();
}

/// Which only reads records.
TEST_F(Agreement, NoCommandCallsFilesWholeThatItHasNotRead) {
  bed_.write_and_finalize({1, 2});
  flip_bit(bed_.file(2, 4));
  EXPECT_NE(verify_prefix(), exit_ok);
  EXPECT_EQ(listed_states(), Names({"published"}));
  IndexCommand show;
  show.action = IndexCommand::Action::show;
  show.name = "ckpt.2";
  show.check = true;
  EXPECT_NE(run_index(show), 0);
  EXPECT_FALSE(prints("whole")) << printed();
}

TEST_F(Agreement, WhereTheNewestIsGoneExplainAndTheRestartPassOverWhatItReplaced) {
  write_same_names();
  IndexCommand command;
  command.action = IndexCommand::Action::quarantine;
  command.name = "scr.dataset.3";
  EXPECT_EQ(run_index(command), 0) << logged();
  expect_forecast(1);
}

}  // namespace
}  // namespace cairn
