#include "tools/simulate_command.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "support/command_output.hpp"

namespace cairn {
namespace {

class SimulateCommandTest : public ::testing::Test, protected CommandOutput {
 protected:
  SimulateCommandTest() {
    process_ = {{{"USER", "ann"}}, "login1", folder_.path(), 1};
    command_.job.source.system_path = folder_ / "scr.conf";
    command_.job.scheme = "xor";
    command_.job.set_size = "4";
    command_.job.ranks.nodes = 8;
  }

  int run(const std::string& lose) {
    command_.lose = lose;
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_simulate_command(command_, *files_, process_, out, log);
    });
  }

  std::string answer_to(const std::string& lose) {
    EXPECT_EQ(run(lose), 0) << logged();
    return printed();
  }

  nlohmann::json json_of(const std::string& lose) {
    command_.json = true;
    return nlohmann::json::parse(answer_to(lose));
  }

  void expect_error(const std::string& lose, int exit_code, const std::string& part) {
    EXPECT_EQ(run(lose), exit_code);
    EXPECT_EQ(printed().empty(), !command_.json) << printed();
    EXPECT_TRUE(logs(part)) << logged();
  }

  void racks() {
    std::ofstream settings(command_.job.source.system_path);
    for (int node = 0; node < 8; ++node)
      settings << "GROUPS=n" << node << " RACK=r" << node / 2 << "\n";
    command_.job.ranks = {"n0,n1,n2,n3,n4,n5,n6,n7"};
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  ProcessFacts process_;
  SimulateCommand command_;
};

TEST_F(SimulateCommandTest, AnyTwoNodes) {
  EXPECT_EQ(answer_to("any 2"),
            "ranks 8, nodes 8: XOR in sets of 4, failure group NODE\n"
            "lose any 2 of 8 nodes: 16 of 28 losses survived, 12 not (42.9 %)\n"
            "for example, losing node0, node1 breaks 1 set:\n"
            "  set 1 of 2, 4 ranks, XOR: loses ranks 0, 1, which cannot be rebuilt\n");
  command_.job.scheme = "RS";
  EXPECT_EQ(answer_to("any 2"),
            "ranks 8, nodes 8: RS in sets of 4, failure group NODE\n"
            "lose any 2 of 8 nodes: 28 of 28 losses survived, 0 not (0 %)\n");
}

TEST_F(SimulateCommandTest, NamedNodes) {
  EXPECT_EQ(answer_to("node1,node6"),
            "ranks 8, nodes 8: XOR in sets of 4, failure group NODE\n"
            "lose node1, node6: survived\n"
            "  set 1 of 2, 4 ranks, XOR: loses rank 1, rebuilt from the others\n"
            "  set 2 of 2, 4 ranks, XOR: loses rank 6, rebuilt from the others\n");
  const auto json = json_of("node4,node6");
  EXPECT_EQ(json.at("survived"), false);
  EXPECT_EQ(json.at("sets").size(), 1U);
  EXPECT_EQ(json.at("sets").at(0).at("set"), 2);
  EXPECT_EQ(json.at("sets").at(0).at("members"), (nlohmann::json{4, 5, 6, 7}));
  EXPECT_EQ(json.at("sets").at(0).at("lost_ranks"), (nlohmann::json{4, 6}));
  EXPECT_EQ(json.at("sets").at(0).at("rebuilt"), false);
}

TEST_F(SimulateCommandTest, SeveralRanksOnANode) {
  command_.job.ranks.per_node = 2;
  const auto json = json_of("any 2");
  EXPECT_EQ(json.at("survived"), 16) << "two sets on each four nodes";
  EXPECT_EQ(json.at("losses"), 28);
  EXPECT_EQ(json.at("counted"), true);
  EXPECT_EQ(json.at("example").at("lost"), (nlohmann::json{"node0", "node1"}));
  EXPECT_EQ(json.at("example").at("sets").size(), 2U);
}

TEST_F(SimulateCommandTest, Racks) {
  racks();
  EXPECT_EQ(json_of("any 1 rack").at("survived"), 0) << "sets over nodes take two of a rack";
  command_.job.group = "RACK";
  const auto spread = json_of("any 1");
  EXPECT_EQ(spread.at("survived"), 4);
  EXPECT_EQ(spread.at("failure_groups"), (nlohmann::json{{"kind", "RACK"}, {"number", 4}}));
  EXPECT_TRUE(spread.at("example").is_null());
  EXPECT_EQ(json_of("any 2").at("survived"), 0);
  EXPECT_EQ(json_of("any 2 NODE").at("survived"), 16) << "at most one of each half of the racks";
  EXPECT_EQ(json_of("any 2").at("example").at("lost"), (nlohmann::json{"r0", "r1"}));
  expect_error("any 1 switch", 1, "has no failure group SWITCH");
}

TEST_F(SimulateCommandTest, ARate) {
  const double set_lives = std::pow(0.9, 4) + 4 * 0.1 * std::pow(0.9, 3);
  const auto json = json_of("rate 0.1");
  EXPECT_NEAR(json.at("not_survived"), 1 - set_lives * set_lives, 1e-12);
  EXPECT_EQ(json.at("error_95"), 0);
  EXPECT_FALSE(json.contains("samples"));
  command_.json = false;
  EXPECT_NE(answer_to("rate 0.1").find("not survived with probability 0.1019 (counted)"),
            std::string::npos)
      << printed();
}

TEST_F(SimulateCommandTest, WhatIsTooMuchToCountIsEstimated) {
  command_.job.ranks.nodes = 128;
  command_.job.scheme = "RS";
  command_.job.set_size = "64";
  command_.job.failures = "8";
  command_.samples = 3000;
  const auto json = json_of("any 18");
  EXPECT_EQ(json.at("counted"), false);
  EXPECT_EQ(json.at("samples"), 3000);
  EXPECT_NEAR(json.at("not_survived"), 1, 0.001) << "one half has 9 or more";
  EXPECT_GT(json.at("error_95"), 0);
  EXPECT_EQ(json.at("example").at("lost").size(), 9U);
  command_.json = false;
  EXPECT_NE(answer_to("any 18").find("(95 %): 3000 of 3000 samples"), std::string::npos);
}

TEST_F(SimulateCommandTest, SingleSurvivesNothing) {
  command_.job.scheme = "SINGLE";
  EXPECT_NE(answer_to("any 1").find("0 of 8 losses survived, 8 not (100 %)"), std::string::npos);
  EXPECT_TRUE(prints("set 1 of 8, 1 rank, not protected: loses rank 0, which cannot"));
}

TEST_F(SimulateCommandTest, WhatLiesInASharedStoreOutlivesEveryNode) {
  for (const std::string how : {"GROUP=WORLD", "VIEW=GLOBAL"}) {
    std::ofstream(command_.job.source.system_path)
        << "SCR_CACHE_BASE=/shared\nSTORE=/shared " << how << "\n";
    command_.json = false;
    const std::string job =
        "ranks 8, nodes 8: SINGLE, because all ranks share the store /shared: the loss of a node "
        "does not affect it\n";
    EXPECT_EQ(answer_to("node0,node1,node2"), job + "lose node0, node1, node2: survived\n") << how;
    EXPECT_EQ(answer_to("any 3"),
              job + "lose any 3 of 8 nodes: 56 of 56 losses survived, 0 not (0 %)\n");
    EXPECT_NE(answer_to("rate 0.5").find("not survived with probability 0 (counted)"),
              std::string::npos)
        << printed();
    const auto json = json_of("any 8");
    EXPECT_EQ(json.at("shared"), true);
    EXPECT_EQ(json.at("scheme"), "SINGLE");
    EXPECT_EQ(json.at("survived"), 1);
  }
}

TEST_F(SimulateCommandTest, TheDescriptorIsChosenByItsId) {
  std::ofstream(command_.job.source.system_path)
      << "SCR_COPY_TYPE=FILE\nSTORE=/shared GROUP=WORLD\n"
         "CKPT=0 INTERVAL=1 OUTPUT=1 TYPE=SINGLE\nCKPT=2 INTERVAL=4 STORE=/shared\n"
         "CKPT=7 INTERVAL=1 TYPE=RS SET_SIZE=8\n";
  command_.job.scheme = "";
  command_.job.set_size = "";
  EXPECT_EQ(answer_to("any 2"),
            "ranks 8, nodes 8: RS in sets of 8, failure group NODE\n"
            "this is CKPT=7 (INTERVAL=1); with --ckpt there are CKPT=0 (INTERVAL=1 OUTPUT=1), "
            "CKPT=2 (INTERVAL=4)\n"
            "lose any 2 of 8 nodes: 28 of 28 losses survived, 0 not (0 %)\n");
  command_.job.ckpt = "0";
  EXPECT_NE(
      answer_to("any 1").find("ranks 8, nodes 8: SINGLE\nthis is CKPT=0 (INTERVAL=1 OUTPUT=1)"),
      std::string::npos)
      << printed();
  command_.job.ckpt = "1";
  expect_error("any 1", 2, "--ckpt=1: no enabled descriptor has that id; there are 0, 2, 7.");
  command_.job.ckpt = "2";
  const auto json = json_of("any 1");
  EXPECT_EQ(json.at("shared"), true);
  EXPECT_EQ(json.at("ckpt"), 2);
  EXPECT_EQ(json.at("other_ckpts"), (nlohmann::json{0, 7}));
}

TEST_F(SimulateCommandTest, WrongArgumentsAreNamed) {
  for (const std::string wrong : {"any", "any 0", "any -1", "any 2x", "any 1 NODE too", "rate 0",
                                  "rate 1.5", "rate nan", "rate x"})
    expect_error(wrong, 2, "--lose='" + wrong + "' is not understood");
  expect_error("any 9", 2, "9 failure groups cannot be lost, the job is in 8 of kind NODE");
  expect_error("node1,node8", 2, "no rank is on a node \"node8\"");
  expect_error("node1,", 2, "no rank is on a node \"\"");
  expect_error("any 1 a,b", 1, "has no failure group A,B");
  command_.samples = 0;
  expect_error("any 1", 2, "--samples");
  command_.samples = 1;
  command_.job.ranks.nodes = 0;
  expect_error("any 1", 2, "--nodes=0");
}

}  // namespace
}  // namespace cairn
