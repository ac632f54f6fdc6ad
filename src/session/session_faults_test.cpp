// The fault table for every scheme: which losses and damage a restart makes good, with every byte
// compared on every rank; what it cannot make good is refused, and the dataset before it offered.
#include <map>
#include <set>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> node_names = {"n0", "n1", "n2", "n3"};
const std::vector<std::string> spares = {"m0", "m1", "m2", "m3"};

/// Numbers of nodes that fail together.
using Failed = std::set<int>;

struct Protection {
  Scheme scheme;
  int failures = 0;
  int hop = 1;

  /// What the scheme promises in sets of a member on each of the four nodes. By hand, not by the
  /// arithmetic of the library.
  bool holds(const Failed& failed) const {
    if (scheme != Scheme::partner) return static_cast<int>(failed.size()) <= failures;
    return std::all_of(failed.begin(), failed.end(), [&](int node) {
      for (int copy = 1; copy <= failures; ++copy)
        if (!failed.contains((node + copy * hop) % 4)) return true;
      return false;
    });
  }
};

/// How gtest names the cases: "partner2hop1".
std::string name_of_case(const testing::TestParamInfo<Protection>& tested) {
  const Protection& scheme = tested.param;
  return fmt::format("{}{}hop{}", name_of(scheme.scheme), scheme.failures, scheme.hop);
}

/// All of none, one, two, ... of the four; under sanitizers some of them.
std::vector<Failed> every_loss() {
  std::vector<Failed> losses;
  for (unsigned mask = 0; mask < 16; mask += sanitized ? 4 : 1) {
    Failed& loss = losses.emplace_back();
    for (int node = 0; node < 4; ++node)
      if ((mask >> node & 1U) != 0) loss.insert(node);
  }
  return losses;
}

// --- where the ranks run then ---

Nodes on_spares(const Failed& failed) {
  Nodes nodes = four_nodes();
  for (const int node : failed)
    nodes = replaced(nodes, node_names[static_cast<std::size_t>(node)],
                     spares[static_cast<std::size_t>(node)]);
  return nodes;
}

/// None where it was by habit, and no two that were together are.
Nodes on_spares_shuffled(const Failed& failed) {
  const Nodes before = on_spares(failed);
  Nodes nodes;
  for (const std::size_t rank : {2U, 7U, 5U, 0U, 6U, 3U, 1U, 4U}) nodes.push_back(before[rank]);
  return nodes;
}

/// Backwards and dealt out in turn; on a spare where nothing is left.
Nodes on_survivors(const Failed& failed) {
  std::vector<std::string> survivors;
  for (int node = 3; node >= 0; --node)
    if (!failed.contains(node)) survivors.push_back(node_names[static_cast<std::size_t>(node)]);
  if (survivors.empty()) survivors = spares;
  Nodes nodes;
  for (std::size_t rank = 0; rank < 8; ++rank) nodes.push_back(survivors[rank % survivors.size()]);
  return nodes;
}

class SessionFaults : public testing::TestWithParam<Protection> {
 protected:
  SessionFaults() {
    CheckpointSettings& checkpoint = bed_.settings.checkpoints[0];
    checkpoint.scheme = GetParam().scheme;
    checkpoint.set_failures = checkpoint.partner_copies = std::max(GetParam().failures, 1);
    checkpoint.partner_hop = GetParam().hop;
    bed_.settings.stores[0].count = 2;
  }

  /// Nodes as they were when these datasets had been written, without those that failed.
  void begin(const Failed& failed) {
    bed_.bring_back("written");
    lose(failed, node_names);
  }

  void lose(const Failed& failed, const std::vector<std::string>& names) {
    for (const int node : failed) bed_.lose(names[static_cast<std::size_t>(node)]);
  }

  void write(const std::vector<int>& datasets, const Nodes& nodes = four_nodes()) {
    bed_.write(nodes, datasets);
    bed_.save("written");
  }

  /// Why a dataset is not offered: what is lost names its node. Of SINGLE nothing else knows that
  /// the rank was there.
  void expect_reason(int dataset, const Failed& failed) const {
    EXPECT_TRUE(bed_.logs(fmt::format("dataset {} cannot be restored", dataset)))
        << bed_.log_text();
    if (GetParam().scheme == Scheme::single || failed.size() == 4) return;
    const bool named = std::any_of(failed.begin(), failed.end(), [&](int node) {
      return bed_.logs(fmt::format("(written on n{})", node));
    });
    EXPECT_TRUE(named) << bed_.log_text();
  }

  JobBed bed_;
};

// --- nodes ---

