#include "prefix/scr_index.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "records/key_tree_writer.hpp"
#include "support/scr_prefix.hpp"

namespace cairn {
namespace {

class ScrIndexTest : public ::testing::Test {
 protected:
  /// With all details.
  Result<ScrIndex> read() {
    const auto files = make_posix_files();
    CAIRN_ASSIGN(ScrIndex index, read_scr_index(*files, base_.path()));
    for (ScrDataset& dataset : index.datasets) read_scr_details(*files, base_.path(), dataset);
    return index;
  }
  std::string trouble() {
    scr_.write();
    const auto index = read();
    return index && index->datasets.size() == 1 ? index->datasets[0].trouble : "no such dataset";
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::string summary_of(std::uint64_t id) const {
    return scr_dataset_folder(base_.path(), id) + "/summary.scr";
  }

  static constexpr auto overwrite = std::filesystem::copy_options::overwrite_existing;
  TemporaryFolder base_{"/dev/shm"};
  ScrPrefix scr_{base_.path()};
};

TEST_F(ScrIndexTest, TellsWhatScrHasRecordedOldestFirst) {
  scr_.add(12, 5).facts.output = true;
  ScrDataset& plain = scr_.add(2, 1).facts;
  plain.checkpoint = 0;
  plain.failed = true;
  scr_.write("ckpt.12");
  const auto index = read();
  ASSERT_TRUE(index) << index.error().text;
  EXPECT_EQ(index->current, "ckpt.12");
  ASSERT_EQ(index->datasets.size(), 2U);
  const ScrDataset& old = index->datasets[0];
  const ScrDataset& recent = index->datasets[1];
  EXPECT_EQ(old.trouble + recent.trouble, "");
  EXPECT_EQ(old.id, 2U);
  EXPECT_EQ(old.checkpoint, 0U);
  EXPECT_TRUE(old.failed && !recent.failed && recent.output && !old.output);
  EXPECT_EQ(recent.checkpoint, 12U);
  EXPECT_EQ(recent.created_us, 1'600'000'000'000'012);
  EXPECT_EQ(recent.job_id, "77");
  EXPECT_EQ(recent.files, 5U);
  ASSERT_EQ(recent.ranks.size(), 5U) << "from three leaves";
  for (std::size_t rank = 0; rank < 5; ++rank) {
    ASSERT_EQ(recent.ranks[rank].size(), 1U);
    EXPECT_EQ(recent.ranks[rank][0].name, fmt::format("ckpt.12/rank_{}", rank));
  }
}

TEST_F(ScrIndexTest, SizesAndChecksumsAreReadWhereTheyAre) {
  ScrFile& file = scr_.add(1, 1).facts.ranks[0][0];
  file.size = 1001;
  file.crc32 = 0x028eeb9e;
  EXPECT_EQ(trouble(), "");
  const ScrFile found = read()->datasets[0].ranks[0][0];
  EXPECT_EQ(found.size, 1001U);
  EXPECT_EQ(found.crc32, 0x028eeb9eU);
}

TEST_F(ScrIndexTest, WhatIsNotCompleteSaysSo) {
  ScrPrefix::Dataset& dataset = scr_.add(1, 2);
  dataset.complete_in_index = false;
  EXPECT_TRUE(has(trouble(), "not marked it as complete"));
  EXPECT_EQ(read()->datasets[0].ranks.size(), 2U) << "whose names are known all the same";
  dataset.complete_in_index = true;
  dataset.complete_in_summary = false;
  EXPECT_TRUE(has(trouble(), "summary.scr"));
}

TEST_F(ScrIndexTest, RecordsThatDoNotFitAreReportedByName) {
  scr_.add(1, 4);
  ASSERT_EQ(trouble(), "");
  const std::string folder = "scr.dataset.1/";
  const auto reported = [&] { return read()->datasets[0].trouble; };
  const auto level = [](const char* name) { return key_value("LEVEL", name); };
  const KeyTree four = key_value("RANKS", "4");
  const auto leaf_at = [](const char* suffix, const char* offset) {
    return KeyTree{"RANK", {{"0", {key_value("FILE", suffix), key_value("OFFSET", offset)}}}};
  };
  for (const auto& [root, words] : std::vector<std::pair<KeyTree, std::string>>{
           {{"", {level("1"), four, leaf_at(".0.0", "0")}}, "only 2 of 4 ranks"},
           {{"", {level("1"), four, leaf_at("", "0")}}, "does not say where"},
           {{"", {level("1"), four, leaf_at("/../../x", "0")}}, "does not say where"},
           {{"", {level("1"), four, leaf_at(".0.0", "99999")}}, "cut short"},
           {{"", {level("0"), four, leaf_at(".0.0", "0")}}, "files of only"},
           {{"", {level("1"), four}}, "does not list the files"},
           {{"", {level("1"), leaf_at(".0.0", "0")}}, "the number of ranks"},
       }) {
    scr_.put(folder + "rank2file", root);
    EXPECT_TRUE(has(reported(), words)) << words << ": " << reported();
    EXPECT_TRUE(has(reported(), "rank2file")) << reported();
  }
  // A tree that comes back to itself ends.
  scr_.put(folder + "rank2file.0.0", {"", {level("1"), four, leaf_at(".0.0", "0")}});
  scr_.put(folder + "rank2file", {"", {level("1"), four, leaf_at(".0.0", "0")}});
  EXPECT_TRUE(has(reported(), "does not list the files")) << reported();
  std::filesystem::remove(base_.path() + "/.scr/scr.dataset.1/summary.scr");
  EXPECT_TRUE(has(reported(), "summary.scr")) << reported();
}

TEST_F(ScrIndexTest, NamesThatLeadOutOfThePrefixDirectoryAreRefused) {
  scr_.add(1, 1).facts.ranks[0][0].name = "../secret";
  EXPECT_TRUE(has(trouble(), "not in the prefix directory"));
}

TEST_F(ScrIndexTest, NamesOfCairnsOwnFilesAreRefused) {
  scr_.add(1, 1).facts.ranks[0][0].name = ".cairn/owner";
  EXPECT_TRUE(has(trouble(), "which is one of Cairn's own"));
}

TEST_F(ScrIndexTest, ASummaryWithTheNumberOfAnotherDatasetIsDamage) {
  scr_.add(1, 1).facts.created_us = 5;
  scr_.add(2, 1).facts.created_us = 5;
  scr_.write();
  ASSERT_EQ(read()->datasets[0].trouble, "");
  std::filesystem::copy_file(summary_of(2), summary_of(1), overwrite);
  EXPECT_TRUE(has(read()->datasets[0].trouble, "summary.scr belongs to another dataset, 2"));
  EXPECT_EQ(read()->datasets[1].trouble, "");
}

TEST_F(ScrIndexTest, ASummaryWithAnotherTimeThanTheIndexIsDamage) {
  ScrDataset& facts = scr_.add(1, 1).facts;
  ASSERT_EQ(trouble(), "");
  const std::string earlier = base_.path() + "/earlier.scr";
  std::filesystem::copy_file(summary_of(1), earlier);
  facts.created_us += 1;
  ASSERT_EQ(trouble(), "");
  std::filesystem::copy_file(earlier, summary_of(1), overwrite);
  EXPECT_TRUE(has(read()->datasets[0].trouble, "which was made at another time"));
}

TEST_F(ScrIndexTest, WhereThereIsNoIndexOrAnotherOne) {
  EXPECT_EQ(read().error().code, Code::not_found);
  scr_.write("", "1");
  EXPECT_EQ(read().error().code, Code::newer_format);
  std::ofstream(base_.path() + "/.scr/index.scr") << "x";
  EXPECT_TRUE(has(read().error().text, "index.scr: "));
  EXPECT_EQ(read().error().code, Code::corrupt);
}

}  // namespace
}  // namespace cairn
