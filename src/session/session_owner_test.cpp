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
  auto living =
      Keeper::take_over(*files, *cluster.clock, {cluster.settings.prefix}, owner, Claim::forced);
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

/// The caller does everything, and there is no thread beside it.
class NoMoreThreads : public Background {
 public:
  void post(std::uint64_t bytes, std::function<void()> task) override {
    caller_->post(bytes, std::move(task));
  }
  void wait() override { caller_->wait(); }
  std::unique_ptr<Repeated> repeat(std::int64_t, std::function<void()>) override { return nullptr; }
  void in_parallel(int threads, const std::function<void()>& work) override {
    caller_->in_parallel(threads, work);
  }

 private:
  std::unique_ptr<Background> caller_ = make_foreground();
};

TEST(SessionOwner, AJobThatCannotGiveSignsOfLifeSaysSo) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  EXPECT_FALSE(cluster.said("signs of life")) << cluster.said();
  cluster.run(four_nodes(), [](JobRank& rank) {
    rank.background = std::make_unique<NoMoreThreads>();
    ASSERT_TRUE(rank.init());
    rank.expect_written(3);
  });
  EXPECT_TRUE(cluster.said("signs of life")) << cluster.said();
}

}  // namespace
}  // namespace cairn
