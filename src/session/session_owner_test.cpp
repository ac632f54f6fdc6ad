// Several jobs on one prefix directory.
#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

TEST(SessionOwner, AnotherLivingJobOnThePrefixDirectoryIsRefused) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  const auto files = make_posix_files();
  const auto owner = *read_owner(*files, {cluster.settings.prefix});
  auto living = Keeper::take_over(*files, *cluster.clock, {cluster.settings.prefix}, *owner);
  ASSERT_TRUE(living);
  {
    const auto background = make_background_thread();
    const auto heartbeat = background->repeat(100'000, living->heartbeat());
    cluster.settings.job_id = "other";
    cluster.run(four_nodes(), [](JobRank& rank) {
      const Status ready = rank.init();
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.error().code, Code::busy);
      EXPECT_NE(ready.error().text.find("job job of tester"), std::string::npos);
    });
  }
  cluster.settings.job_id = "job";
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_TRUE(rank.session->finalize());
  });
  cluster.settings.job_id = "other";
  EXPECT_EQ(cluster.restart(four_nodes()), 2) << "from the prefix directory";
}

TEST(SessionOwner, TwoJobsThatNobodyHasNamedAreToldApartByTheirHosts) {
  PrefixCluster cluster;
  cluster.settings.job_id = std::string(unnamed_job);
  cluster.write(four_nodes(), {1, 2});
  const auto files = make_posix_files();
  OwnerRecord owner = **read_owner(*files, {cluster.settings.prefix});
  ASSERT_EQ(owner.job_id, unnamed_job);
  owner.host = "elsewhere";
  auto living = Keeper::take_over(*files, *cluster.clock, {cluster.settings.prefix}, owner);
  ASSERT_TRUE(living);
  {
    const auto background = make_background_thread();
    const auto heartbeat = background->repeat(100'000, living->heartbeat());
    cluster.run(four_nodes(), [](JobRank& rank) {
      const Status ready = rank.init();
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.error().code, Code::busy);
    });
  }
  EXPECT_TRUE(living->resign());
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
}

}  // namespace
}  // namespace cairn
