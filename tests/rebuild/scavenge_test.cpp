// What is left of a dead job on its nodes gets to the prefix directory, whole, or not at all.
#include <atomic>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>
#include <sstream>

#include "files/hasty_clock.hpp"
#include "recovery/dead_caches.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"
#include "support/job_bed.hpp"
#include "tools/as_owner.hpp"
#include "tools/exit_codes.hpp"
#include "tools/explain/explain_command.hpp"
#include "tools/index/index_changes.hpp"
#include "tools/scavenge_command.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Outcome = SalvagedDataset::Outcome;

FileHook no_faults() {
  return [](const FileOperation&) { return Status{}; };
}

/// A job that has died on four nodes, with nothing flushed of its newest checkpoint.
class Scavenge : public testing::Test {
 protected:
  Scavenge() {
    bed_.settings.flush_interval = 0;
    bed_.clock = std::make_unique<HastyClock>();
  }

  void use(Scheme scheme, int failures) {
    CheckpointSettings& checkpoint = bed_.settings.checkpoints[0];
    checkpoint.scheme = scheme;
    checkpoint.set_failures = failures;
    checkpoint.partner_copies = failures;
  }

  Settings settings_on(const std::string& node) const {
    Settings settings = bed_.settings;
    settings.node_name = node;
    return settings;
  }
  PrefixFolder folder() const { return {bed_.settings.prefix}; }

  /// As cairn scavenge-node.
  Result<ScavengeAccount> scavenge_node(const std::string& node, const FileHook& hook = no_faults(),
                                        std::int64_t end_time_s = 0, const std::string& name = "") {
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, hook);
    const auto background = make_foreground();
    JobCaches caches = caches_on_node(*files, settings_on(node));
    CAIRN_ASSIGN(const CacheLocks locks, lock_caches(*files, *bed_.clock, caches.used));
    CAIRN_ASSIGN(std::vector<Holding> holdings,
                 find_holdings(*files, caches.used, folder(), caches.unreadable, bed_.log()));
    EXPECT_EQ(caches.unreadable, Names{});
    std::erase_if(holdings, [&](const Holding& holding) {
      return name.empty() ? holding.in_prefix : holding.info.name != name;
    });
    return scavenge(*files, *bed_.clock, folder(), node, holdings,
                    {{*background, 1, 1024}, 0, end_time_s}, nullptr, bed_.log());
  }

  /// Also if it is in the prefix directory.
  void scavenge_all_of(const std::string& name) {
    for (const std::string node : {"n0", "n1", "n2", "n3"}) {
      const auto saved = scavenge_node(node, no_faults(), 0, name);
      ASSERT_TRUE(saved) << saved.error().text;
    }
  }

  void scavenge_nodes() {
    for (const std::string node : {"n0", "n1", "n2", "n3"}) {
      const auto saved = scavenge_node(node);
      ASSERT_TRUE(saved) << saved.error().text;
    }
  }

  /// As cairn rebuild.
  Result<std::vector<SalvagedDataset>> rebuild(
      const FileHook& hook = no_faults(), const std::function<void()>& before_publishing = [] {}) {
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, hook);
    CAIRN_ASSIGN(Salvage salvage,
                 make_whole(*files, *bed_.clock, folder(),
                            {[](const Remains&) { return true; }, also_outlived_}, bed_.log()));
    CAIRN_TRY(as_owner({"cairn rebuild"}, *files, *bed_.clock, settings_on("n0"), bed_.log(),
                       [&](Communicator& comm, const Site& site) {
                         before_publishing();
                         publish(comm, site, salvage, "job", bed_.log());
                         return Status{};
                       }));
    return std::move(salvage.datasets);
  }

  /// Of dataset `number`, the outcome; none if it is not among them.
  std::optional<Outcome> outcome_of(const Result<std::vector<SalvagedDataset>>& datasets,
                                    std::uint64_t number) {
    EXPECT_TRUE(datasets) << datasets.error().text;
    for (const SalvagedDataset& dataset : *datasets)
      if (dataset.remains.number == number) {
        reason_ = dataset.reason;
        return dataset.outcome;
      }
    return std::nullopt;
  }

  /// A new allocation, whose caches are empty: from which dataset, all bytes compared.
  int restart_elsewhere() {
    bed_.lose_all_nodes();
    return bed_.restart(four_nodes());
  }

  /// As cairn index delete.
  Status delete_dataset(const std::string& name, const FileHook& hook = no_faults()) {
    IndexCommand command;
    command.action = IndexCommand::Action::remove;
    command.name = name;
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, hook);
    const auto report = change_index(command, *files, *bed_.clock, settings_on("n0"), bed_.log());
    if (!report) return tl::unexpected(report.error());
    return report->failures.empty() ? Status{} : tl::unexpected(report->failures.back());
  }

  /// As cairn index list.
  /// Which takes no look at the files that were saved: there may be very many.
  std::string list(bool json) {
    IndexCommand command;
    command.json = json;
    std::ostringstream out;
    const auto posix = make_posix_files();
    const auto files = make_hooked_files(*posix, [](const FileOperation& operation) {
      EXPECT_EQ(operation.path.find("/files"), std::string::npos) << operation.path;
      return Status{};
    });
    EXPECT_EQ(
        run_index_command(command, *files, *bed_.clock, bed_.process_on("login"), out, bed_.log()),
        0);
    return out.str();
  }

  std::string explain() {
    std::ostringstream out;
    const auto files = make_posix_files();
    EXPECT_EQ(
        run_explain_command({}, *files, *bed_.clock, bed_.process_on("login"), out, bed_.log()), 0);
    return out.str();
  }

  /// Dataset 1, with these words, and what can be done.
  void expect_told_as_refused(const std::string& words) {
    const auto reported = nlohmann::json::parse(list(true)).at("scavenged")[0];
    EXPECT_EQ(reported.at("state"), "refused") << reported;
    EXPECT_NE(reported.at("refused").dump().find(words), std::string::npos) << reported;
    const std::string uuid = reported.at("uuid");
    for (const std::string& text : {list(false), explain()}) {
      EXPECT_NE(text.find(words), std::string::npos) << text;
      EXPECT_NE(text.find("cairn rebuild " + uuid), std::string::npos) << text;
      EXPECT_NE(text.find("cairn index delete " + uuid), std::string::npos) << text;
      EXPECT_EQ(text.find("can be made whole"), std::string::npos) << text;
    }
  }

  void save_all() { bed_.save("all"); }  // also the prefix directory
  void bring_all_back() { bed_.bring_back("all"); }

  std::vector<std::string> left_over() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder().prefix)) {
      const std::string name = entry.path().filename();
      const bool copy = entry.path().string().find("/.cairn/scavenged/") != std::string::npos ||
                        entry.path().string().find("/.cairn/rebuilt/") != std::string::npos;
      if (name.starts_with(".cairn.") || (copy && !entry.is_directory() && name != "lock"))
        found.push_back(entry.path());
    }
    return found;
  }

  PrefixJobBed bed_;
  std::string reason_;
  bool also_outlived_ = false;
};

