#include "session/last_run.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"

namespace cairn {
namespace {

/// Of ranks on these nodes.
LastRunRecord described(const std::vector<std::string>& nodes) {
  LastRunRecord record;
  Team(static_cast<int>(nodes.size())).run([&](Communicator& comm) {
    Settings settings;
    settings.job_id = "77";
    settings.user = "ada";
    settings.node_name = nodes[static_cast<std::size_t>(comm.rank())];
    settings.stores.resize(3);
    settings.stores[0].path = "/dev/shm/%n";
    settings.stores[1].path = "/off";
    settings.stores[1].enabled = false;
    settings.stores[2].path = "/scratch";
    settings.stores[2].group = "WORLD";
    settings.prefix = "/pfs/job";
    LastRunRecord mine = describe_run(comm, gather_placement(comm, settings.node_name), settings,
                                      "host of " + settings.node_name);
    if (comm.rank() == 0)
      record = std::move(mine);
    else
      EXPECT_EQ(mine, LastRunRecord{});
  });
  return record;
}

TEST(LastRun, NamesEachNodeOnceWithItsHostAndItsRanks) {
  EXPECT_EQ(described({"a", "b", "a", "c", "b"}).nodes,
            (std::vector<NodeOfRun>{
                {"a", "host of a", 2}, {"b", "host of b", 2}, {"c", "host of c", 1}}));
  EXPECT_EQ(described({"a"}).nodes, (std::vector<NodeOfRun>{{"a", "host of a", 1}}));
}

TEST(LastRun, NamesTheJobItsProcessAndTheStoresInUse) {
  const LastRunRecord record = described({"a", "b"});
  EXPECT_EQ(record.job_id, "77");
  EXPECT_EQ(record.user, "ada");
  EXPECT_EQ(record.prefix, "/pfs/job");
  EXPECT_EQ(record.host, "host of a");
  EXPECT_EQ(life_of(record.process), Life::lives);
  EXPECT_EQ(record.stores, (std::vector<StoreOfRun>{{"/dev/shm/%n", false}, {"/scratch", true}}));
}

}  // namespace
}  // namespace cairn
