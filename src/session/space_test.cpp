// Whether what a job keeps in its caches fits, by numbers alone: nothing is written.
#include "session/space.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

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

  Settings settings_;

 private:
  Status check(Communicator& comm, const Rank& rank) {
    const auto files = make_posix_files();
    Settings mine = settings_;
    mine.node_name = rank.node;
    const Placement placement = gather_placement(comm, rank.node);
    std::vector<Store> stores;
    for (const StoreSettings& store : mine.stores) {
      CAIRN_ASSIGN(Store opened, Store::open(*files, store, mine));
      stores.push_back(std::move(opened));
    }
    CAIRN_ASSIGN(const auto levels, resolve_levels(comm, mine, stores, placement));
    const auto bytes = static_cast<std::uint64_t>(rank.share * static_cast<double>(free_bytes_));
    return check_space(comm, stores, levels, placement, mine, {}, bytes);
  }

  TemporaryFolder folder_;
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

}  // namespace
}  // namespace cairn