struct ScavengeCase {
  Scheme scheme;
  int failures;
};

class EverySchemeScavenged : public Scavenge, public testing::WithParamInterface<ScavengeCase> {};

/// Each choice of nodes that is lost after the job has died, and what a scheme makes of it.
TEST_P(EverySchemeScavenged, EachLossIsRebuiltOrReportedAndTheOlderOneStays) {
  use(GetParam().scheme, GetParam().failures);
  bed_.settings.flush_interval = 2;
  bed_.write(four_nodes(), {1, 2, 3});  // 2 is in the prefix directory
  save_all();
  for (unsigned mask = 0; mask < 15; ++mask) {
    SCOPED_TRACE(fmt::format("nodes {:04b} are lost", mask));
    bring_all_back();
    int lost = 0;
    for (unsigned node = 0; node < 4; ++node)
      if ((mask >> node & 1U) != 0) {
        bed_.lose(fmt::format("n{}", node));
        ++lost;
      }
    scavenge_nodes();
    const auto datasets = rebuild();
    const auto outcome = outcome_of(datasets, 3);
    const bool holds = outcome == Outcome::published;
    if (lost <= GetParam().failures) {
      ASSERT_TRUE(holds) << reason_;
    }
    // PARTNER holds some greater losses: of nodes that are no neighbours.
    if (!holds || GetParam().scheme != Scheme::partner) {
      ASSERT_EQ(outcome, lost <= GetParam().failures ? Outcome::published : Outcome::lost);
    }
    if (holds)
      EXPECT_EQ(left_over(), Names{});
    else
      EXPECT_NE(reason_.find("rank"), std::string::npos) << reason_;
    EXPECT_EQ(bed_.listed(), holds ? (Names{"ckpt.3", "ckpt.2"}) : Names{"ckpt.2"});
    ASSERT_EQ(restart_elsewhere(), holds ? 3 : 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Rebuild, EverySchemeScavenged,
                         testing::Values(ScavengeCase{Scheme::single, 0},
                                         ScavengeCase{Scheme::partner, 1},
                                         ScavengeCase{Scheme::xor_, 1},
                                         ScavengeCase{Scheme::rs, 2}));

/// That another rebuild ends it is tried at every operation, and with power failures, in
/// cut_off_test.cpp.
TEST_F(Scavenge, ARebuildThatIsKilledHarmsNoJobThatComesNext) {
  bed_.settings.flush_interval = 2;
  bed_.write(four_nodes(), {1, 2, 3});
  bed_.lose("n2");
  scavenge_nodes();
  save_all();
  const int step = sanitized ? 197 : 23;
  bool ended = false;
  for (int count = 0; !ended; count += step) {
    SCOPED_TRACE(fmt::format("killed before operation {}", count));
    bring_all_back();
    ended = true;
    std::atomic<int> operations = 0;
    try {
      (void)rebuild([&](const FileOperation&) -> Status {
        if (operations++ >= count) throw Crash();
        return {};
      });
    } catch (const Crash&) {
      ended = false;
    }
    bed_.expect_own_files(2);
    const int from = restart_elsewhere();
    ASSERT_TRUE(from == 3 || from == 2) << from;
    const auto later = rebuild();  // what the job made of the plan harms nothing
    ASSERT_TRUE(later) << later.error().text;
    bed_.lose_all_nodes();
    ASSERT_EQ(bed_.restart(four_nodes()), 3);
  }
}

TEST_F(Scavenge, AFlippedByteIsRepairedAndNeverSpread) {
  bed_.write(four_nodes(), {1});
  save_all();
  std::vector<std::string> victims;
  for (const std::string& part : bed_.parts("n1", 1))
    for (const auto& entry : fs::recursive_directory_iterator(part))
      if (entry.is_regular_file() && entry.file_size() > 0) victims.push_back(entry.path());
  ASSERT_GE(victims.size(), 6U);
  for (const std::string& victim : victims)
    for (const bool node_lost : {false, true}) {
      SCOPED_TRACE(victim + (node_lost ? ", and n3 is lost" : ""));
      bring_all_back();
      flip_bit(victim);
      if (node_lost) bed_.lose("n3");
      scavenge_nodes();
      const auto outcome = outcome_of(rebuild(), 1);
      const bool published = outcome == Outcome::published;
      // Of XOR a damaged block and a lost one of its stripe are too much; a record is kept twice.
      if (!node_lost || victim.ends_with("/record")) {
        ASSERT_TRUE(published) << reason_;
      }
      EXPECT_EQ(restart_elsewhere(), published ? 1 : 0);  // compares all bytes
    }
}

TEST_F(Scavenge, AFullPrefixDirectoryIsReportedAndTheNextTryGoesOn) {
  bed_.write(four_nodes(), {1});
  bool resumed = false;
  bool refused = true;
  for (int writes = 0; refused; ++writes) {
    fs::remove_all(folder().saved().scavenged());
    int left = writes;
    const auto full = scavenge_node("n1", [&](const FileOperation& operation) -> Status {
      if (operation.name != "write" || left-- > 0) return {};
      return fail(Code::no_space, "cannot write {}: no space", operation.path);
    });
    refused = !full;
    if (!refused) break;
    EXPECT_EQ(full.error().code, Code::no_space);
    const auto saved = scavenge_node("n1");
    ASSERT_TRUE(saved) << saved.error().text;
    EXPECT_TRUE(writes < 2 || saved->saved_bytes < saved->bytes) << "what was copied counts";
    resumed = resumed || saved->saved_bytes < saved->bytes;
  }
  EXPECT_TRUE(resumed);
  const auto again = scavenge_node("n1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->saved_bytes, 0U);
  for (const std::string node : {"n0", "n2", "n3"}) ASSERT_TRUE(scavenge_node(node));
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published);
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, WithoutACompletePartADatasetDoesNotCountAsNeverComplete) {
  bed_.write(four_nodes(), {1});
  std::string failed;
  for (const std::string node : {"n0", "n1", "n2", "n3"})
    EXPECT_FALSE(scavenge_node(node, [](const FileOperation& operation) -> Status {
      if (operation.name != "write") return {};
      return fail(Code::no_space, "cannot write {}: no space", operation.path);
    }));
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::failed);
  EXPECT_NE(reason_.find("run cairn scavenge again"), std::string::npos) << reason_;
  scavenge_nodes();
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published);
}

