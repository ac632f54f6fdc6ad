// What `cairn rebuild` makes of a dead job's caches is what the job itself would have made.
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/hasty_clock.hpp"
#include "support/job_bed.hpp"
#include "tools/exit_codes.hpp"
#include "tools/rebuild_command.hpp"

namespace cairn {
namespace {

/// Every file below a folder: what is in it, its mode and its time.
struct Content {
  std::string bytes;
  std::uint32_t mode = 0;
  std::int64_t modify_ns = 0;
  bool operator==(const Content&) const = default;
};
using Tree = std::map<std::string, Content>;

Tree tree_of(const std::string& folder) {
  Tree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    struct stat status {};
    EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
    tree[std::filesystem::relative(entry.path(), folder)] = {
        read_all(entry.path()), status.st_mode & 07777U,
        status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
  }
  return tree;
}

struct Answer {
  int exit_code = 0;
  nlohmann::json datasets;
  std::string logged;
};

Answer rebuild(
    const std::string& folder,
    const FileHook& hook = [](const FileOperation&) { return Status{}; }) {
  const auto posix = make_posix_files();
  const auto files = make_hooked_files(*posix, hook);
  std::ostringstream out;
  LogCapture logged;
  HastyClock clock;
  Answer answer;
  answer.exit_code = run_rebuild_command({folder, {}, true}, *files, clock, out, logged.log());
  answer.logged = logged.text();
  answer.datasets = nlohmann::json::parse(out.str()).at("datasets");
  return answer;
}

struct SchemeCase {
  Scheme scheme;
  int failures;
  int hop = 1;
};

class EveryScheme : public testing::TestWithParam<SchemeCase> {
 protected:
  EveryScheme() {
    CheckpointSettings& checkpoint = bed_.settings.checkpoints[0];
    checkpoint.scheme = GetParam().scheme;
    checkpoint.set_failures = GetParam().failures;
    checkpoint.partner_copies = GetParam().failures;
    checkpoint.partner_hop = GetParam().hop;
    bed_.write(four_nodes(), {1});
    bed_.save("all");
  }

  /// What is left when some nodes are lost, in the nodes and, untouched by the job, in a copy.
  std::string lose(unsigned mask) {
    bed_.bring_back("all");
    for (unsigned node = 0; node < 4; ++node)
      if ((mask >> node & 1U) != 0) bed_.lose(fmt::format("n{}", node));
    bed_.save("left");
    return bed_.saved("left", "");
  }

  /// Where a rank's part is after the restart of the job.
  std::string in_job(int rank) const {
    for (const std::string& part : bed_.parts(four_nodes()[static_cast<std::size_t>(rank)], 1))
      if (part.ends_with(fmt::format("/rank.{}", rank))) return part;
    return "";
  }

  /// Copying gives the files that were left another time; those that were rebuilt have the one they
  /// had.
  void expect_same(const nlohmann::json& folders, unsigned mask) const {
    ASSERT_EQ(folders.size(), 8U);
    for (int rank = 0; rank < 8; ++rank) {
      const Tree job = tree_of(in_job(rank));
      const Tree offline = tree_of(folders.at(static_cast<std::size_t>(rank)));
      ASSERT_EQ(job.size(), offline.size()) << "rank " << rank;
      for (const auto& [name, content] : job) {
        ASSERT_TRUE(offline.contains(name)) << name;
        EXPECT_TRUE(offline.at(name).bytes == content.bytes) << "rank " << rank << ", " << name;
        const bool users = name.starts_with("files/");
        if ((mask >> (rank / 2) & 1U) != 0 && users) {
          EXPECT_EQ(offline.at(name).mode, content.mode) << name;
          EXPECT_EQ(offline.at(name).modify_ns, content.modify_ns) << name;
        }
      }
    }
  }

