// What the commands say of a dataset that was written when its job died, and not protected yet.
#include "dead_job.hpp"
#include "records/state_words.hpp"
#include "tools/cache_state.hpp"
#include "tools/exit_codes.hpp"
#include "tools/print_command.hpp"

namespace cairn {
namespace {

const std::string exposed_words(words_of(CacheState::written).sentence);

/// Dataset 1 is protected; dataset 2 is only written.
class OnlyWritten : public DeadJob {
 protected:
  OnlyWritten() {
    bed_.settings.checkpoints[0].behind = true;
    bed_.settings.flush_interval = 0;
    bed_.write(four_nodes(), {1});
    bed_.die_exposed(four_nodes(), 2);
  }

  /// Shows it as text, and returns what programs get.
  std::string print(const std::string& file) {
    std::ostringstream json;
    EXPECT_EQ(run_print_command({file, true}, *files_, json, Log()), exit_ok);
    EXPECT_EQ(keep_output_of([&](std::ostream& out, const Log& log) {
                return run_print_command({file, false}, *files_, out, log);
              }),
              exit_ok);
    return json.str();
  }
  std::string record(int dataset) const { return bed_.parts("n1", dataset).at(0) + "/record"; }
};

TEST_F(OnlyWritten, ExplainSaysThatItIsTakenAndNotProtected) {
  ASSERT_EQ(explain(), exit_ok) << logged();
  const auto said = said_of("ckpt.2", "cache");
  EXPECT_TRUE(said.at("taken")) << printed();
  EXPECT_TRUE(said.at("only_written"));
  EXPECT_TRUE(has(said, exposed_words)) << printed();
  EXPECT_FALSE(has(said, "whole")) << printed();
  EXPECT_TRUE(prints("bytes were not verified")) << printed();
  EXPECT_FALSE(prints("reads all of them")) << "there are no checksums: " << printed();
  EXPECT_FALSE(said_of("ckpt.1", "cache").at("only_written")) << printed();
  expect_forecast(2);
  ASSERT_EQ(explain(), exit_ok);
  EXPECT_FALSE(said_of("ckpt.2", "cache").at("only_written")) << "the run has protected it";
  EXPECT_FALSE(prints(exposed_words)) << printed();
}

TEST_F(OnlyWritten, ExplainSaysWhyTheLossOfANodeTakesIt) {
  bed_.lose("n1");
  ASSERT_EQ(explain(), exit_ok) << logged();
  const auto said = said_of("ckpt.2", "cache");
  EXPECT_FALSE(said.at("usable")) << printed();
  EXPECT_TRUE(said.at("only_written"));
  EXPECT_TRUE(has(said, "it was " + exposed_words)) << printed();
  expect_forecast(1, replaced(four_nodes(), "n1", "n4"));
}

TEST_F(OnlyWritten, ExplainSaysItToAnotherNumberOfRanks) {
  ASSERT_EQ(explain(4), exit_ok) << logged();
  EXPECT_TRUE(has(said_of("ckpt.2", "cache"), "it is " + exposed_words)) << printed();
}

TEST_F(OnlyWritten, VerifyDoesNotClaimThatItHasComparedItsBytes) {
  const auto before = contents_below(bed_.node(""));
  EXPECT_EQ(verify_caches(), exit_failure) << printed();
  const auto said = said_of("ckpt.2", "the caches");
  EXPECT_EQ(said.at("state"), "written");
  EXPECT_TRUE(said.at("only_written"));
  EXPECT_FALSE(prints("(ckpt.2) in the caches: good")) << printed();
  EXPECT_TRUE(prints("its bytes were not verified")) << printed();
  EXPECT_TRUE(prints("it is " + exposed_words)) << printed();
  EXPECT_TRUE(prints("(ckpt.1) in the caches: good")) << printed();
  EXPECT_EQ(verify_caches(true), exit_failure) << "there is nothing to repair: " << printed();
  EXPECT_EQ(contents_below(bed_.node("")), before);
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  EXPECT_EQ(verify_caches(), exit_ok) << printed();
}

TEST_F(OnlyWritten, VerifyFindsAFileThatChanged) {
  std::ofstream(bed_.parts("n2", 2).at(0) + "/files/ckpt.2/rank 4.0", std::ios::app) << "more";
  EXPECT_EQ(verify_caches(), exit_beyond_repair) << printed();
  EXPECT_EQ(said_of("ckpt.2", "the caches").at("state"), "lost");
  EXPECT_TRUE(prints("it was " + exposed_words)) << printed();
}

TEST_F(OnlyWritten, PrintShowsWhatTheRecordSays) {
  const std::string json = print(record(2));
  EXPECT_NE(json.find("\"state\": \"written\""), std::string::npos) << json;
  EXPECT_NE(json.find("this part is " + exposed_words), std::string::npos) << json;
  EXPECT_TRUE(prints("state: written")) << printed();
  EXPECT_TRUE(prints("this part is " + exposed_words)) << printed();
  EXPECT_EQ(print(record(1)).find(exposed_words), std::string::npos);
  EXPECT_FALSE(prints("state: written")) << printed();
  EXPECT_FALSE(prints(exposed_words)) << printed();
}

}  // namespace
}  // namespace cairn