/// Where nothing is to be seen for some seconds, that is said before, with what saves it.
TEST_F(Scavenge, WhoWaitsForASignOfLifeSaysSo) {
  bed_.settings.flush_interval = 2;
  bed_.settings.job_id = "other";
  bed_.write(four_nodes(), {1, 2});
  bed_.settings.job_id = "job";
  ASSERT_TRUE(rebuild()) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("job other of tester on n0")) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("waiting up to 20 s for a sign of life")) << bed_.log_text();
  EXPECT_TRUE(bed_.logs("--force skips this wait")) << bed_.log_text();
}

/// A job that dies in the middle of a Complete: all have prepared, none has committed.
TEST_F(Scavenge, OneThatNoNodeHadCommittedIsLeftAloneAndNoFailure) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n1");
  for (const std::string node : {"n0", "n2", "n3"})
    for (const std::string& part : bed_.parts(node, 1))
      fs::rename(part + "/record", part + "/record.new");
  scavenge_nodes();
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::uncommitted) << reason_;
}

TEST_F(Scavenge, OneProcessScavengesANodeAtATimeAndNoneRebuildsMeanwhile) {
  bed_.write(four_nodes(), {1});
  bool asked = false;
  const auto saved = scavenge_node("n1", [&](const FileOperation& operation) -> Status {
    if (asked || operation.name != "write") return {};
    asked = true;
    const auto second = scavenge_node("n1");
    EXPECT_TRUE(!second && second.error().code == Code::busy);
    const auto rebuilt = rebuild();
    EXPECT_TRUE(!rebuilt && rebuilt.error().code == Code::busy);
    return {};
  });
  EXPECT_TRUE(saved);
  EXPECT_TRUE(asked);
}

TEST_F(Scavenge, ARunningJobIsLeftAlone) {
  const TemporaryFolder elsewhere(memory_base());
  bed_.settings.control_base = elsewhere / "%n";  // the cache itself must say it
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      const auto saved = scavenge_node("n1");
      EXPECT_TRUE(!saved && saved.error().code == Code::busy);
      EXPECT_FALSE(fs::exists(folder().saved().scavenged()));
    }
    rank.comm.barrier();
  });
}

TEST_F(Scavenge, TheTimeThatIsLeftIsKept) {
  bed_.write(four_nodes(), {1});
  const auto late = scavenge_node("n1", no_faults(), 1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::busy);
  EXPECT_NE(late.error().text.find("SCR_END_TIME"), std::string::npos) << late.error().text;
  scavenge_nodes();
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published);
}

TEST_F(Scavenge, AFlushThatWasBegunIsEndedWithWhatWasScavenged) {
  bed_.settings.flush_interval = 2;
  bed_.lose_node_that_has_flushed();  // SINGLE: what n3 had is nowhere but in the flush
  scavenge_nodes();
  (void)rebuild();
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.4", "ckpt.2"})) << bed_.log_text();
  EXPECT_EQ(restart_elsewhere(), 4);
}