  JobBed bed_;
};

TEST_P(EveryScheme, OfflineAndInTheJobGiveTheSameBytesForEveryLoss) {
  int rebuilt = 0;
  for (unsigned mask = 0; mask < 15; ++mask) {
    const std::string left = lose(mask);
    const bool survived = bed_.restart(four_nodes()) == 1;
    const Tree before = tree_of(left);
    const Answer answer = rebuild(left);
    ASSERT_EQ(answer.exit_code, survived ? 0 : 1) << mask << ": " << answer.datasets;
    if (survived) {
      EXPECT_EQ(answer.datasets.at(0).at("outcome"), "whole");
      expect_same(answer.datasets.at(0).at("folders"), mask);
      ++rebuilt;
    } else {
      const std::string reason = answer.datasets.at(0).at("reason");
      EXPECT_NE(reason.find("rank "), std::string::npos) << reason;
      EXPECT_TRUE(tree_of(left) == before) << "what cannot be rebuilt is left as it is";
      EXPECT_FALSE(std::filesystem::exists(left + "/rebuilt"));
    }
  }
  EXPECT_GE(rebuilt, GetParam().scheme == Scheme::single ? 1 : 5);
}

TEST_P(EveryScheme, ASecondRunFindsNothingToDo) {
  const unsigned lost = GetParam().scheme == Scheme::single ? 0U : 2U;
  const std::string left = lose(lost);
  EXPECT_EQ(rebuild(left).datasets.at(0).at("rebuilt_ranks"), lost == 0 ? 0 : 2);
  const Tree once = tree_of(left);
  const Answer again = rebuild(left);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.datasets.at(0).at("rebuilt_ranks"), 0);
  EXPECT_EQ(again.datasets.at(0).at("repaired_blocks"), 0);
  EXPECT_TRUE(tree_of(left) == once);
}

TEST_P(EveryScheme, AFlippedByteIsRepairedOrRefused) {
  const std::string left = lose(0);
  const Tree whole = tree_of(left);
  for (const auto& [name, content] : whole) {
    const bool of_a_dataset = name.find("/dataset.") != std::string::npos;
    if (content.bytes.empty() || !of_a_dataset) continue;
    flip_bit(left + "/" + name, content.bytes.size() / 2);
    const Answer answer = rebuild(left);
    if (GetParam().scheme == Scheme::single) {
      EXPECT_EQ(answer.exit_code, 1) << name;
      flip_bit(left + "/" + name, content.bytes.size() / 2);
      continue;
    }
    ASSERT_EQ(answer.exit_code, 0) << name << ": " << answer.datasets;
    EXPECT_TRUE(read_all(left + "/" + name) == content.bytes) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Rebuild, EveryScheme,
                         testing::Values(SchemeCase{Scheme::single, 0}, SchemeCase{Scheme::xor_, 1},
                                         SchemeCase{Scheme::partner, 1},
                                         SchemeCase{Scheme::partner, 1, 2},
                                         SchemeCase{Scheme::partner, 2}, SchemeCase{Scheme::rs, 1},
                                         SchemeCase{Scheme::rs, 2}, SchemeCase{Scheme::rs, 3}));

TEST(Rebuild, TheNewestEncodingCountsWhereARankHasTwoParts) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.save("old", "n1");
  bed.lose("n1");
  // Its ranks are rebuilt on a spare; then the old node comes back with what it had, damaged.
  const Nodes with_spare = replaced(four_nodes(), "n1", "n9");
  EXPECT_EQ(bed.restart(with_spare), 1);
  bed.bring_back("old", "n1");
  for (const std::string& part : bed.parts("n1", 1))
    for (const auto& [name, content] : tree_of(part))
      if (!content.bytes.empty()) flip_bit(part + "/" + name, 0);
  bed.lose("n3");
  bed.save("left");
  const Answer answer = rebuild(bed.saved("left", ""));
  ASSERT_EQ(answer.exit_code, 0) << answer.datasets;
  EXPECT_EQ(answer.datasets.at(0).at("rebuilt_ranks"), 2);
  for (int rank = 0; rank < 8; ++rank) {
    const std::string folder =
        answer.datasets.at(0).at("folders").at(static_cast<std::size_t>(rank));
    for (int file = 0; file < files_per_rank; ++file)
      EXPECT_TRUE(read_all(fmt::format("{}/files/ckpt.1/rank {}.{}", folder, rank, file)) ==
                  content_of(rank, file, 1))
          << folder;
  }
}

TEST(Rebuild, WhatWasNotCompleteIsLeftAlone) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1});
  bed.restart(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    ASSERT_TRUE(rank.write_files(2)) << "and the run dies here";
  });
  bed.save("left");
  const std::string left = bed.saved("left", "");
  const Tree before = tree_of(left);
  const Answer answer = rebuild(left);
  EXPECT_EQ(answer.exit_code, 0);
  ASSERT_EQ(answer.datasets.size(), 2U);
  EXPECT_EQ(answer.datasets.at(0).at("outcome"), "uncommitted");
  EXPECT_EQ(answer.datasets.at(1).at("outcome"), "whole");
  EXPECT_TRUE(tree_of(left) == before);
}

TEST(Rebuild, AJobThatIsAliveIsNotDisturbed) {
  JobBed bed;
  const TemporaryFolder elsewhere(memory_base());
  bed.settings.control_base = elsewhere / "%n";  // the cache itself must say it
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      const Answer answer = rebuild(bed.node(""));
      EXPECT_EQ(answer.exit_code, exit_try_again);
      EXPECT_NE(answer.logged.find("wait until it has ended"), std::string::npos) << answer.logged;
    }
    rank.comm.barrier();
  });
}

TEST(Rebuild, AnUnreadableDirectoryIsPassedOverAndReported) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  std::filesystem::create_directory(bed.node("lost+found"));
  const Answer answer = rebuild(bed.node(""), [](const FileOperation& operation) -> Status {
    if (operation.name != "list" || !operation.path.ends_with("/lost+found")) return {};
    return fail(Code::io, "cannot list {}", operation.path);  // root may list everything
  });
  EXPECT_EQ(answer.exit_code, 0) << answer.logged;
  EXPECT_NE(answer.logged.find("/lost+found"), std::string::npos) << answer.logged;
}

TEST(Rebuild, AFolderWithoutCachesIsNamed) {
  const TemporaryFolder empty;
  for (const std::string& folder : {empty.path(), empty / "none"}) {
    const Answer answer = rebuild(folder);
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_NE(answer.logged.find(folder), std::string::npos) << answer.logged;
  }
}

}  // namespace
}  // namespace cairn
