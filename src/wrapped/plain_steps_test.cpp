#include "wrapped/plain_steps.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "agreement/step_order.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

/// The digits after the first "rest.", as a pattern rest\.(?<step>\d+)\. finds them.
std::string_view step_after_rest(std::string_view name) {
  const std::size_t begin = name.find("rest.");
  if (begin == std::string_view::npos) return {};
  std::size_t end = begin + 5;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  return name.substr(begin + 5, end < name.size() && name[end] == '.' ? end - begin - 5 : 0);
}

class PlainSteps : public testing::Test {
 protected:
  void put(const std::string& name) const {
    const std::filesystem::path path = prefix() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "plain";
  }
  LaterSteps later(const std::vector<std::string>& names) {
    return later_steps(*files_, prefix(), names, step_after_rest);
  }
  std::string prefix() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(PlainSteps, OnlyALaterFileOfTheSameNameCounts) {
  for (const char* name : {"rest.8.0", "rest.9.base", "rest.10.0", "rest.20.0.old", "rest.x.0",
                           "rest.30.1", "old.rest.40.0", "rest.50.5.0", "rest..0", "rest.0"})
    put(name);
  const LaterSteps found = later({"rest.9.0", "rest.9.base"});
  EXPECT_EQ(found.file, "rest.10.0");
  EXPECT_EQ(found.newest, number_in("10"));
  EXPECT_EQ(found.oldest, LaterSteps::none);
  EXPECT_EQ(found.lacking, "rest.9.base");
}

TEST_F(PlainSteps, TheNewestOfSeveralLaterStepsCountsForEachName) {
  for (const char* name : {"a/rest.10.0", "a/rest.12.0", "a/rest.11.0", "a/rest.11.1"}) put(name);
  const LaterSteps found = later({"a/rest.9.0", "a/rest.9.1"});
  EXPECT_EQ(found.file, "a/rest.12.0");
  EXPECT_EQ(found.newest, number_in("12"));
  EXPECT_EQ(found.oldest, number_in("11"));
  EXPECT_EQ(found.lacking, "a/rest.9.1");
}

/// The directory lists them in alphabetical order, the newest one first.
TEST_F(PlainSteps, TheNewestStepIsTheOneWithTheLargestNumber) {
  for (const char* name : {"rest.1000.0", "rest.200.0", "rest.30.0"}) put(name);
  EXPECT_EQ(later({"rest.9.0"}).file, "rest.1000.0");
}

TEST_F(PlainSteps, EachFileIsLookedForInItsOwnDirectory) {
  put("a/rest.8.0");
  put("b/rest.10.0");
  const LaterSteps found = later({"a/rest.9.0", "b/rest.9.0"});
  EXPECT_EQ(found.file, "b/rest.10.0");
  EXPECT_EQ(found.lacking, "a/rest.9.0");
}

TEST_F(PlainSteps, AStepThatIsADirectoryCountsForItsFilesOnly) {
  put("p0/rest.10./U");
  put("p0/rest.11./other");
  const LaterSteps found = later({"p0/rest.9./U"});
  EXPECT_EQ(found.file, "p0/rest.10./U");
  EXPECT_EQ(found.oldest, found.newest);
}

TEST_F(PlainSteps, NamesWithoutANumberOrADirectoryHaveNone) {
  put("rest.10.0");
  EXPECT_EQ(later({"state", "rest.x.0"}).oldest, LaterSteps().oldest);
  EXPECT_EQ(later({"missing/rest.9.0"}).oldest, LaterSteps::none);
  EXPECT_EQ(later({}).newest, LaterSteps::none);
}

}  // namespace
}  // namespace cairn