TEST_F(Scavenge, TheNextJobLeavesAHalfFlushToWhatWasScavenged) {
  bed_.settings.flush_interval = 2;
  bed_.lose_node_that_has_flushed();
  scavenge_nodes();
  EXPECT_EQ(restart_elsewhere(), 2);  // queued again before anybody gave cairn rebuild
  (void)rebuild();
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.4", "ckpt.2"})) << bed_.log_text();
  EXPECT_EQ(restart_elsewhere(), 4);
}

TEST_F(Scavenge, AFlushThatWasBegunIsEndedThoughANewerCheckpointIsThere) {
  bed_.settings.flush_interval = 2;
  bed_.lose_node_that_has_flushed();
  scavenge_nodes();
  bed_.lose_all_nodes();
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    rank.expect_written(5);
    rank.expect_written(6);
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.6", "ckpt.2"})) << bed_.log_text();
  (void)rebuild();
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.6", "ckpt.4", "ckpt.2"})) << bed_.log_text();
  for (const int dataset : {2, 4, 6}) bed_.expect_own_files(dataset);
  EXPECT_EQ(restart_elsewhere(), 6);
}

TEST_F(Scavenge, WhatCanNeverBeRebuiltIsDeletedByItsNumber) {
  bed_.settings.flush_interval = 2;
  bed_.write(four_nodes(), {1, 2, 3});
  const std::vector<std::string> nodes = {"n0", "n1"};  // XOR holds one
  for (const std::string& node : nodes) ASSERT_TRUE(scavenge_node(node));
  ASSERT_EQ(outcome_of(rebuild(), 3), Outcome::lost);
  EXPECT_NE(left_over(), Names{});
  const Status deleted = delete_dataset("3");
  ASSERT_TRUE(deleted) << deleted.error().text;
  EXPECT_EQ(left_over(), Names{});
  for (const std::string& node : nodes) ASSERT_TRUE(scavenge_node(node));
  EXPECT_EQ(left_over(), Names{}) << "it is not brought back";
  ASSERT_TRUE(scavenge_node("n0", [](const FileOperation& operation) -> Status {
    if (!operation.path.ends_with("/.cairn/deleted")) return {};
    return fail(Code::io, "cannot {} {}", operation.name, operation.path);
  }));
  EXPECT_EQ(outcome_of(rebuild(), 3), Outcome::given_up) << "copied when that was unknown";
  EXPECT_TRUE(delete_dataset("3"));
  EXPECT_EQ(left_over(), Names{});
  EXPECT_FALSE(delete_dataset("3"));
  EXPECT_EQ(bed_.listed(), Names{"ckpt.2"});
}

/// Ranks 4 and 6, of two nodes, are in one set; the other set of those nodes lacks nothing.
TEST_F(Scavenge, OneSetThatIsLostOfSeveralIsNamedAndNothingIsHalfPublished) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  for (const char* part : {"n2 4", "n3 6"}) {
    const std::string node = std::string(part).substr(0, 2);
    for (const auto& entry : fs::directory_iterator(folder().saved().of_node(node)))
      if (entry.is_directory())
        fs::remove_all(entry.path() / fmt::format("rank.{}", std::string(part).substr(3)));
  }
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::lost);
  EXPECT_NE(reason_.find("set of ranks 0,2,4,6"), std::string::npos) << reason_;
  for (const char* lost : {"rank 4 (written on n2)", "rank 6 (written on n3)"})
    EXPECT_NE(reason_.find(lost), std::string::npos) << reason_;
  for (const char* good : {"1", "3", "5", "7"})
    EXPECT_EQ(reason_.find(fmt::format("rank {}", good)), std::string::npos) << reason_;
  EXPECT_EQ(bed_.listed(), Names{});
  for (const auto& entry : fs::recursive_directory_iterator(folder().prefix)) {
    const std::string path = entry.path();
    const bool ours = path.find("/.cairn/") != std::string::npos;
    EXPECT_TRUE(!entry.is_regular_file() || ours) << path << " is half published";
    EXPECT_FALSE(path.find("/.cairn/rebuilt/dataset.") != std::string::npos) << path;
  }
  ASSERT_TRUE(scavenge_node("n2"));
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, WhatIsDeletedWhileItsFlushIsHalfDoneDoesNotComeBack) {
  bed_.settings.flush_interval = 2;
  bed_.lose_node_that_has_flushed();
  scavenge_nodes();
  const Status deleted = delete_dataset("4");
  ASSERT_TRUE(deleted) << deleted.error().text;
  EXPECT_EQ(bed_.restart(four_nodes()), 2) << "the caches have the rest of it";
  EXPECT_EQ(bed_.listed(), Names{"ckpt.2"}) << bed_.log_text();
  EXPECT_EQ(left_over(), Names{});
}

/// The nodes are given back with what is in their caches, or come with empty ones.
TEST_F(Scavenge, WhatTheNextRunDeletesIsNotPublishedFromWhatWasScavenged) {
  for (const bool flushed : {true, false}) {
    bed_.settings.flush_interval = flushed ? 1 : 0;
    bed_.write(four_nodes(), {1});
    scavenge_all_of("ckpt.1");
    ASSERT_EQ(bed_.listed(), flushed ? Names{"ckpt.1"} : Names{});
    bed_.run_well(four_nodes(), [](JobRank& rank) {
      EXPECT_TRUE(rank.session->datasets().remove("ckpt.1"));
      EXPECT_FALSE(rank.session->have_restart().value());
    });
    EXPECT_EQ(outcome_of(rebuild(), 1), std::nullopt);
    EXPECT_EQ(bed_.listed(), Names{});
    EXPECT_EQ(left_over(), Names{});
    EXPECT_EQ(restart_elsewhere(), 0);
  }
}

