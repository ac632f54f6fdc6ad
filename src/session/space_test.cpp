// Whether what a job keeps in its caches fits, by numbers alone: nothing is written.
#include "session/space.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "session/session.hpp"

namespace cairn {
namespace {

/// Every rank on its node, and how much it has, in shares of what is free.
struct Rank {
  std::string node;
  double share;
};

class SpaceTest : public testing::Test {
 protected:
  SpaceTest() {
    settings_.user = "tester";
    settings_.job_id = "job";
    settings_.block_bytes = 1 << 20;
    settings_.keep_old = false;  // so that one dataset is the peak
    settings_.stores.emplace_back().path = folder_ / "%n";
    CheckpointSettings& checkpoint = settings_.checkpoints.emplace_back();
    checkpoint.store = settings_.stores[0].path;
    checkpoint.set_size = 2;
    free_bytes_ = make_posix_files()->space(folder_.path())->free_bytes;
  }

  /// What the ranks agree on; "" if all fits.
  std::string complaint(const std::vector<Rank>& ranks) {
    std::string text;
    Team(static_cast<int>(ranks.size())).run([&](Communicator& comm) {
      const Status fits = check(comm, ranks[static_cast<std::size_t>(comm.rank())]);
      if (comm.rank() == 0 && !fits) text = fits.error().text;
    });
    return text;
  }

  /// Has each rank a dataset in its store already, of this share.
  void put_there(double share, std::uint32_t flags) {
    CachedDataset& dataset = present_.emplace_back();
    dataset.info.flags = flags;
    dataset.record.encoding.members = {0};
    dataset.record.encoding.member_nodes = {"n0"};
    dataset.record.encoding.member_bytes = {bytes_of_share(share)};
  }

  TemporaryFolder folder_;
  Settings settings_;
  std::vector<CachedDataset> present_;

 private:
  std::uint64_t bytes_of_share(double share) const {
    return static_cast<std::uint64_t>(share * static_cast<double>(free_bytes_));
  }

  Status check(Communicator& comm, const Rank& rank) {
    const auto files = make_posix_files();
    Settings mine = settings_;
    mine.node_name = rank.node;
    const Placement placement = gather_placement(comm, rank.node);
    std::vector<Store> stores;
    for (const StoreSettings& store : mine.stores) {
      CAIRN_ASSIGN(Store opened, Store::open(*files, store, mine, PrefixId{1}));
      stores.push_back(std::move(opened));
    }
    CAIRN_ASSIGN(const auto levels, resolve_levels(comm, mine, stores, placement));
    return check_space(comm, stores, levels, placement, mine, present_, bytes_of_share(rank.share));
  }

  std::uint64_t free_bytes_ = 0;
};

TEST_F(SpaceTest, ParityIsAsLargeAsTheLargestMemberOfTheSetNeeds) {
  // Three ranks with nothing of their own, each paired with one that has much.
  const std::vector<Rank> uneven = {{"n0", 0},   {"n0", 0},   {"n0", 0},
                                    {"n1", 0.4}, {"n2", 0.4}, {"n3", 0.4}};
  for (const Scheme scheme : {Scheme::xor_, Scheme::rs, Scheme::partner}) {
    settings_.checkpoints[0].scheme = scheme;
    settings_.checkpoints[0].set_failures = 1;
    EXPECT_NE(complaint(uneven).find("node n0 has too little space"), std::string::npos)
        << name_of(scheme) << ": " << complaint(uneven);
  }
  settings_.checkpoints[0].scheme = Scheme::single;
  EXPECT_EQ(complaint(uneven), "");
}

TEST_F(SpaceTest, AStoreOfARackIsFilledByAllItsNodes) {
  for (const auto& [node, rack] : std::vector<std::pair<std::string, std::string>>{
           {"n0", "r0"}, {"n1", "r0"}, {"n2", "r1"}, {"n3", "r1"}})
    settings_.node_groups[node]["RACK"] = rack;
  settings_.checkpoints[0].scheme = Scheme::single;
  const std::vector<Rank> ranks = {{"n0", 0.6}, {"n1", 0.6}, {"n2", 0.1}, {"n3", 0.1}};
  EXPECT_EQ(complaint(ranks), "");
  settings_.stores[0].group = "RACK";
  EXPECT_NE(complaint(ranks).find("node n0 has too little space"), std::string::npos)
      << complaint(ranks);
}

TEST_F(SpaceTest, ACheckpointGivesItsRoomToTheNextOneAnOutputDoesNot) {
  const std::vector<Rank> alone = {{"n0", 1.5}};
  EXPECT_NE(complaint(alone), "");
  for (const std::uint32_t flags : {flag_output, flag_output | flag_checkpoint, flag_checkpoint}) {
    present_.clear();
    put_there(0.6, flags);
    EXPECT_EQ(complaint(alone).empty(), flags == flag_checkpoint) << flags;
  }
}

TEST_F(SpaceTest, TwoStoresOnOneFileSystemAreFilledTogether) {
  const std::vector<Rank> alone = {{"n0", 0.6}};
  EXPECT_EQ(complaint(alone), "");
  settings_.stores.emplace_back().path = folder_ / "second.%n";
  CheckpointSettings second = settings_.checkpoints[0];
  second.id = 1;
  second.interval = 2;
  second.store = settings_.stores[1].path;
  settings_.checkpoints.push_back(second);
  const std::string text = complaint(alone);
  EXPECT_NE(text.find("second.n0"), std::string::npos) << text;
  EXPECT_NE(text.find("up to 1 dataset of"), text.rfind("up to 1 dataset of")) << text;
}

/// What is in flight keeps its room, on whatever level.
TEST_F(SpaceTest, ALevelThatIsCopiedBehindNeedsRoomForTwoMore) {
  const std::vector<Rank> alone = {{"n0", 0.4}};
  CheckpointSettings second = settings_.checkpoints[0];
  second.id = 1;
  second.interval = 2;
  settings_.checkpoints.push_back(second);
  EXPECT_EQ(complaint(alone), "");
  settings_.checkpoints[1].flush_async = true;
  EXPECT_NE(complaint(alone).find("too little space"), std::string::npos);
  EXPECT_NE(complaint(alone).find("without SCR_FLUSH_ASYNC, which keeps 2 more"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn
