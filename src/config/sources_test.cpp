#include "config/sources.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

Result<SettingSources> read_back(const nlohmann::json& json) {
  const auto cbor = nlohmann::json::to_cbor(json);
  return sources_from_blob(std::as_bytes(std::span(cbor)));
}

TEST(Sources, EndlessNestingIsCorrupt) {
  const auto back = sources_from_blob(Blob(1 << 20, std::byte{0x81}));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Code::corrupt);
}

TEST(Sources, OtherEncodingsAreCorrupt) {
  const Blob blob = to_blob(full());
  const auto* begin = reinterpret_cast<const std::uint8_t*>(blob.data());
  const auto good = nlohmann::json::from_cbor(begin, begin + blob.size());
  ASSERT_TRUE(read_back(good));
  for (const nlohmann::json& number :
       {nlohmann::json(1e300), nlohmann::json(7.0), nlohmann::json(-7), nlohmann::json(true),
        nlohmann::json(std::uint64_t{7} + (std::uint64_t{1} << 32))}) {
    auto bad = good;
    bad["process"]["user_id"] = number;
    EXPECT_FALSE(read_back(bad)) << number;
  }
  auto more = good;
  more["more"] = 1;
  EXPECT_FALSE(read_back(more));
}

TEST(Sources, EachRankTakesItsOwnNode) {
  SettingSources sources = full();
  ProcessFacts own{{{"SCR_DEBUG", "2"}}, "host1", "/other", 7};
  ASSERT_TRUE(take_own_facts(sources, own));
  EXPECT_EQ(resolve(sources)->settings.node_name, "host1");
  EXPECT_EQ(resolve(sources)->settings.debug, 1);
  own.environment["SCR_NODE_NAME"] = "one";
  ASSERT_TRUE(take_own_facts(sources, own));
  EXPECT_EQ(resolve(sources)->settings.node_name, "one");
  own.environment["HOME"] = "h";
  own.environment["SCR_NODE_NAME"] = "$HOME.1";
  ASSERT_TRUE(take_own_facts(sources, own));
  EXPECT_EQ(resolve(sources)->settings.node_name, "h.1");
  own.environment["SCR_NODE_NAME"] = "$NOWHERE";
  EXPECT_FALSE(take_own_facts(sources, own));
}

TEST(Sources, HaveOnlyWhatConcernsSettings) {
  for (const char* name : {"SCR_X", "CAIRN_X", "USER", "SLURM_JOB_ID", "REDSET_ENCODE"})
    EXPECT_TRUE(concerns_settings(name)) << name;
  for (const char* name : {"PATH", "XSCR_", "", "USERNAME"}) EXPECT_FALSE(concerns_settings(name));
}

}  // namespace
}  // namespace cairn
