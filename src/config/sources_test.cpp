#include "config/sources.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/resolve.hpp"

namespace cairn {
namespace {

SettingSources full() {
  SettingSources sources;
  sources.process = {
      {{"SCR_DEBUG", "1"}, {"SCR_NODE_NAME", "zero"}, {"USER", "ann\xff"}}, "host0", "/w\xfe", 7};
  sources.user_file = {"/p/.scrconf", {{"CKPT", "0", {{"TYPE", "RS"}}, 3}}};
  sources.app_entries = {{"SCR_FLUSH", "2", {}, 0}};
  return sources;
}

TEST(Sources, SurviveTheBroadcastWithAnyBytes) {
  const Blob blob = to_blob(full());
  const auto back = sources_from_blob(blob);
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->process.environment, full().process.environment);
  EXPECT_EQ(back->process.working_folder, "/w\xfe");
  EXPECT_EQ(back->process.user_id, 7U);
  EXPECT_EQ(back->user_file.name, "/p/.scrconf");
  EXPECT_EQ(back->user_file.entries.at(0).children.at(0).value, "RS");
  EXPECT_EQ(back->user_file.entries.at(0).line, 3);
  EXPECT_EQ(back->app_entries.at(0).key, "SCR_FLUSH");
  EXPECT_EQ(to_blob(*back), blob);
}

TEST(Sources, BytesOfSomethingElseAreCorrupt) {
  const Blob blob = to_blob(full());
  const Blob cut(blob.begin(), blob.end() - 1);
  for (const Blob& bad : {Blob{}, cut, Blob(3, std::byte{0x80}), Blob(1, std::byte{0x01})}) {
    const auto back = sources_from_blob(bad);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, Code::corrupt);
  }
}

TEST(Sources, EachRankTakesItsOwnNode) {
  SettingSources sources = full();
  ProcessFacts own{{{"SCR_DEBUG", "2"}}, "host1", "/other", 7};
  take_own_facts(sources, own);
  EXPECT_EQ(resolve(sources)->settings.node_name, "host1");
  EXPECT_EQ(resolve(sources)->settings.debug, 1);
  own.environment["SCR_NODE_NAME"] = "one";
  take_own_facts(sources, own);
  EXPECT_EQ(resolve(sources)->settings.node_name, "one");
}

TEST(Sources, OnlyWhatConcernsSettings) {
  for (const char* name : {"SCR_X", "CAIRN_X", "USER", "SLURM_JOB_ID", "REDSET_ENCODE"})
    EXPECT_TRUE(concerns_settings(name)) << name;
  for (const char* name : {"PATH", "XSCR_", "", "USERNAME"}) EXPECT_FALSE(concerns_settings(name));
}

}  // namespace
}  // namespace cairn