TEST_F(Scavenge, WhatTheNextRunDeletesIsNotPublishedThoughTheCopiesStay) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1});
  scavenge_all_of("ckpt.1");
  {
    const auto files = make_posix_files();
    const auto scavenging = files->lock(folder().saved().of_node("n2") + "/lock");
    ASSERT_TRUE(scavenging);
    bed_.run_well(four_nodes(),
                  [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().remove("ckpt.1")); });
    EXPECT_TRUE(bed_.logs("ckpt.1 is deleted, but its scavenged copy")) << bed_.log_text();
  }
  EXPECT_EQ(restart_elsewhere(), 0) << "the run finds nothing of it in its caches";
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::given_up) << "and yet it is not forgotten";
  EXPECT_EQ(bed_.listed(), Names{});
}

TEST_F(Scavenge, WhatAPurgeDeletesIsNotPublishedFromWhatWasScavenged) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1, 2});
  scavenge_all_of("ckpt.1");
  scavenge_all_of("ckpt.2");
  bed_.settings.prefix_purge = true;
  bed_.settings.flush_interval = 0;  // or the run copies it there again
  EXPECT_EQ(bed_.restart(four_nodes()), 2) << "the caches keep what they have";
  bed_.settings.prefix_purge = false;
  EXPECT_EQ(outcome_of(rebuild(), 2), std::nullopt);
  EXPECT_EQ(bed_.listed(), Names{});
  EXPECT_EQ(restart_elsewhere(), 0);
}

/// Who has scavenged has it for himself: a colleague in the same prefix directory may not look.
TEST_F(Scavenge, WhereWhatWasScavengedCannotBeSeenADeletionAndAPurgeGoOnAndSaySo) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1, 2, 3});
  scavenge_all_of("ckpt.3");
  const auto of_another = [&](const FileOperation& operation) -> Status {
    if (operation.path != folder().saved().scavenged()) return {};
    return fail(Code::io, "injected: permission denied");
  };
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = of_another;
    EXPECT_TRUE(rank.session->datasets().remove("no such"));
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.3"));
  });
  EXPECT_TRUE(bed_.logs("cannot find out whether ckpt.2 was scavenged too")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("whether ckpt.3")) << "it is logged once";
  EXPECT_EQ(bed_.listed(), Names{"ckpt.1"});
  bed_.settings.prefix_purge = true;
  bed_.settings.flush_interval = 0;  // or the run copies it there again
  EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = of_another;
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    EXPECT_TRUE(rank.session->finalize());
  }));
  EXPECT_TRUE(bed_.logs("scavenged copies were not deleted")) << bed_.log_text();
  EXPECT_EQ(bed_.listed(), Names{});
}

/// What cannot be looked at now may be a copy.
TEST_F(Scavenge, WhereANodesFolderCannotBeSeenADeletionCountsAllTheSame) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1, 2});
  scavenge_all_of("ckpt.2");
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(folder().saved().scavenged() + "/")) return {};
      return fail(Code::io, "injected: stale handle");
    };
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    rank.hook = nullptr;
  });
  EXPECT_EQ(bed_.listed(), Names{"ckpt.1"});
  EXPECT_EQ(outcome_of(rebuild(), 2), Outcome::given_up) << "it is known to be deleted";
}

/// Or what is deleted is published again.
TEST_F(Scavenge, APurgeThatCannotRemoveWhatWasScavengedDeletesNothing) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1, 2});
  scavenge_all_of("ckpt.2");
  bed_.settings.prefix_purge = true;
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool removes = operation.name.starts_with("remove");
      if (!removes || !operation.path.starts_with(folder().saved().scavenged())) return {};
      return fail(Code::io, "injected: cannot remove {}", operation.path);
    };
    EXPECT_FALSE(rank.init());
    rank.hook = nullptr;
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.2", "ckpt.1"}));
}

FileHook failing_at(const std::function<bool(const FileOperation&)>& where) {
  return [where](const FileOperation& operation) -> Status {
    if (!where(operation)) return {};
    return fail(Code::io, "injected: {} {}", operation.name, operation.path);
  };
}

bool is_removal(const FileOperation& operation) { return operation.name.starts_with("remove_"); }

/// So that the user need not know how far the command had come.
/// What was deleted is not known then. Nothing on the nodes may be lost because of it, and nothing
/// be published that a user has deleted.
TEST_F(Scavenge, AnUnreadableListOfWhatWasDeletedKeepsNothingFromBeingSaved) {
  bed_.write(four_nodes(), {1});
  bool away = true;
  const FileHook hook = [&](const FileOperation& operation) -> Status {
    if (!away || operation.path != folder().deleted_list()) return {};
    return fail(Code::io, "cannot read {}: input/output error", operation.path);
  };
  for (const std::string node : {"n0", "n1", "n2", "n3"})
    ASSERT_TRUE(scavenge_node(node, hook)) << bed_.log_text();
  EXPECT_TRUE(bed_.logs(folder().deleted_list() + ": input/output error")) << bed_.log_text();
  const auto refused = rebuild(hook);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("repeat the command"), std::string::npos)
      << refused.error().text;
  away = false;
  EXPECT_EQ(outcome_of(rebuild(hook, [&] { away = true; }), 1), Outcome::failed);
  EXPECT_NE(reason_.find("Nothing is published"), std::string::npos);
  EXPECT_EQ(bed_.listed(), Names{});
  away = false;
  EXPECT_EQ(outcome_of(rebuild(hook), 1), Outcome::published);
}

