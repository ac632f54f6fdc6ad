#include "config/parser.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

std::optional<std::string> variable(const std::string& name) {
  if (name == "USER") return "ann";
  if (name == "EMPTY") return "";
  return std::nullopt;
}

/// "KEY=VALUE[CHILD=VALUE ...]@LINE;" of each entry.
std::string shown(const std::string& text) {
  const ParsedFile parsed = parse_entries(text, "file", variable);
  if (!parsed.problems.empty()) return parsed.problems[0];
  std::string all;
  for (const Entry& entry : parsed.entries) {
    all += entry.key + "=" + entry.value;
    for (const Pair& child : entry.children) all += "[" + child.key + "=" + child.value + "]";
    all += "@" + std::to_string(entry.line) + ";";
  }
  return all;
}

TEST(Parser, ReadsWhatTheSyntaxAllows) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"\n\n# nothing\n  \t\r\n", ""},
      {"scr_debug=1", "SCR_DEBUG=1@1;"},
      {"A=1\r\nB=2\r\n", "A=1@1;B=2@2;"},
      {"  A=1   # why", "A=1@1;"},
      {"A=1#why", "A=1@1;"},
      {"A=1\\#2", "A=1#2@1;"},
      {"A='1 # 2'", "A=1 # 2@1;"},
      {"\nCKPT=0 type=XOR\tSET_SIZE=4", "CKPT=0[TYPE=XOR][SET_SIZE=4]@2;"},
      {"A=", "A=@1;"},
      {"A = 1", "A=1@1;"},
      {"A =1 # why", "A=1@1;"},
      {"A= 1", "A=1@1;"},
      {"CKPT = 0 TYPE = XOR SET_SIZE =4", "CKPT=0[TYPE=XOR][SET_SIZE=4]@1;"},
      {"A = b=c", "A=b=c@1;"},
      {"A= # why", "A=@1;"},
      {"A= B=2", "A=[B=2]@1;"},
      {"A=/x/$USER/y", "A=/x/ann/y@1;"},
      {"A=${USER}s", "A=anns@1;"},
      {"A=\"$USER b\"c", "A=ann bc@1;"},
      {"A='$USER'", "A=$USER@1;"},
      {"A=\\$USER", "A=$USER@1;"},
      {"A=[$EMPTY]", "A=[]@1;"},
      {"A=1$ B=$/", "A=1$[B=$/]@1;"},
      {"A=\"a\\\"b\"", "A=a\"b@1;"},
      {"A=a\\ b", "A=a b@1;"},
      {"A=b=c", "A=b=c@1;"},
      {"A=\"\"", "A=@1;"},
      {"A=\xff\xfe", "A=\xff\xfe@1;"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(shown(text), expected) << text;
}

TEST(Parser, ErrorsNameFileLineAndText) {
  const std::pair<const char*, const char*> cases[] = {
      {"=1", "cannot begin a key"},
      {"A B = 1", "'A' has no value"},
      {"A", "'A' has no value"},
      {"hello world", "KEY=VALUE"},
      {"A=1 B", "'B' has no value"},
      {"A-B=1", "'-' cannot be part"},
      {"A='x", "the quote ' is not closed"},
      {"A=\"x", "the quote \" is not"},
      {"A=x\\", "a backslash ends the line"},
      {"A=$NONE", "$NONE is not set"},
      {"A=${USER", "must be followed by a name"},
      {"A=${}", "must be followed by"},
      {"\x01=1", "'\\x01' cannot begin"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = shown("GOOD=1\n" + std::string(text));
    EXPECT_EQ(error.rfind("file:2: ", 0), 0U) << error;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
    EXPECT_NE(error.find("the line is: " + std::string(text)), std::string::npos) << error;
  }
  EXPECT_EQ(parse_entries(std::string_view("A=\0", 3), "file", variable).problems.size(), 1U);
}

TEST(Parser, EveryWrongLineIsAProblemAndTheOthersAreRead) {
  const ParsedFile parsed = parse_entries("=1\nA=1\nB='x\n\nC=2\n", "file", variable);
  ASSERT_EQ(parsed.problems.size(), 2U);
  EXPECT_TRUE(parsed.problems[0].starts_with("file:1: ")) << parsed.problems[0];
  EXPECT_TRUE(parsed.problems[1].starts_with("file:3: ")) << parsed.problems[1];
  ASSERT_EQ(parsed.entries.size(), 2U);
  EXPECT_EQ(parsed.entries[1].line, 5);
}

TEST(Parser, ReplacesVariablesInAValueOfTheEnvironment) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"/x/$USER/y", "/x/ann/y"},
      {"${USER}s b # 'c'", "anns b # 'c'"},
      {"\\$USER", "$USER"},
      {"^ckpt$", "^ckpt$"},
      {"a\\b", "a\\b"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(*expand_variables(text, variable), expected);
  EXPECT_NE(expand_variables("$NONE/x", variable).error().text.find("$NONE"), std::string::npos);
}

TEST(Parser, TakesAnyBytes) {
  constexpr std::string_view spice = "Aa=1 \n\t#$ {}'\"\\_=\xff";
  std::mt19937 random(1);
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t length = random() % 20; length > 0; --length)
      text += random() % 8 ? spice[random() % spice.size()] : static_cast<char>(random());
    const ParsedFile parsed = parse_entries(text, "file", variable);
    good += parsed.problems.empty();
    for (const Entry& entry : parsed.entries) EXPECT_EQ(entry.key, upper_case(entry.key));
  }
  EXPECT_GT(good, 500);
}

}  // namespace
}  // namespace cairn
