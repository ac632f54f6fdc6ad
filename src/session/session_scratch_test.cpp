// A run that begins from scratch although there was a checkpoint says so loudly, once, and why.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

constexpr const char* loud = "THE RUN STARTS FROM SCRATCH";

std::size_t times(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

void lose_two(JobBed& bed) {
  for (const char* node : {"n1", "n2"}) bed.lose(node);
}

Nodes spares_for_two() { return replaced(replaced(four_nodes(), "n1", "n4"), "n2", "n5"); }

/// A run that asks twice, and finds nothing.
void expect_from_scratch(JobBed& bed, const Nodes& nodes) {
  bed.run_well(nodes, [](JobRank& rank) {
    for (int time = 0; time < 2; ++time)
      EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
    rank.expect_written(9);
  });
}

TEST(SessionFromScratch, WhereTheCachesHaveLostMoreThanTheySurvive) {
  JobBed bed;
  bed.write(four_nodes(), {1, 2});
  lose_two(bed);
  expect_from_scratch(bed, spares_for_two());
  EXPECT_EQ(times(bed.log_text(), loud), 1U) << bed.log_text();
  const std::string line = bed.log_text().substr(bed.log_text().find(loud));
  for (const char* word : {"ckpt.2", "n1", "n2"})
    EXPECT_NE(line.substr(0, line.find('\n')).find(word), std::string::npos) << line;
}

TEST(SessionFromScratch, WhereThePrefixDirectoryHasNothingEither) {
  PrefixJobBed bed;
  bed.settings.log_json = true;
  bed.write(four_nodes(), {1});
  lose_two(bed);
  expect_from_scratch(bed, spares_for_two());
  EXPECT_EQ(times(bed.log_text(), loud), 1U) << bed.log_text();
  const std::string log = read_all(bed.settings.prefix + "/.cairn/log.json");
  EXPECT_EQ(times(log, "\"FRESH_START\""), 1U) << log;
}

TEST(SessionFromScratch, IsNotSaidWhereThePrefixDirectoryHasAnOlderOne) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  lose_two(bed);
  EXPECT_EQ(bed.restart(spares_for_two()), 2) << bed.log_text();
  EXPECT_EQ(times(bed.log_text(), loud), 0U) << bed.log_text();
}

TEST(SessionFromScratch, WhereTheProgramCannotUseTheOnlyCheckpoint) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 5));
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
  });
  EXPECT_EQ(times(bed.log_text(), loud), 1U) << bed.log_text();
  EXPECT_TRUE(bed.logs("rank 5")) << bed.log_text();
}

TEST(SessionFromScratch, WhereAnotherNumberOfRanksGivesUpWhatTheCachesHave) {
  JobBed bed;
  bed.write(four_nodes(), {1});
  bed.settings.on_mismatch = OnMismatch::fresh;
  expect_from_scratch(bed, {"n0", "n1", "n2", "n3"});
  EXPECT_EQ(times(bed.log_text(), loud), 1U) << bed.log_text();
}

TEST(SessionFromScratch, IsNotSaidOfAJobThatHadNoCheckpoint) {
  PrefixJobBed bed;
  expect_from_scratch(bed, four_nodes());
  EXPECT_EQ(times(bed.log_text(), loud), 0U) << bed.log_text();
}

// --- a prefix directory that is no use ---

TEST(SessionNoPrefix, OneThatDoesNotExistIsOneMessageForAllRanksAndCheckpoints) {
  PrefixJobBed bed;
  bed.settings.prefix = "/proc/nosuch";  // where it cannot be made
  bed.settings.flush_interval = 1;
  bed.settings.log_json = true;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
    for (const int dataset : {1, 2, 3, 4}) {
      EXPECT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
      const bool goes_outside = dataset % 2 == 0;
      if (goes_outside) {
        const auto outside = rank.session->route_file("/tmp/elsewhere");
        EXPECT_TRUE(!outside && outside.error().is_reported) << "the message before says why";
      }
      const Status done = rank.session->complete_output(rank.write_files(dataset).has_value());
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, goes_outside ? Code::invalid : Code::not_copied);
      EXPECT_EQ(done.error().is_reported, dataset != 2) << "the first that is lost is named";
    }
    rank.expect_not_all_copied();
  });
  EXPECT_EQ(times(bed.log_text(), "/proc/nosuch"), 1U) << bed.log_text();
}

TEST(SessionNoPrefix, AFileInItsPlaceIsOneMessageThatSaysSo) {
  PrefixJobBed bed;
  const std::string file = bed.settings.prefix + "/file";
  std::ofstream(file) << "no directory";
  bed.settings.prefix = file;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {1, 2}) {
      EXPECT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
      const Status done = rank.session->complete_output(rank.write_files(dataset).has_value());
      ASSERT_FALSE(done);
      EXPECT_TRUE(done.error().is_reported) << done.error().text;
    }
    rank.expect_not_all_copied();
  });
  EXPECT_EQ(times(bed.log_text(), file), 1U) << bed.log_text();
  EXPECT_TRUE(bed.logs("is not a directory")) << bed.log_text();
}

TEST(SessionNoPrefix, OneThatCannotBeWrittenIsReportedAgainWhenTheCauseChanges) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const auto fails_with = [&](Code code, int dataset) {
      rank.hook = [code](const FileOperation& operation) -> Status {
        const bool in_prefix = operation.path.find("/pfs/") != std::string_view::npos;
        if (!in_prefix || operation.name != "create") return {};
        return fail(code, "cannot create {}: {}", operation.path,
                    code == Code::io ? "Read-only file system" : "No space left on device");
      };
      rank.expect_not_copied(dataset);
      rank.hook = nullptr;
    };
    for (const int dataset : {1, 2}) fails_with(Code::io, dataset);
    for (const int dataset : {3, 4}) fails_with(Code::no_space, dataset);
    rank.expect_written(5);
    fails_with(Code::no_space, 6);
  });
  EXPECT_EQ(times(bed.log_text(), "Read-only file system"), 1U) << bed.log_text();
  EXPECT_EQ(times(bed.log_text(), "No space left"), 2U) << bed.log_text();
}

}  // namespace
}  // namespace cairn