TEST_F(Scavenge, ADeletionThatFailsSaysWhatStaysAndTheNextOneEndsIt) {
  bed_.settings.flush_interval = 1;
  bed_.write(four_nodes(), {1});
  scavenge_all_of("ckpt.1");
  const auto expect_there = [&](const Status& deleted) {
    ASSERT_FALSE(deleted);
    EXPECT_EQ(bed_.listed(), Names{"ckpt.1"}) << deleted.error().text;
    bed_.expect_own_files(1);
    EXPECT_NE(deleted.error().text.find("(ckpt.1) was not deleted"), std::string::npos)
        << deleted.error().text;
  };
  expect_there(delete_dataset("ckpt.1", failing_at([](const FileOperation& operation) {
                                return is_removal(operation) &&
                                       operation.path.find("/scavenged/n2/") != std::string::npos;
                              })));
  {
    const auto files = make_posix_files();
    const auto scavenging = files->lock(folder().saved().of_node("n2") + "/lock");
    ASSERT_TRUE(scavenging);
    expect_there(delete_dataset("ckpt.1"));
  }
  const Status half =
      delete_dataset("ckpt.1", failing_at([&](const FileOperation& operation) {
                       return is_removal(operation) && operation.path == bed_.file(1, 2);
                     }));
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().text.find("is deleted, but "), std::string::npos) << half.error().text;
  EXPECT_EQ(left_over(), Names{});
  EXPECT_TRUE(fs::exists(bed_.file(1, 2)));
  const Status again = delete_dataset("ckpt.1");
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_FALSE(fs::exists(bed_.file(1, 2)));
  EXPECT_FALSE(delete_dataset("ckpt.1")) << "there is nothing of it any more";
}

/// By its name too, though no record says that any more.
TEST_F(Scavenge, ADeletionOfWhatIsOnlyScavengedCanBeGivenAgain) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  const Status half = delete_dataset("ckpt.1", failing_at([](const FileOperation& operation) {
                                       return is_removal(operation) &&
                                              operation.path.find("/files") != std::string::npos;
                                     }));
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().text.find("(ckpt.1)"), std::string::npos) << half.error().text;
  EXPECT_NE(left_over(), Names{});
  for (const auto& entry : fs::recursive_directory_iterator(folder().saved().scavenged()))
    if (entry.path().filename() == "record") fs::resize_file(entry.path(), 0);
  const Status again = delete_dataset("ckpt.1");
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(left_over(), Names{});
}

TEST_F(Scavenge, TheListTellsWhatIsSavedAndWhatOfItIsMissing) {
  bed_.settings.flush_interval = 2;
  bed_.write(four_nodes(), {1, 2, 3});
  for (const std::string node : {"n0", "n1"}) ASSERT_TRUE(scavenge_node(node));
  const auto scavenged = [&] { return nlohmann::json::parse(list(true)).at("scavenged"); };
  ASSERT_EQ(scavenged().size(), 1U) << list(true);
  EXPECT_EQ(scavenged()[0].at("name"), "ckpt.3");
  EXPECT_EQ(scavenged()[0].at("state"), "incomplete");
  const std::string missing = scavenged()[0].at("missing").dump();
  for (const char* what : {"rank 4", "n2", "n3"})
    EXPECT_NE(missing.find(what), std::string::npos) << missing;
  const std::string text = list(false);
  EXPECT_NE(text.find("dataset 3 (ckpt.3) of 8 ranks: incomplete: "), std::string::npos) << text;
  EXPECT_NE(text.find("n3"), std::string::npos) << text;
  ASSERT_TRUE(scavenge_node("n2"));
  EXPECT_EQ(scavenged()[0].at("state"), "saved");
  EXPECT_TRUE(scavenged()[0].at("missing").empty());
  EXPECT_NE(list(false).find("saved: "), std::string::npos) << list(false);
  ASSERT_EQ(outcome_of(rebuild(), 3), Outcome::published);
  EXPECT_TRUE(scavenged().empty());
}

/// The store of a node may lie below a path that all nodes share, whichever is named first.
TEST_F(Scavenge, TheLongestPathTellsWhetherAStoreIsShared) {
  bed_.write(four_nodes(), {1});
  const std::string all = folder_of(bed_.node("n1"));
  const std::string of_all = fmt::format("STORE={} GROUP=WORLD\n", all);
  const auto shared = [&](const std::string& stores) -> bool {
    std::ofstream(bed_.settings.prefix + "/scr.conf") << stores;
    ProcessFacts process = bed_.process_on("n1");
    process.environment["SCR_CONF_FILE"] = bed_.settings.prefix + "/scr.conf";
    ScavengeCommand command;
    command.list = command.json = true;
    std::ostringstream out;
    const auto files = make_posix_files();
    EXPECT_EQ(run_scavenge_command(command, *files, *bed_.clock, process, out, bed_.log()), 0)
        << bed_.log_text();
    return nlohmann::json::parse(out.str()).at("datasets").at(0).at("shared");
  };
  EXPECT_FALSE(shared(of_all + fmt::format("STORE={}/%n\n", all)));
  EXPECT_FALSE(shared(fmt::format("STORE={}/%n\n", all) + of_all));
  EXPECT_TRUE(shared(of_all + fmt::format("STORE={}/%n GROUP=WORLD\n", all)));
}