TEST_P(SessionFaults, NodesLostAreRebuiltOnSparesAndOnSurvivorsOrTheReasonIsReported) {
  write({1});
  for (const Failed& failed : every_loss())
    for (const auto& place : {on_spares, on_spares_shuffled, on_survivors}) {
      const Nodes nodes = place(failed);
      SCOPED_TRACE(
          fmt::format("lost {}, then on {}", fmt::join(failed, " "), fmt::join(nodes, " ")));
      begin(failed);
      const bool held = GetParam().holds(failed);
      ASSERT_EQ(bed_.restart(nodes), held ? 1 : 0) << bed_.log_text();
      if (!held && failed.size() < 4) expect_reason(1, failed);
    }
}

TEST_P(SessionFaults, WhatWasRebuiltIsProtectedAgain) {
  write({1});
  for (const Failed& failed : every_loss()) {
    if (!GetParam().holds(failed) || failed.empty()) continue;
    SCOPED_TRACE(fmt::format("lost {}", fmt::join(failed, " ")));
    begin(failed);
    ASSERT_EQ(bed_.restart(on_spares(failed)), 1);
    lose(failed, spares);
    ASSERT_EQ(bed_.restart(on_spares(failed)), 1) << "the spares were lost too";
    ASSERT_EQ(bed_.restart(on_survivors(failed)), 1);
  }
}

TEST_P(SessionFaults, TheNewestBeyondRepairGivesWayToTheOneBefore) {
  write({1, 2});
  for (const Failed& failed : every_loss()) {
    if (failed.empty()) continue;
    SCOPED_TRACE(fmt::format("lost {}", fmt::join(failed, " ")));
    begin({});
    for (const int node : failed)
      for (const std::string& part : bed_.parts(node_names[static_cast<std::size_t>(node)], 2))
        fs::remove_all(part);
    const bool held = GetParam().holds(failed);
    ASSERT_EQ(bed_.restart(four_nodes()), held ? 2 : 1) << bed_.log_text();
    if (!held && failed.size() < 4) expect_reason(2, failed);
  }
}

// --- files ---

void put_a_folder(const std::string& path) {
  fs::remove(path);
  fs::create_directory(path);
  std::ofstream(path + "/stray") << "not yours";
}

using Damage = std::function<void(const std::string&)>;
const std::map<std::string, Damage> damages = {
    {"first byte flipped", [](const std::string& path) { flip_bit(path, 0); }},
    {"middle byte flipped", [](const std::string& path) { flip_bit(path); }},
    {"last byte flipped", [](const std::string& path) { flip_bit(path, fs::file_size(path) - 1); }},
    {"cut to half",
     [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }},
    {"emptied", [](const std::string& path) { fs::resize_file(path, 0); }},
    {"made longer", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; }},
    {"deleted", [](const std::string& path) { fs::remove(path); }},
    {"replaced by a folder", put_a_folder}};

/// Of rank 2, on node n1.
constexpr int victim = 2;
constexpr int victims_node = 1;

std::vector<std::string> files_of_victim(const JobBed& bed) {
  const std::string part = bed.parts(node_names[victims_node], 2)[0];
  EXPECT_TRUE(part.ends_with(fmt::format("/rank.{}", victim))) << part;
  std::vector<std::string> files = {part + "/record"};
  for (int file = 0; file < files_per_rank; ++file)
    files.push_back(fmt::format("{}/files/ckpt.2/rank {}.{}", part, victim, file));
  // The parity of the dataset; the other such file beside it is the next one's.
  for (const auto& entry : fs::directory_iterator(part))
    if (entry.path().filename().string().starts_with("parity.")) files.push_back(entry.path());
  return files;
}

class SessionDamage : public SessionFaults {};

/// With nodes lost beside, n1 counts as failed too; but what is damaged may lie in stripes in which
/// nothing else is missing.
TEST_P(SessionDamage, ADamagedFileIsRepairedOrRefusedAloneAndWithNodesLost) {
  write({1, 2});
  int refused = 0;
  for (const Failed& lost : std::vector<Failed>{{}, {0}, {2}, {3}, {0, 2}}) {
    if (!GetParam().holds(lost) || (sanitized && (lost == Failed{0} || lost == Failed{2})))
      continue;
    Failed failed = lost;
    failed.insert(victims_node);
    for (const std::string& file : files_of_victim(bed_))
      for (const auto& [name, damage] : damages) {
        begin(lost);
        SCOPED_TRACE(fmt::format("{} {}, lost {}", file, name, fmt::join(lost, " ")));
        damage(file);
        const int from = bed_.restart(on_spares(lost));
        ASSERT_TRUE(from == 2 || (from == 1 && !GetParam().holds(failed))) << bed_.log_text();
        refused += from == 1 ? 1 : 0;
        if (!GetParam().holds(failed)) continue;
        lose({3}, node_names);
        lose({3}, spares);
        ASSERT_EQ(bed_.restart(on_spares(lost)), 2) << "it was not repaired for good";
      }
    begin({});
  }
  EXPECT_GT(refused, 0) << "nothing was beyond repair";
}

