// cairn index add NAME FILES..., and cairn index import.
#include "tools/index/index_found.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/checksum.hpp"
#include "prefix/check.hpp"
#include "support/command_output.hpp"
#include "support/prefix_fixture.hpp"
#include "support/scr_prefix.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Action = IndexCommand::Action;

class IndexFound : public PrefixFixture, protected CommandOutput {
 protected:
  IndexFound() {
    process_ = {{{"USER", "ann"}, {"SCR_PREFIX", prefix()}}, "node1", base_.path(), 1};
  }

  int run_index(const IndexCommand& command) {
    return keep_output_of([&](std::ostream& out, const Log& log) {
      return run_index_command(command, *files_, *clock_, process_, out, log);
    });
  }
  int run_index(Action action, const std::string& name = "") {
    IndexCommand command;
    command.action = action;
    command.name = name;
    return run_index(command);
  }
  int add(const std::string& name, std::vector<std::string> files,
          std::optional<std::uint32_t> rank_count = 3) {
    IndexCommand command;
    command.action = Action::add_files;
    command.name = name;
    command.names = std::move(files);
    command.ranks = rank_count;
    return run_index(command);
  }
  int add_by_list(const std::string& text, std::optional<std::uint32_t> rank_count = {}) {
    std::ofstream(base_.path() + "/list") << text;
    IndexCommand command;
    command.action = Action::add_files;
    command.name = "by list";
    command.list_file = base_.path() + "/list";
    command.ranks = rank_count;
    return run_index(command);
  }
  void write(const std::string& name, const std::string& content = "content") {
    fs::create_directories(fs::path(prefix() + "/" + name).parent_path());
    std::ofstream(prefix() + "/" + name) << content;
  }
  Listing listing() {
    std::vector<std::string> damaged;
    return *read_listing(*files_, folder(), damaged);
  }
  std::string current() { return *read_current(*files_, folder()); }
  /// Of each rank, with a blank between; "*" behind the name of one that is shared.
  std::vector<std::string> files_of(const DatasetRecord& dataset) {
    std::vector<std::string> names;
    std::vector<std::string> troubles;
    EXPECT_TRUE(visit_ranks(
        *files_, folder().dataset(dataset.info), dataset, troubles, [&](const RankRecord& record) {
          std::string& mine = names.emplace_back();
          for (const FileEntry& file : record.files)
            mine += (mine.empty() ? "" : " ") + file.name + (file.part ? "*" : "");
        }));
    EXPECT_TRUE(troubles.empty());
    return names;
  }
  bool is_good(const std::string& name) {
    IndexCommand command;
    command.action = Action::show;
    command.name = name;
    command.check = true;
    return run_index(command) == 0;
  }

  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
  ProcessFacts process_;
};

using Strings = std::vector<std::string>;

// --- add ---

TEST_F(IndexFound, OneFileIsReportedInTheSingular) {
  write("mesh");
  ASSERT_EQ(add("step 7", {"mesh"}), 0) << logged();
  EXPECT_TRUE(prints("1 file of 3 ranks;")) << printed();
}

TEST_F(IndexFound, FilesOfEachRankByAPatternAndOneOfAll) {
  for (const char* name : {"dump/0000.h5", "dump/0001.h5", "dump/0002.h5"}) write(name);
  write("dump/mesh", std::string(2'000'000, 'm'));
  ASSERT_EQ(add("step 7", {"dump/{rank:04}.h5", prefix() + "/dump/mesh"}), 0) << logged();
  EXPECT_TRUE(prints("dataset 1 (step 7) is added: 4 files of 3 ranks")) << printed();
  ASSERT_EQ(listing().size(), 1U);
  const DatasetRecord record = listing()[0];
  EXPECT_TRUE(record.info.in_place() && record.info.is_checkpoint());
  EXPECT_EQ(files_of(record), (Strings{"dump/0000.h5 dump/mesh*", "dump/0001.h5 dump/mesh*",
                                       "dump/0002.h5 dump/mesh*"}));
  EXPECT_EQ(current(), "step 7");
  EXPECT_TRUE(is_good("step 7"));
  write("dump/0001.h5", "damaged");
  EXPECT_FALSE(is_good("step 7"));
}

TEST_F(IndexFound, WhatIsAddedIsTheNewest) {
  flush_well(1);
  run_well([](PrefixRank& rank) { ASSERT_TRUE(!rank.keeper || rank.keeper->resign()); });
  write("mine");
  ASSERT_EQ(add("added", {"mine"}), 0) << logged();
  ASSERT_EQ(listing().size(), 2U);
  EXPECT_EQ(listing()[0].info.name, "added");
  EXPECT_EQ(listing()[0].info.number, 2U);
  EXPECT_EQ(listing()[0].info.checkpoint, 2U);
  EXPECT_EQ(current(), "added");
}

