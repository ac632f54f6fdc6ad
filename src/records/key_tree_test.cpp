#include "records/key_tree.hpp"

#include <gtest/gtest.h>

#include "records/key_tree_writer.hpp"

namespace cairn {
namespace {

KeyTree example_tree() {
  return {"",
          {key_value("VERSION", "2"),
           {"DSET", {{"7", {{"NAME", {{"ckpt.7", {key_value("COMPLETE", "1")}}}}}}}}}};
}

TEST(KeyTree, AWrittenTreeIsRead) {
  for (const bool with_checksum : {true, false}) {
    const auto read = decode_key_tree(KeyTreeWriter::file(example_tree(), with_checksum));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, example_tree());
  }
  Blob longer = KeyTreeWriter::file(example_tree());
  longer.resize(longer.size() + 100);  // another tree, say
  EXPECT_TRUE(decode_key_tree(longer));
}

/// The bytes follow the documentation of the format.
TEST(KeyTree, AFileWithoutAChecksumAsDocumented) {
  constexpr std::string_view bytes(
      "\x95\x1f\xc3\xf5\0\1\0\1\0\0\0\0\0\0\0\x25\0\0\0\0"  // the header
      "\0\0\0\1A\0"
      "\0\0\0\1"
      "42\0\0\0\0\0",
      37);
  const auto read = decode_key_tree(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->number("A"), 42U);
}

TEST(KeyTree, FindsByKeys) {
  const KeyTree tree = example_tree();
  EXPECT_EQ(tree.number("VERSION"), 2U);
  EXPECT_EQ(tree.value("CURRENT"), "");
  EXPECT_EQ(tree.number("DSET"), 7U);
  const KeyTree* deep = tree.find({"DSET", "7", "NAME", "ckpt.7"});
  ASSERT_NE(deep, nullptr);
  EXPECT_EQ(deep->number("COMPLETE"), 1U);
  EXPECT_EQ(tree.find({"DSET", "8"}), nullptr);
}

TEST(KeyTree, NumbersAreDecimalAndNothingElse) {
  EXPECT_EQ(decimal("18446744073709551615"), UINT64_MAX);
  for (const char* wrong : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "18446744073709551616"})
    EXPECT_FALSE(decimal(wrong)) << wrong;
}

TEST(KeyTree, TruncatedAndChangedFilesAreCorrupt) {
  const Blob whole = KeyTreeWriter::file(example_tree());
  for (std::size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(decode_key_tree(Bytes(whole).first(length))) << length;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Blob changed = whole;
    changed[at] ^= std::byte{0x10};
    ASSERT_FALSE(decode_key_tree(changed)) << at;
  }
}

TEST(KeyTree, ANewerVersionIsNewerFormat) {
  Blob newer = KeyTreeWriter::file(example_tree(), false);
  newer[7] = std::byte{2};
  const auto read = decode_key_tree(newer);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::newer_format);
}

TEST(KeyTree, HugeCountsAndDeepNestingAreCorrupt) {
  Blob many = KeyTreeWriter::file(example_tree(), false);
  many[20] = many[21] = std::byte{0xff};
  EXPECT_FALSE(decode_key_tree(many));
  KeyTree deep;
  for (int levels = 0; levels < 100; ++levels) {
    KeyTree above;
    above.below.push_back(std::move(deep));
    deep = std::move(above);
    EXPECT_EQ(decode_key_tree(KeyTreeWriter::file(deep)).has_value(), levels < 64) << levels;
  }
}

}  // namespace
}  // namespace cairn
