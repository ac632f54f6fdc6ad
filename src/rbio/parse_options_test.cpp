#include "rbio/parse_options.hpp"

#include <gtest/gtest.h>

namespace cairn::rbio {
namespace {

std::optional<std::string> variable(const std::string& name) {
  return name == "RANKS" ? std::optional<std::string>("8") : std::nullopt;
}

Result<SeriesOptions> parsed(std::string_view text) {
  SeriesOptions options;
  CAIRN_TRY(apply_options(options, text, "here", variable));
  return options;
}

TEST(SeriesOptions, SetsEachKeyThatTheTextHas) {
  const auto options = parsed(
      "mode=collective GROUP=64 files = 2 memory=512MB keep=3 timeout=30 pace=0.5 direct=no");
  ASSERT_TRUE(options) << options.error().text;
  EXPECT_EQ(options->mode, Mode::collective);
  EXPECT_EQ(options->group_size, 64);
  EXPECT_EQ(options->files, 2);
  EXPECT_EQ(options->memory_bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(options->keep, 3U);
  EXPECT_EQ(options->timeout_s, 30);
  EXPECT_EQ(options->pace, 0.5);
  EXPECT_FALSE(options->is_direct);
}

TEST(SeriesOptions, KnowsEachMode) {
  EXPECT_EQ(parsed("mode=threaded")->mode, Mode::threaded);
  EXPECT_EQ(parsed("mode=split")->mode, Mode::split);
  EXPECT_EQ(parsed("mode=sync")->mode, Mode::sync);
}

TEST(SeriesOptions, KeepsWhatTheTextDoesNotName) {
  SeriesOptions options;
  options.files = 5;
  options.group_size = 6;
  ASSERT_TRUE(apply_options(options, "", "here", variable));
  ASSERT_TRUE(apply_options(options, "group=7", "here", variable));
  EXPECT_EQ(options.files, 5);
  EXPECT_EQ(options.group_size, 7);
}

TEST(SeriesOptions, ReplacesVariables) { EXPECT_EQ(parsed("group=$RANKS")->group_size, 8); }

TEST(SeriesOptions, FailsOnWhatIsNotAllowed) {
  for (const char* text : {"mode=fast", "mode=", "group=-1", "group=two", "files=1.5",
                           "memory=much", "timeout=0", "pace=1.1", "pace=-0.1", "pace=nan",
                           "direct=maybe", "keep", "=3", "group=$NOWHERE", "fields=2"}) {
    const auto options = parsed(text);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code, Code::bad_setting) << text;
    EXPECT_NE(options.error().text.find("(here)"), std::string::npos) << options.error().text;
  }
}

TEST(SeriesOptions, ProposesTheNearestKey) {
  EXPECT_NE(parsed("gruop=2").error().text.find("did you mean group?"), std::string::npos);
  const std::string unlike = parsed("something_else=2").error().text;
  EXPECT_NE(unlike.find("mode, group, files, keep, memory, timeout, pace, direct"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn::rbio
