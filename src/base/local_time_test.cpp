#include "base/local_time.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace cairn {
namespace {

/// Central European Time as a rule, which needs no database of zones.
class LocalTime : public ::testing::Test {
 protected:
  LocalTime() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
};

TEST_F(LocalTime, IsReadAndWritten) {
  for (const auto& [text, time_s] : {std::pair{"1970-01-01T01:00:00", std::int64_t{0}},
                                     {"2026-07-01T12:00:00", 1'782'900'000},
                                     {"2024-02-29T23:59:59", 1'709'247'599}}) {
    const auto read = parse_local_time(text);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, time_s) << text;
    EXPECT_EQ(format_local_time(time_s), text);
  }
}

TEST_F(LocalTime, OtherTextIsABadArgumentWithTheText) {
  for (const char* text :
       {"", "soon", "2026-07-01", "2026-07-01 12:00:00", "2026-07-01T12:00", "2026-7-1T12:00:00",
        "2026-02-30T00:00:00", "2026-13-01T00:00:00", "2026-07-01T24:00:00", "2026-07-01T12:60:00",
        "2026-07-01T12:00:00Z", "1969-12-31T00:00:00", "+026-07-01T12:00:00", "2026-00-10T00:00:00",
        "2026-07-01T-1:00:00"}) {
    const auto read = parse_local_time(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::bad_argument);
    EXPECT_NE(read.error().text.find(text), std::string::npos) << read.error().text;
    EXPECT_NE(read.error().text.find("YYYY-MM-DDTHH:MM:SS"), std::string::npos);
  }
}

TEST_F(LocalTime, AnHourThatDoesNotExistIsABadArgument) {
  EXPECT_FALSE(parse_local_time("2026-03-29T02:30:00"));
  EXPECT_TRUE(parse_local_time("2026-10-25T02:30:00")) << "this one they go through twice";
}

}  // namespace
}  // namespace cairn