TEST_F(IndexFound, FilesByAList) {
  for (const char* name : {"b c", "d"}) write(name);
  write("a", std::string(600'000, 'a'));
  ASSERT_EQ(add_by_list("0 a\n2 b c\n2 a\n\n0 d\n"), 0) << logged();
  EXPECT_EQ(files_of(listing()[0]), (Strings{"a* d", "", "b c a*"}));
  EXPECT_TRUE(is_good("by list"));
}

TEST_F(IndexFound, AListThatMakesNoSenseIsReportedByLine) {
  write("a");
  for (const char* wrong : {"0 a\nx a\n", "0 a\n1\n", "0 a\n-1 a\n", "0 a\n1 \n"}) {
    EXPECT_EQ(add_by_list(wrong), 1) << wrong;
    EXPECT_TRUE(logs("list:2:")) << wrong << logged();
  }
  EXPECT_EQ(add_by_list("0 a\n5 a\n", 3), 1);
  EXPECT_TRUE(logs("below 3")) << logged();
  EXPECT_EQ(add_by_list("\n"), 1);
  EXPECT_EQ(add_by_list("0 ../a\n"), 1);
  EXPECT_TRUE(logs("not in the prefix directory")) << logged();
  EXPECT_FALSE(fs::exists(folder().root()));
}

TEST_F(IndexFound, WhatCannotBeAddedChangesNothing) {
  write("a");
  EXPECT_EQ(add("x", {"a", "gone.{rank}"}), 1);
  EXPECT_TRUE(logs("gone.0")) << logged();
  EXPECT_EQ(add("x", {"a{rank"}), 1);
  EXPECT_TRUE(logs("stands for the rank")) << logged();
  EXPECT_EQ(add("x", {"a{node}"}), 1);
  EXPECT_EQ(add("x", {"/etc/passwd"}), 1);
  EXPECT_TRUE(logs("not in the prefix directory")) << logged();
  EXPECT_EQ(add("x", {"a"}, std::nullopt), 1);
  EXPECT_TRUE(logs("--ranks")) << logged();
  EXPECT_EQ(add("x", {}), 1);
  EXPECT_FALSE(fs::exists(folder().root()));
  EXPECT_EQ(add("x", {"a", "./a"}), 1);
  EXPECT_TRUE(logs("twice")) << logged();
  EXPECT_TRUE(listing().empty());
}

TEST_F(IndexFound, NothingIsAddedThroughALink) {
  write("real/a");
  fs::create_directory_symlink("real", folder().prefix + "/link");
  EXPECT_EQ(add("x", {"link/a"}), 1);
  EXPECT_TRUE(logs("link is a link, or not a directory")) << logged();
  EXPECT_EQ(add("x", {"real/a"}), 0) << logged();
}

TEST_F(IndexFound, ANameAndAFileAreGivenOnce) {
  write("a");
  write("b");
  ASSERT_EQ(add("x", {"a"}), 0) << logged();
  EXPECT_EQ(add("x", {"b"}), 1);
  EXPECT_TRUE(logs("already")) << logged();
  EXPECT_EQ(add("y", {"b", "a"}), 1);
  EXPECT_TRUE(logs("a belongs to dataset 1 (x)")) << logged();
  ASSERT_EQ(run_index(Action::drop, "x"), 0) << logged();
  ASSERT_EQ(add("y", {"b", "a"}), 0) << logged();
  EXPECT_EQ(listing()[0].info.number, 2U) << "no number is given twice";
  EXPECT_EQ(run_index(Action::add, "x"), 1);
  EXPECT_TRUE(logs("a of dataset 1 (x) ") && logs("dataset 2 (y)")) << logged();
  ASSERT_EQ(run_index(Action::drop, "y"), 0) << logged();
  ASSERT_EQ(run_index(Action::add, "x"), 0) << "what was dropped is put back as ever: " << logged();
}

TEST_F(IndexFound, DeletingADroppedOneLeavesAFileThatWasGivenToAnotherSince) {
  write("a");
  write("b");
  ASSERT_EQ(add("x", {"a", "b"}), 0) << logged();
  ASSERT_EQ(run_index(Action::drop, "x"), 0) << logged();
  ASSERT_EQ(add("y", {"a"}), 0) << logged();
  ASSERT_EQ(run_index(Action::remove, "x"), 0) << logged();
  EXPECT_TRUE(prints("1 of its files stay, because another dataset has")) << printed();
  EXPECT_TRUE(is_good("y"));
  EXPECT_FALSE(fs::exists(folder().prefix + "/b"));
}

// --- import ---

class IndexImport : public IndexFound {
 protected:
  int import() { return run_index(Action::import); }
  Strings listed() {
    Strings names;
    for (const DatasetRecord& record : listing()) names.push_back(record.info.name);
    return names;
  }
  ScrPrefix scr_{prefix()};
};

TEST_F(IndexImport, OneFileAndOneRankAreReportedInTheSingular) {
  scr_.add(1, 1);
  scr_.write("ckpt.1");
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_TRUE(prints("1 file of 1 rank,")) << printed();
}

TEST_F(IndexImport, TakesOverAllThatIsWholeWithWhatIsCurrent) {
  scr_.add(1, 3);
  scr_.add(2, 3);
  ScrPrefix::Dataset& output = scr_.add(3, 5);
  output.facts.checkpoint = 0;
  output.facts.output = true;
  scr_.write("ckpt.1");
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_TRUE(prints("dataset 1 (ckpt.1) is imported: 3 files of 3 ranks")) << printed();
  EXPECT_EQ(listed(), (Strings{"ckpt.3", "ckpt.2", "ckpt.1"}));
  EXPECT_EQ(current(), "ckpt.1");
  EXPECT_TRUE(listing()[0].info.is_output() && !listing()[0].info.is_checkpoint());
  EXPECT_EQ(listing()[1].info.checkpoint, 2U);
  EXPECT_EQ(listing()[1].job_id, "77");
  EXPECT_EQ(files_of(listing()[0]).at(4), "ckpt.3/rank_4") << "from the third leaf";
  EXPECT_TRUE(is_good("ckpt.2")) << printed();
  write("ckpt.2/rank_1", "other");
  EXPECT_FALSE(is_good("ckpt.2"));
}

TEST_F(IndexImport, TwiceIsAsOnce) {
  scr_.add(1, 2);
  scr_.write("ckpt.1");
  ASSERT_EQ(import(), 0) << logged();
  scr_.add(2, 2);
  scr_.write("ckpt.2");
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_TRUE(prints("(ckpt.1) was imported before")) << printed();
  EXPECT_EQ(listed(), (Strings{"ckpt.2", "ckpt.1"}));
  EXPECT_EQ(current(), "ckpt.2");
  ASSERT_EQ(run_index(Action::current, "ckpt.1"), 0);
  ASSERT_EQ(run_index(Action::drop, "ckpt.2"), 0);
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_EQ(listed(), (Strings{"ckpt.1"})) << "what was dropped stays so";
  EXPECT_EQ(current(), "ckpt.1") << "what the user has chosen stays";
}

TEST_F(IndexImport, TheOtherCommandsNameItAsLongAsScrHasWhatTheIndexHasNot) {
  scr_.add(1, 2);
  scr_.add(2, 2);
  scr_.write("ckpt.2");
  ASSERT_EQ(run_index(Action::list), 0) << logged();
  EXPECT_TRUE(prints("SCR left 2 datasets in")) << printed();
  for (const Action action : {Action::show, Action::current, Action::drop, Action::remove})
    EXPECT_EQ(run_index(action, "ckpt.1"), 1);
  EXPECT_TRUE(logs("\"cairn index import\" imports them")) << logged();
  EXPECT_FALSE(fs::exists(folder().root())) << "and nothing is made";
  ASSERT_EQ(import(), 0) << logged();
  ASSERT_EQ(run_index(Action::list), 0) << logged();
  EXPECT_FALSE(prints("SCR left")) << printed();
}

TEST_F(IndexImport, WhatIsNotWholeIsRefusedByNameAndTheOthersAreTaken) {
  scr_.add(1, 2);
  scr_.add(2, 2).complete_in_summary = false;
  scr_.add(3, 2);
  scr_.add(4, 2);
  scr_.write("ckpt.4");
  fs::remove(prefix() + "/ckpt.3/rank_1");
  fs::resize_file(prefix() + "/ckpt.4/rank_0", 10);
  EXPECT_EQ(import(), 1);
  EXPECT_EQ(listed(), (Strings{"ckpt.1"}));
  EXPECT_TRUE(logs("SCR's dataset 2 (ckpt.2): SCR has not marked it as complete")) << logged();
  EXPECT_TRUE(logs("SCR's dataset 3 (ckpt.3): ")) << logged();
  EXPECT_TRUE(logs("ckpt.3/rank_1")) << logged();
  EXPECT_TRUE(logs("dataset 4 (ckpt.4): its 2 files have 2014 bytes")) << logged();
  EXPECT_EQ(current(), "ckpt.1");
  EXPECT_TRUE(logs("ckpt.4, which SCR")) << logged();
}

TEST_F(IndexImport, SizesAndChecksumsThatScrHasRecordedAreCompared) {
  ScrPrefix::Dataset& sized = scr_.add(1, 1);
  sized.facts.ranks[0][0].size = 1001;
  const std::string content = ScrPrefix::content_of(2, 0);
  ScrPrefix::Dataset& summed = scr_.add(2, 1);
  summed.facts.ranks[0][0].crc32 = crc32(std::as_bytes(std::span(content)));
  scr_.write();
  ASSERT_EQ(import(), 0) << logged();
  fs::remove_all(folder().root());
  sized.facts.ranks[0][0].size = 1000;
  summed.facts.ranks[0][0].crc32 = 1;
  scr_.write();
  EXPECT_EQ(import(), 1);
  EXPECT_TRUE(logs("ckpt.1/rank_0 has 1001 bytes, and 1000 are recorded")) << logged();
  EXPECT_TRUE(logs("ckpt.2/rank_0 does not match the CRC32")) << logged();
  EXPECT_TRUE(listing().empty());
}

TEST_F(IndexImport, WhatWasWrittenAgainIsNotTheOlderDatasetAnyMore) {
  scr_.give(scr_.add(1, 1), 0, "state", "of 1");
  scr_.give(scr_.add(2, 1), 0, "state", "of 2");
  scr_.write();
  EXPECT_EQ(import(), 1);
  EXPECT_TRUE(logs("state was written again for SCR's dataset 2 (ckpt.2)")) << logged();
  EXPECT_EQ(listed(), (Strings{"ckpt.2"}));
  fs::remove_all(folder().root());
  ASSERT_EQ(add("ours", {"ckpt.2/rank_0"}, 1), 0) << logged();
  EXPECT_EQ(import(), 1);
  EXPECT_TRUE(logs("ckpt.2/rank_0 was written again for dataset ours")) << logged();
  EXPECT_EQ(listed(), (Strings{"ours"}));
}

TEST_F(IndexImport, AFileOfSeveralRanksIsShared) {
  ScrPrefix::Dataset& dataset = scr_.add(1, 3);
  scr_.give(dataset, 0, "all", std::string(1'000'000, 'x'));
  for (const std::size_t rank : {1, 2}) dataset.facts.ranks[rank].push_back({"all", {}, {}});
  scr_.write("ckpt.1");
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_EQ(files_of(listing()[0]),
            (Strings{"ckpt.1/rank_0 all*", "ckpt.1/rank_1 all*", "ckpt.1/rank_2 all*"}));
}

TEST_F(IndexImport, OneThatHasFailedStaysMarked) {
  scr_.add(1, 1);
  scr_.add(2, 1).facts.failed = true;
  scr_.write();
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_NE(listing()[0].failed_us, 0);
  EXPECT_EQ(listing()[1].failed_us, 0);
}

TEST_F(IndexImport, SomethingNewerStaysCurrent) {
  write("mine");
  ASSERT_EQ(add("mine", {"mine"}, 1), 0);
  scr_.add(1, 1);
  scr_.write("ckpt.1");
  ASSERT_EQ(import(), 0) << logged();
  EXPECT_EQ(listed(), (Strings{"mine", "ckpt.1"}));
  EXPECT_EQ(current(), "mine");
}

TEST_F(IndexImport, WhereScrHasNeverBeenNothingIsMade) {
  EXPECT_EQ(import(), 1);
  EXPECT_TRUE(logs("index.scr")) << logged();
  EXPECT_FALSE(fs::exists(folder().root()));
}

TEST_F(IndexImport, WhatWasDoneIsReportedAsJson) {
  scr_.add(1, 1);
  scr_.add(2, 1).complete_in_index = false;
  scr_.write();
  IndexCommand command;
  command.action = Action::import;
  command.json = true;
  EXPECT_EQ(run_index(command), 1);
  const auto json = printed_json();
  EXPECT_EQ(json["action"], "import");
  ASSERT_EQ(json["datasets"].size(), 1U);
  EXPECT_EQ(json["datasets"][0]["name"], "ckpt.1");
  ASSERT_EQ(json["refused"].size(), 1U);
}

/// The same is tested with the programs that restart from them in tests/from_scr.
TEST_F(IndexImport, DirectoriesOfARealScrAreTakenOverWhole) {
  for (const auto& [name, current, datasets] :
       std::vector<std::tuple<std::string, std::string, std::size_t>>{
           {"cached", "ckpt.4", 4}, {"bypass", "timestep.3", 3}, {"shared", "ckpt.2", 2}}) {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    const std::string unpack = fmt::format("tar -xzf {}/scr3/{}.tar.gz --strip-components=1 -C {}",
                                           CAIRN_GOLDEN, name, prefix());
    ASSERT_EQ(std::system(unpack.c_str()), 0);
    ASSERT_EQ(import(), 0) << logged();
    EXPECT_EQ(listed().size(), datasets) << name;
    EXPECT_EQ(this->current(), current);
    EXPECT_TRUE(is_good(current)) << printed();
  }
}

}  // namespace
}  // namespace cairn