TEST_F(Scavenge, WhatIsDamagedInThePrefixDirectoryIsPublishedAgain) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published);
  const auto files = make_posix_files();
  const FileInfo info = *files->info(bed_.file(1, 2));
  flip_bit(bed_.file(1, 2));
  ASSERT_TRUE(files->set_attributes(bed_.file(1, 2), info.mode, info.times));  // no record knows
  scavenge_all_of("ckpt.1");
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(left_over(), Names{});
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, ANodeWhoseRecordsAreDamagedStillGivesItsFiles) {
  bed_.write(four_nodes(), {1});
  for (const std::string& part : bed_.parts("n1", 1)) {
    fs::resize_file(part + "/record", 0);
  }
  bed_.lose("n3");
  scavenge_nodes();  // what n1 has is known by the records that its neighbours keep
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, AFileSystemWithoutLinksOrLocksWillDo) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n2");
  const FileHook poor = [](const FileOperation& operation) -> Status {
    if (operation.name != "link" && operation.name != "lock") return {};
    return fail(Code::io, "cannot {} {}: Function not implemented", operation.name, operation.path);
  };
  for (const std::string node : {"n0", "n1", "n3"}) {
    const auto saved = scavenge_node(node, poor);
    ASSERT_TRUE(saved) << saved.error().text;
  }
  ASSERT_EQ(outcome_of(rebuild(poor), 1), Outcome::published) << reason_;
  EXPECT_EQ(left_over(), Names{});
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, ARebuildWithoutRoomIsToBeTriedAgain) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n2");
  scavenge_nodes();
  const auto full = rebuild([](const FileOperation& operation) -> Status {
    if (operation.name != "write" || operation.path.find("/rebuilt/") == std::string::npos)
      return {};
    return fail(Code::no_space, "cannot write {}: no space", operation.path);
  });
  EXPECT_EQ(outcome_of(full, 1), Outcome::failed) << reason_;
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, AFileThatWasWrittenSinceWithoutCairnIsKept) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  fs::create_directories(fs::path(bed_.file(1, 0)).parent_path());
  std::ofstream(bed_.file(1, 0)) << "by the program, later";
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::refused);
  EXPECT_NE(reason_.find("was written again"), std::string::npos) << reason_;
  EXPECT_EQ(read_all(bed_.file(1, 0)), "by the program, later");
  expect_told_as_refused(bed_.file(1, 0));
  const std::string away = bed_.settings.prefix + "/mine";
  fs::rename(bed_.file(1, 0), away);
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(read_all(away), "by the program, later");
  EXPECT_EQ(left_over(), Names{}) << "also of what was known of it";
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, ThatItWasRefusedIsForgottenWhenItIsScavengedAgain) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  fs::create_directories(fs::path(bed_.file(1, 0)).parent_path());
  std::ofstream(bed_.file(1, 0)) << "by the program, later";
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::refused);
  ASSERT_TRUE(scavenge_node("n0"));
  EXPECT_EQ(nlohmann::json::parse(list(true)).at("scavenged")[0].at("state"), "saved");
}

TEST_F(Scavenge, WhatTheProgramHasWrittenSinceIsNotTouchedThoughACopyIsLinkedToIt) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  std::atomic<bool> published = false;
  try {  // killed after it was published, before the copies are gone
    (void)rebuild([&](const FileOperation& operation) -> Status {
      if (operation.path.ends_with(".cairn/current")) published = true;
      const bool removes = operation.name == "remove_file" || operation.name == "list";
      if (published && removes && operation.path.find("/scavenged/") != std::string::npos)
        throw Crash();
      return {};
    });
  } catch (const Crash&) {
  }
  ASSERT_EQ(bed_.listed(), Names{"ckpt.1"});
  ASSERT_NE(left_over(), Names{});
  std::fstream own(bed_.file(1, 0), std::ios::in | std::ios::out | std::ios::binary);
  own.seekp(0).write("mine", 4);  // by the program, in place
  own.close();
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::refused);
  EXPECT_NE(reason_.find("was written again"), std::string::npos) << reason_;
  EXPECT_EQ(read_all(bed_.file(1, 0)).substr(0, 4), "mine");
  EXPECT_NE(left_over(), Names{}) << "the only copy of what was there";
}

TEST_F(Scavenge, AFileThatWasWrittenAgainForANewerDatasetIsNotReplaced) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  bed_.lose_all_nodes();
  bed_.settings.flush_interval = 1;
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    rank.expect_written(1);  // the same names
  });
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::outlived);
  const std::string reported = explain();
  EXPECT_NE(reported.find("no restart takes it, as a newer checkpoint is in the prefix directory"),
            std::string::npos)
      << reported;
  EXPECT_EQ(reported.find("cairn run"), std::string::npos) << reported;
  also_outlived_ = true;
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::refused);
  EXPECT_NE(reason_.find("a newer dataset: delete "), std::string::npos) << reason_;
  bed_.expect_own_files(1);
  expect_told_as_refused("a newer dataset: delete ");
  const auto newer = nlohmann::json::parse(list(true)).at("datasets")[0].at("uuid");
  const Status deleted = delete_dataset(newer.get<std::string>());
  ASSERT_TRUE(deleted) << deleted.error().text;
  EXPECT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

/// What is in the files below a folder.
std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) found[entry.path()] = read_all(entry.path());
  return found;
}

FileHook unreadable(const std::function<bool(std::string_view)>& which) {
  return failing_at([which](const FileOperation& operation) {
    return (operation.name == "read" || operation.name == "view") && which(operation.path);
  });
}

