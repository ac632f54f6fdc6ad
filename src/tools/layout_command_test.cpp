#include "tools/layout_command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "support/command_output.hpp"
#include "support/report_checks.hpp"

namespace cairn {
namespace {

std::string golden_layout(const std::string& name) {
  std::ifstream in(CAIRN_GOLDEN "/layout/" + name + ".txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LayoutCommandTest : public ::testing::Test, protected CommandOutput {
 protected:
  LayoutCommandTest() {
    process_ = {{{"USER", "ann"}}, "login1", folder_.path(), 1};
    command_.job.source.system_path = folder_ / "scr.conf";
    command_.job.scheme = "xor";
    command_.job.set_size = "4";
  }

  int run() {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_layout_command(command_, *files_, process_, out, log);
    });
  }

  void expect_golden(const std::string& name) {
    ASSERT_EQ(run(), 0) << logged();
    EXPECT_EQ(printed(), golden_layout(name)) << "tests/golden/layout/" << name << ".txt";
    const std::string text = printed();
    command_.json = true;
    ASSERT_EQ(run(), 0) << logged();
    expect_same(text, printed_json());
    command_.json = false;
  }

  void expect_error(int exit_code, const std::string& part) {
    EXPECT_EQ(run(), exit_code);
    EXPECT_EQ(printed(), "");
    EXPECT_TRUE(logs(part)) << logged();
  }

