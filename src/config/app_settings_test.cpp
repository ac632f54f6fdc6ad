#include "config/app_settings.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::optional<std::string> nothing(const std::string&) { return std::nullopt; }

class AppSettingsTest : public ::testing::Test {
 protected:
  ConfigAnswer say(const std::string& text) {
    const auto request = parse_request(text, nothing);
    if (!request) return {std::nullopt, {request.error().text}};
    return request->kind == ConfigRequest::Kind::change ? app_.change(request->entry)
                                                        : app_.query(*request, resolved_);
  }
  std::string ask(const std::string& text) { return say(text).value.value_or("(nothing)"); }

  AppSettings app_;
  Lookup resolved_ = nothing;
};

TEST_F(AppSettingsTest, SetsAsksAndUnsets) {
  EXPECT_EQ(ask("SCR_DEBUG"), "(nothing)");
  EXPECT_TRUE(say("scr_debug=1").warnings.empty());
  EXPECT_EQ(ask("SCR_DEBUG"), "1");
  say("SCR_DEBUG=2");
  EXPECT_EQ(ask("SCR_DEBUG"), "2");
  EXPECT_EQ(app_.entries().size(), 1U);
  say("SCR_DEBUG=");
  EXPECT_EQ(ask("SCR_DEBUG"), "(nothing)");
  EXPECT_TRUE(app_.entries().empty());
}

TEST_F(AppSettingsTest, SetsAsksAndUnsetsLeaves) {
  say("CKPT=0 TYPE=XOR SET_SIZE=16");
  EXPECT_EQ(ask("CKPT"), "0");
  EXPECT_EQ(ask("CKPT=0 TYPE"), "XOR");
  EXPECT_EQ(ask("CKPT=1 TYPE"), "(nothing)");
  say("CKPT=0 TYPE=RS");
  EXPECT_EQ(ask("CKPT=0 TYPE"), "RS");
  EXPECT_EQ(ask("CKPT=0 SET_SIZE"), "16");
  say("CKPT=0 TYPE=");
  EXPECT_EQ(ask("CKPT=0 TYPE"), "(nothing)");
  EXPECT_EQ(ask("CKPT=0 SET_SIZE"), "16");
  say("CKPT=1 TYPE=SINGLE");
  EXPECT_EQ(ask("CKPT=0 SET_SIZE"), "16");
  EXPECT_EQ(ask("CKPT=1 TYPE"), "SINGLE");
  say("CKPT=");
  EXPECT_EQ(ask("CKPT=1 TYPE"), "(nothing)");
}

TEST_F(AppSettingsTest, SeveralValuesGiveAWarningAndNoAnswer) {
  say("CKPT=0 TYPE=XOR");
  say("CKPT=1 TYPE=RS");
  const ConfigAnswer answer = say("CKPT");
  EXPECT_FALSE(answer.value);
  ASSERT_EQ(answer.warnings.size(), 1U);
  EXPECT_NE(answer.warnings[0].find("0, 1"), std::string::npos);
  EXPECT_NE(answer.warnings[0].find("CKPT=0 "), std::string::npos);
}

TEST_F(AppSettingsTest, SettingsInForceHavePrecedence) {
  say("SCR_DEBUG=1");
  say("SCR_FLUSH=7");
  resolved_ = [](const std::string& key) -> std::optional<std::string> {
    if (key == "SCR_DEBUG") return "5";
    if (key == "CKPT=0 TYPE") return "PARTNER";
    return std::nullopt;
  };
  EXPECT_EQ(ask("SCR_DEBUG"), "5");
  EXPECT_EQ(ask("SCR_FLUSH"), "7");
  EXPECT_EQ(ask("CKPT=0 TYPE"), "PARTNER");
}

TEST_F(AppSettingsTest, QuotesKeepOddCharacters) {
  say("SCR_PREFIX='/a b/#1'");
  EXPECT_EQ(ask("SCR_PREFIX"), "/a b/#1");
}

TEST_F(AppSettingsTest, IgnoresSettingsThatItCannotSet) {
  for (const char* text : {"SCR_NODE_NAME=x", "SCR_LOG_DB_PASS=x", "CACHEDIR=/x BYTES=1"}) {
    const ConfigAnswer answer = say(text);
    ASSERT_EQ(answer.warnings.size(), 1U) << text;
    EXPECT_NE(answer.warnings[0].find("SCR_Config cannot set it"), std::string::npos);
  }
  EXPECT_TRUE(app_.entries().empty());
}

TEST_F(AppSettingsTest, FailsOnOtherForms) {
  for (const char* text : {"", "  # only", "A B", "CKPT=0 TYPE=XOR SET_SIZE",
                           "CKPT=0 TYPE SET_SIZE", "CKPT= TYPE=XOR", "A='x", "A=$NONE", "-"}) {
    const auto request = parse_request(text, nothing);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, Code::bad_setting);
    EXPECT_NE(request.error().text.find("SCR_Config(\"" + std::string(text) + "\")"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cairn