/// Of a node that goes bad after it was scavenged.
TEST_F(Scavenge, ACopyThatIsGoodIsNotReplacedByWhatIsWorse) {
  bed_.write(four_nodes(), {1});
  scavenge_nodes();
  const auto saved = files_below(folder().saved().of_node("n1"));
  const auto expect_kept = [&](const std::string& what) {
    const auto again = scavenge_node("n1");
    ASSERT_TRUE(again) << what << ": " << again.error().text;
    EXPECT_TRUE(files_below(folder().saved().of_node("n1")) == saved) << what;
  };
  for (const std::string& part : bed_.parts("n1", 1))
    for (const auto& [path, content] : files_below(part + "/files"))
      if (!content.empty()) flip_bit(path);
  for (const std::string& part : bed_.parts("n1", 1))
    fs::rename(part + "/record", part + "/record.new");
  expect_kept("prepared only");
  for (const std::string& part : bed_.parts("n1", 1)) {
    fs::rename(part + "/record.new", part + "/record");
    flip_bit(part + "/record");
  }
  expect_kept("damaged records");
  for (const std::string& part : bed_.parts("n1", 1)) fs::remove(part + "/record");
  for (const std::string node : {"n0", "n2", "n3"}) bed_.lose(node);
  expect_kept("no records");
  fs::remove_all(folder().saved().of_node("n3"));
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

/// A disk that works again, say.
TEST_F(Scavenge, WhatCouldNotBeReadIsCopiedWhenItCan) {
  bed_.write(four_nodes(), {1});
  const auto partly =
      scavenge_node("n1", unreadable([&](std::string_view path) {
                      return path.starts_with(bed_.node("n1")) && path.ends_with("rank 2.0");
                    }));
  ASSERT_TRUE(partly && partly->bad_blocks > 0);
  const auto whole = scavenge_node("n1");
  ASSERT_TRUE(whole) << whole.error().text;
  EXPECT_EQ(whole->bad_blocks, 0U);
  EXPECT_GT(whole->saved_bytes, 0U);
  for (const std::string node : {"n0", "n2"}) ASSERT_TRUE(scavenge_node(node));
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

TEST_F(Scavenge, WhatARebuildHasRepairedInACopyStays) {
  bed_.write(four_nodes(), {1});
  for (const std::string& part : bed_.parts("n1", 1)) {
    flip_bit(part + "/files/ckpt.1/" + "rank " + part.substr(part.rfind('.') + 1) + ".0");
    flip_bit(part + "/record");
  }
  scavenge_nodes();
  const auto not_published = rebuild(failing_at([](const FileOperation& operation) {
    return operation.name == "rename" && operation.to.find("/datasets/") != std::string::npos;
  }));
  ASSERT_EQ(outcome_of(not_published, 1), Outcome::failed) << reason_;
  scavenge_nodes();
  fs::remove_all(folder().saved().of_node("n3"));
  fs::remove_all(folder().saved().rebuilt());
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

/// The records of n1 are gone; its files are saved all the same, and one that cannot be read any
/// more costs no other, nor what was saved of it.
TEST_F(Scavenge, AFileWithoutARecordThatCannotBeReadAnyMoreCostsNothingElse) {
  bed_.write(four_nodes(), {1});
  for (const std::string& part : bed_.parts("n1", 1)) fs::resize_file(part + "/record", 0);
  const auto one = [&](std::string_view path) {
    return path.starts_with(bed_.node("n1")) && path.ends_with("rank 2.0");
  };
  const auto partly = scavenge_node("n1", unreadable(one));
  ASSERT_TRUE(partly) << partly.error().text;
  EXPECT_EQ(partly->bad_blocks, 3U) << "two records, and what cannot be read";
  EXPECT_NE(partly->unreadable.find("rank 2.0"), std::string::npos) << partly->unreadable;
  const auto whole = scavenge_node("n1");
  ASSERT_TRUE(whole && whole->bad_blocks == 2U);
  const auto saved = files_below(folder().saved().of_node("n1"));
  const auto again = scavenge_node("n1", unreadable(one));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_TRUE(files_below(folder().saved().of_node("n1")) == saved);
  for (const std::string node : {"n0", "n2"}) ASSERT_TRUE(scavenge_node(node));
  ASSERT_EQ(outcome_of(rebuild(), 1), Outcome::published) << reason_;
  EXPECT_EQ(restart_elsewhere(), 1);
}

/// By hand, without a dataset that is named: the outputs, oldest first, then checkpoints, newest
/// first. What cannot be read of one keeps no other from being saved.
TEST_F(Scavenge, OutputsAreSavedFirstAndBadSourcesStopNothing) {
  bed_.settings.stores[0].count = 4;
  bed_.settings.flush = false;
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    for (const int output : {2, 3}) ASSERT_TRUE(rank.write(output, flag_output));
    rank.expect_written(4);
  });
  fs::resize_file(bed_.parts("n1", 2).at(0) + "/record", 0);
  Names order;
  const auto posix = make_posix_files();
  const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    const auto at = operation.path.find("/dataset.");
    if (at == std::string_view::npos) return {};
    const std::string number(operation.path.substr(at + 9, 1));
    const bool copies = operation.path.starts_with(folder().saved().of_node("n1"));
    if (copies && operation.name == "write" && (order.empty() || order.back() != number))
      order.push_back(number);
    if (number != "2" || copies || operation.path.find("/files") == std::string_view::npos)
      return {};
    return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
  });
  std::ostringstream out;
  EXPECT_EQ(run_scavenge_command({}, *files, *bed_.clock, bed_.process_on("n1"), out, bed_.log()),
            exit_failure)
      << bed_.log_text();
  EXPECT_EQ(order, (Names{"2", "3", "4", "1"}));
  EXPECT_TRUE(bed_.logs("injected: cannot view")) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