// --- the number of ranks ---

using Tree = std::map<std::string, std::string>;

/// Every file on every node, but for the locks, which say who runs.
/// Of what the datasets are made of; who runs leaves a lock and a note in every folder he sees.
Tree tree_of(const std::string& folder) {
  const std::set<std::string> of_a_run = {"lock", "prefix"};
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !of_a_run.contains(entry.path().filename()))
      tree[entry.path()] = read_all(entry.path());
  return tree;
}

const Nodes six_ranks = {"n0", "n0", "n1", "n1", "n2", "n2"};

void expect_refused(JobRank& rank, std::size_t ranks_then) {
  const auto refused = [&](const Error& error) {
    EXPECT_EQ(error.code, Code::wrong_ranks) << error.text;
    for (const std::size_t number : {ranks_then, static_cast<std::size_t>(rank.comm.size())})
      EXPECT_NE(error.text.find(fmt::format(" {}", number)), std::string::npos) << error.text;
  };
  const auto have = rank.session->have_restart();
  ASSERT_FALSE(have);
  refused(have.error());
  const auto restarted = rank.session->start_restart();
  ASSERT_FALSE(restarted);
  refused(restarted.error());
  for (const Status& status :
       {rank.session->start_checkpoint(), rank.session->start_output("new", flag_output),
        rank.session->datasets().current("ckpt.1")}) {
    ASSERT_FALSE(status);
    refused(status.error());
  }
  EXPECT_EQ(name_of(rank.session->phase()), "IDLE");
}

TEST_P(SessionFaults, AnotherNumberOfRanksIsRefusedAndTheCacheIsUntouched) {
  for (const auto& [then, now] : {std::pair{four_nodes(), six_ranks}, {six_ranks, four_nodes()}}) {
    SCOPED_TRACE(fmt::format("{} ranks, then {}", then.size(), now.size()));
    for (const std::string& node : node_names) bed_.lose(node);
    write({1, 2}, then);
    const Tree before = tree_of(bed_.node(""));
    bed_.run_well(now, [&](JobRank& rank) { expect_refused(rank, then.size()); });
    EXPECT_TRUE(tree_of(bed_.node("")) == before);
    EXPECT_EQ(bed_.restart(then), 2);
  }
}

const std::vector<Protection> every_scheme = {
    {Scheme::single},  {Scheme::partner, 1}, {Scheme::partner, 1, 2}, {Scheme::partner, 2},
    {Scheme::xor_, 1}, {Scheme::rs, 1},      {Scheme::rs, 2},         {Scheme::rs, 3}};
INSTANTIATE_TEST_SUITE_P(Schemes, SessionFaults, testing::ValuesIn(every_scheme), name_of_case);
INSTANTIATE_TEST_SUITE_P(Schemes, SessionDamage,
                         testing::Values(Protection{Scheme::single}, Protection{Scheme::partner, 1},
                                         Protection{Scheme::xor_, 1}, Protection{Scheme::rs, 2}),
                         name_of_case);

TEST(SessionRankCount, OtherNumberOfRanksMayBeginAfresh) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.settings.on_mismatch = OnMismatch::fresh;
  EXPECT_EQ(bed.restart(six_ranks, [](JobRank& rank) { rank.expect_written(2); }), 0);
  EXPECT_EQ(bed.parts("n1"), bed.parts("n1", 2));
  EXPECT_EQ(bed.restart(six_ranks), 2);
}

/// Nothing there counts for that run, so no number of ranks is refused; nor is anything removed.
TEST(SessionRankCount, WithDistributeOffAnyNumberBeginsAnewBesideWhatIsThere) {
  for (const Nodes& nodes : {four_nodes(), six_ranks}) {
    JobBed bed;
    bed.write(four_nodes(), {1});
    const Tree before = tree_of(bed.node(""));
    bed.settings.distribute = false;
    EXPECT_EQ(bed.restart(nodes), 0);
    EXPECT_TRUE(bed.logs("because SCR_DISTRIBUTE=0")) << bed.log_text();
    EXPECT_TRUE(tree_of(bed.node("")) == before);
    bed.settings.distribute = true;
    EXPECT_EQ(bed.restart(four_nodes()), 1) << "as if that run had not been";

    bed.settings.distribute = false;
    bed.write(nodes, {2, 3});
    for (const std::string& node : node_names) EXPECT_EQ(bed.parts(node, 1).size(), 2U) << node;
    bed.settings.distribute = true;
    EXPECT_EQ(bed.restart(nodes), 3);
  }
}

}  // namespace
}  // namespace cairn