  void settings(const std::string& lines) {
    std::ofstream(command_.job.source.system_path) << lines;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  ProcessFacts process_;
  LayoutCommand command_;
};

TEST_F(LayoutCommandTest, EightNodesOfTwoRanks) {
  command_.job.ranks.nodes = 8;
  command_.job.ranks.per_node = 2;
  expect_golden("8x2-sets-of-4");
}

TEST_F(LayoutCommandTest, FourNodesOfTwoRanks) {
  command_.job.ranks.nodes = 4;
  command_.job.ranks.per_node = 2;
  expect_golden("4x2-sets-of-4");
}

TEST_F(LayoutCommandTest, FourNodesOfTwoRanksCyclic) {
  command_.job.ranks = {"", 4, 2, true};
  expect_golden("4x2-cyclic-sets-of-4");
}

TEST_F(LayoutCommandTest, ARemainderMakesASetLonger) {
  command_.job.ranks.nodes = 7;
  command_.job.set_size = "3";
  expect_golden("7x1-sets-of-3");
}

TEST_F(LayoutCommandTest, UnevenNodes) {
  command_.job.ranks.hosts = "n0,n0,n0,n1,n2,n3";
  expect_golden("3-1-1-1-sets-of-4");
}

TEST_F(LayoutCommandTest, Partners) {
  command_.job.ranks.nodes = 4;
  command_.job.scheme = "PARTNER";
  expect_golden("4x1-partner");
}

TEST_F(LayoutCommandTest, OneNodeCannotProtectItself) {
  command_.job.ranks.hosts = "n0,n0,n0";
  expect_golden("one-node");
}

TEST_F(LayoutCommandTest, SingleProtectsNoRank) {
  command_.job.ranks.nodes = 2;
  command_.job.scheme = "SINGLE";
  expect_golden("2x1-single");
}

TEST_F(LayoutCommandTest, FailureGroupsComeFromTheSettings) {
  settings("GROUPS=n0 RACK=r0\nGROUPS=n1 RACK=r0\nGROUPS=n2 RACK=r1\nGROUPS=n3 RACK=r1\n");
  command_.job.ranks.hosts = "n0,n1,n2,n3";
  command_.job.group = "rack";
  expect_golden("two-racks-of-two");
  command_.job.ranks.hosts = "n0,n1,n2,n9";
  expect_error(1, "the node of rank 3 has no failure group RACK");
}

TEST_F(LayoutCommandTest, WhatIsNotGivenComesFromTheSettings) {
  settings(
      "SCR_COPY_TYPE=FILE\nGROUPS=n0 RACK=r0\nGROUPS=n1 RACK=r1\n"
      "CKPT=0 INTERVAL=4 TYPE=XOR SET_SIZE=9\nCKPT=1 TYPE=PARTNER SET_SIZE=5 GROUP=RACK\n");
  command_.json = true;
  command_.job = {{"n0,n1"}, "", "", "", "", "", "", "", command_.job.source};
  ASSERT_EQ(run(), 0) << logged();
  const auto layout = printed_json();
  EXPECT_EQ(layout.at("scheme"), "PARTNER");
  EXPECT_EQ(layout.at("set_size"), 5);
  EXPECT_EQ(layout.at("group"), "RACK");
}

TEST_F(LayoutCommandTest, JsonTellsWhoKeepsWhoseRecord) {
  command_.json = true;
  command_.job.ranks.hosts = "n0,n0,\xff,n2";
  ASSERT_EQ(run(), 0) << logged();
  const auto layout = printed_json();
  EXPECT_EQ(layout.at("ranks"), 4);
  EXPECT_EQ(layout.at("nodes"), 3);
  EXPECT_EQ(layout.at("unprotected_ranks"), 0);
  const auto& members = layout.at("sets").at(0).at("members");
  EXPECT_EQ(members.at(0).at("rank"), 0);
  EXPECT_EQ(members.at(0).at("node"), "n0");
  EXPECT_EQ(members.at(0).at("left"), 2);
  EXPECT_EQ(members.at(1).at("left"), 0);
  command_.job.ranks.hosts = "n0";
  ASSERT_EQ(run(), 0);
  const auto alone = printed_json();
  EXPECT_TRUE(alone.at("sets").at(0).at("members").at(0).at("left").is_null());
  EXPECT_EQ(alone.at("unprotected_ranks"), 1);
}

TEST_F(LayoutCommandTest, ASharedStoreNeedsNoSets) {
  settings("SCR_CACHE_BASE=/shared\nSTORE=/shared VIEW=GLOBAL\n");
  command_.job.ranks.nodes = 4;
  ASSERT_EQ(run(), 0) << logged();
  EXPECT_EQ(
      printed(),
      "ranks 4, nodes 4: SINGLE, because all ranks share the store /shared: the loss of a node "
      "does not affect it\n");
  command_.json = true;
  ASSERT_EQ(run(), 0) << logged();
  const auto layout = printed_json();
  EXPECT_EQ(layout.at("shared"), true);
  EXPECT_EQ(layout.at("unprotected_ranks"), 0);
  EXPECT_TRUE(layout.at("sets").empty());
}

TEST_F(LayoutCommandTest, WhatBypassesTheCacheNeedsNoSets) {
  settings("SCR_COPY_TYPE=FILE\nCKPT=0 INTERVAL=1 BYPASS=1\nCKPT=1 INTERVAL=2 TYPE=XOR\n");
  command_.job.ranks.nodes = 4;
  ASSERT_EQ(run(), 0) << logged();
  EXPECT_EQ(
      printed(),
      "ranks 4, nodes 4: SINGLE, because the cache is bypassed: the loss of a node does not affect "
      "the prefix directory\nthis is CKPT=0 (INTERVAL=1 BYPASS=1); with --ckpt there are "
      "CKPT=1 (INTERVAL=2)\n");
  command_.json = true;
  ASSERT_EQ(run(), 0) << logged();
  const auto layout = printed_json();
  EXPECT_EQ(layout.at("bypass"), true);
  EXPECT_TRUE(layout.at("sets").empty());
}

TEST_F(LayoutCommandTest, AHopThatDoesNotFitIsReported) {
  command_.job.ranks.nodes = 8;
  command_.job.scheme = "PARTNER";
  command_.job.copies = "2";
  for (const std::string hop : {"1", "2", "3"}) {
    command_.job.hop = hop;
    ASSERT_EQ(run(), 0) << logged();
    const bool reported = printed().find("in 2 of 2 sets, a hop of 2 ") != std::string::npos;
    EXPECT_EQ(reported, hop == "2") << printed();
  }
}

TEST_F(LayoutCommandTest, WrongArgumentsAreNamed) {
  command_.job.ranks.hosts = "n0,,n1";
  expect_error(2, "--hosts=n0,,n1 gives no node for rank 1");
  command_.job.ranks = {"", 0, 2};
  expect_error(2, "--nodes=0 --ranks-per-node=2 is not a layout");
  command_.job.ranks = {"", 1 << 30, 1 << 30};
  expect_error(2, "is not a layout");
  command_.job.ranks = {"", 2};
  command_.job.scheme = "FILE";
  expect_error(2, "--scheme=FILE (command line) is not allowed: write one of SINGLE, PARTNER");
  command_.job.scheme = "XOR";
  command_.job.set_size = "2";
  command_.job.scheme = "RS";
  expect_error(2, "RS in sets of 2 cannot survive 2 failures in each");
  command_.job.scheme = "PARTNER";
  command_.job.copies = "3";
  expect_error(2, "PARTNER in sets of 2 cannot survive 3 failures in each");
  command_.job.hop = "0";
  expect_error(2, "--hop=0 (command line) is not allowed: write a whole number from 1");
  command_.job.hop = "";
  command_.job.set_size = "1";
  expect_error(2, "--set-size=1 (command line) is not allowed: write a whole number from 2");
}

TEST_F(LayoutCommandTest, AWrongSettingFails) {
  settings("SCR_SET_SIZE=one\n");
  command_.job.ranks.nodes = 2;
  expect_error(1, "SCR_SET_SIZE=one");
}

}  // namespace
}  // namespace cairn
