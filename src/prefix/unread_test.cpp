// What a dataset whose record cannot be read now forbids.
#include "prefix/unread.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Uuid subject{5, 1};

std::vector<UnreadMatters> all_that_matters() {
  std::vector<UnreadMatters> all;
  for (std::size_t i = 0; i < unread_matters; ++i) all.push_back(static_cast<UnreadMatters>(i));
  return all;
}

/// Older than the subject, the subject, and newer; first those without unsettled files.
const std::vector<UnreadDataset>& each_kind() {
  static const std::vector<UnreadDataset> kinds = {
      {"", {4, 9}, "older", false},           {"", subject, "same", false},
      {"", {5, 2}, "newer", false},           {"", {4, 9}, "older, unsettled", true},
      {"", subject, "same, unsettled", true}, {"", {5, 2}, "newer, unsettled", true},
  };
  return kinds;
}

/// Which of each_kind() forbid it: x.
std::string_view expected(UnreadMatters what) {
  switch (what) {
    case UnreadMatters::restart:
    case UnreadMatters::import_scr:
      return "..x..x";
    case UnreadMatters::begin:
      return "...xxx";
    case UnreadMatters::give_names:
      return ".xxxxx";
    case UnreadMatters::add_files:
    case UnreadMatters::remove_files:
    case UnreadMatters::purge:
    case UnreadMatters::find:
    case UnreadMatters::list:
      return "xxxxxx";
    case UnreadMatters::choose:
    case UnreadMatters::drop_newer:
      return ".xx.xx";
  }
  return "";
}

bool is_expected(UnreadMatters what, std::size_t kind) { return expected(what)[kind] == 'x'; }

TEST(Unread, OneDatasetForbidsWhatItMayChange) {
  for (const UnreadMatters what : all_that_matters())
    for (std::size_t kind = 0; kind < each_kind().size(); ++kind) {
      const std::vector<UnreadDataset> one = {each_kind()[kind]};
      const Status checked = check_unread(what, one, {subject, "ckpt.1", "/prefix"});
      EXPECT_EQ(!checked, is_expected(what, kind)) << static_cast<int>(what) << one[0].why;
      EXPECT_EQ(forbidding(what, one, subject) != nullptr, is_expected(what, kind));
      if (checked) continue;
      EXPECT_EQ(checked.error().code, Code::io);
      EXPECT_TRUE(checked.error().text.ends_with(one[0].why)) << checked.error().text;
    }
}

TEST(Unread, OfSeveralTheNewestThatForbidsItIsNamed) {
  for (const UnreadMatters what : all_that_matters())
    for (std::size_t a = 0; a < each_kind().size(); ++a)
      for (std::size_t b = 0; b < each_kind().size(); ++b) {
        const std::vector<UnreadDataset> two = {each_kind()[a], each_kind()[b]};
        const UnreadDataset* found = forbidding(what, two, subject);
        ASSERT_EQ(found != nullptr, is_expected(what, a) || is_expected(what, b));
        if (found == nullptr) continue;
        EXPECT_TRUE(is_expected(what, found == two.data() ? a : b));
        for (const std::size_t kind : {a, b})
          EXPECT_TRUE(!is_expected(what, kind) || found->uuid >= each_kind()[kind].uuid);
      }
}

TEST(Unread, WithoutASubjectEachDatasetMayBeNewer) {
  for (const UnreadMatters what : all_that_matters())
    for (const UnreadDataset& one : each_kind())
      EXPECT_EQ(!check_unread(what, {one}), what != UnreadMatters::begin || one.unsettled);
}

TEST(Unread, NothingIsForbiddenWhereAllRecordsWereRead) {
  for (const UnreadMatters what : all_that_matters())
    EXPECT_TRUE(check_unread(what, {}, {subject, "ckpt.1", "/prefix"}));
}

TEST(Unread, TheErrorSaysWhatIsUnknown) {
  const auto text_of = [](UnreadMatters what, std::size_t kind) {
    const Status checked = check_unread(what, {each_kind()[kind]}, {subject, "ckpt.1", "/prefix"});
    return checked ? "" : checked.error().text;
  };
  const auto has = [](const std::string& text, std::string_view words) {
    return text.find(words) != std::string::npos;
  };
  EXPECT_TRUE(has(text_of(UnreadMatters::find, 0), "whether there is a dataset ckpt.1 in /prefix"));
  EXPECT_TRUE(has(text_of(UnreadMatters::choose, 2), "which dataset in /prefix is ckpt.1"));
  EXPECT_TRUE(has(text_of(UnreadMatters::drop_newer, 2), "what is newer than ckpt.1"));
  EXPECT_TRUE(has(text_of(UnreadMatters::give_names, 4), "whether newer datasets"));
  EXPECT_TRUE(has(text_of(UnreadMatters::give_names, 3), "older dataset may still need"));
  EXPECT_TRUE(has(text_of(UnreadMatters::begin, 5), "older dataset may still need"));
}

}  // namespace
}  // namespace cairn
