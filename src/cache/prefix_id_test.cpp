#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cache/job_folder.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using State = RecordedId::State;

constexpr PrefixId first_id{1};
constexpr PrefixId second_id{2};

class PrefixIdFile : public ::testing::Test {
 protected:
  PrefixIdFile() { fs::create_directory(prefix_); }

  RecordedId recorded() { return read_prefix_id(*files_, prefix_); }
  Result<PrefixId> record(PrefixId id, const RecordedId& before) {
    return record_prefix_id(*files_, *clock_, prefix_, id, before);
  }
  std::vector<std::string> names() {
    std::vector<std::string> found = *files_->list(prefix_ + "/.cairn");
    std::erase(found, "id.lock");
    return found;
  }

  TemporaryFolder folder_;
  const std::string prefix_ = folder_ / "prefix";
  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
};

TEST_F(PrefixIdFile, IsRecordedOnceAndStays) {
  const RecordedId before = recorded();
  ASSERT_EQ(before.state, State::none);
  EXPECT_EQ(record(first_id, before), first_id);
  EXPECT_EQ(record(second_id, before), first_id) << "read before the first was recorded";
  EXPECT_EQ(record(second_id, recorded()), first_id);
  EXPECT_EQ(recorded().id, first_id);
  EXPECT_EQ(names(), std::vector<std::string>{"id"});
}

TEST_F(PrefixIdFile, OfTwoThatRecordOneAtTheSameTimeBothGetTheSame) {
  const RecordedId before = recorded();
  // The other job does all its part just before each operation of this one.
  for (const std::string at : {"make_folder", "create", "write", "sync", "link"}) {
    fs::remove_all(prefix_ + "/.cairn");
    bool done = false;
    const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.name == at && !std::exchange(done, true)) {
        EXPECT_EQ(record(second_id, before), second_id);
      }
      return {};
    });
    EXPECT_EQ(record_prefix_id(*hooked, *clock_, prefix_, first_id, before), second_id) << at;
    EXPECT_TRUE(done) << at;
    EXPECT_EQ(recorded().id, second_id);
    EXPECT_EQ(names(), std::vector<std::string>{"id"}) << at;
  }
}

TEST_F(PrefixIdFile, WhatACrashLeftWhileItWasRecordedIsRemoved) {
  const RecordedId before = recorded();
  const auto hooked = make_hooked_files(*files_, [](const FileOperation& operation) -> Status {
    if (operation.name == "link") throw std::runtime_error("crash");
    return {};
  });
  EXPECT_THROW((void)record_prefix_id(*hooked, *clock_, prefix_, first_id, before),
               std::runtime_error);
  EXPECT_EQ(recorded().state, State::none);
  EXPECT_EQ(record(second_id, recorded()), second_id);
  EXPECT_EQ(names(), std::vector<std::string>{"id"});
}

TEST_F(PrefixIdFile, IsRecordedWhereFilesHaveNoSecondNames) {
  const auto hooked = make_hooked_files(*files_, [](const FileOperation& operation) -> Status {
    return operation.name == "link" ? fail(Code::io, "no such thing") : Status{};
  });
  EXPECT_EQ(record_prefix_id(*hooked, *clock_, prefix_, first_id, recorded()), first_id);
  EXPECT_EQ(recorded().id, first_id);
  EXPECT_EQ(names(), std::vector<std::string>{"id"});
}

TEST_F(PrefixIdFile, ADamagedOneIsReplacedByTheFirstThatSeesIt) {
  fs::create_directory(prefix_ + "/.cairn");
  std::ofstream(prefix_ + "/.cairn/id") << "nonsense";
  const RecordedId damaged = recorded();
  ASSERT_EQ(damaged.state, State::damaged);
  EXPECT_NE(damaged.trouble.find(prefix_ + "/.cairn/id"), std::string::npos) << damaged.trouble;
  EXPECT_EQ(record(first_id, damaged), first_id);
  EXPECT_EQ(record(second_id, damaged), first_id);
}

TEST_F(PrefixIdFile, ADirectoryThatIsNotThereIsUnreadableAndHasNotLostItsId) {
  EXPECT_EQ(read_prefix_id(*files_, folder_ / "absent").state, State::unreadable);
  fs::create_symlink(folder_ / "absent", folder_ / "link");
  EXPECT_EQ(read_prefix_id(*files_, folder_ / "link").state, State::unreadable);
  fs::remove(folder_ / "link");
  fs::create_directory_symlink(prefix_, folder_ / "link");
  EXPECT_EQ(read_prefix_id(*files_, folder_ / "link").state, State::none);
}

TEST_F(PrefixIdFile, IsNotReadThroughALinkBelowThePrefixDirectory) {
  ASSERT_EQ(record(first_id, recorded()), first_id);
  const std::string other = folder_ / "other";
  fs::create_directory(other);
  fs::create_directory_symlink(prefix_ + "/.cairn", other + "/.cairn");
  EXPECT_EQ(read_prefix_id(*files_, other).state, State::unreadable);
}

TEST_F(PrefixIdFile, ADirectoryIsNoCopyOfOneThatCannotBeSeenNow) {
  ASSERT_EQ(record(first_id, recorded()), first_id);
  const std::string other = folder_ / "other";
  fs::copy(prefix_, other, fs::copy_options::recursive);
  const std::vector<JobFolder> found = {{"", first_id, {other, first_id}, 1}};
  EXPECT_EQ(with_copy_seen(*files_, recorded(), prefix_, found).state, State::copied);
  for (const std::string& hidden : {prefix_, other}) {
    bool done = false;
    const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      const bool fails = operation.path == hidden + "/.cairn" && !std::exchange(done, true);
      return fails ? fail(Code::io, "injected") : Status{};
    });
    EXPECT_EQ(with_copy_seen(*hooked, recorded(), prefix_, found).state, State::known) << hidden;
  }
}

// --- which folder ---

struct Choice {
  std::string what;
  State state = State::known;
  std::vector<JobFolder> found;
  PrefixId chosen = PrefixId::none;
};

JobFolder used(PrefixId name_id, PrefixId noted, const std::string& at, std::int64_t when) {
  return {"", name_id, {at, noted}, when};
}

TEST(JobFolderChoice, IsThatOfTheFormat) {
  constexpr PrefixId own{7};
  constexpr PrefixId other{8};
  constexpr PrefixId drawn{9};
  constexpr PrefixId none = PrefixId::none;
  const std::vector<Choice> choices = {
      {"by the id, wherever it was", State::known, {used(own, own, "/old", 1)}, own},
      {"a crash before the note", State::known, {used(own, none, "", 0)}, own},
      {"never another's", State::known, {used(other, other, "/p", 1)}, none},
      {"nor one that is nobody's", State::known, {used(drawn, none, "/p", 1)}, none},
      {"drawn, and known since; used last",
       State::known,
       {used(own, own, "/p", 1), used(drawn, own, "/p", 2)},
       drawn},
      {"drawn, and known since; not used last",
       State::known,
       {used(own, own, "/p", 3), used(drawn, own, "/p", 2)},
       own},
      {"named so, and another's since", State::known, {used(own, other, "/p", 1)}, none},
      {"nobody's", State::none, {used(drawn, none, "/p", 1)}, drawn},
      {"nobody's, elsewhere", State::none, {used(drawn, none, "/q", 1)}, none},
      {"of the directory before", State::none, {used(other, other, "/p", 1)}, none},
      {"by the path",
       State::unreadable,
       {used(other, other, "/p", 2), used(drawn, none, "/p", 1)},
       other},
      {"by the path, used last",
       State::unreadable,
       {used(other, other, "/p", 2), used(drawn, none, "/p", 3)},
       drawn},
      {"elsewhere", State::unreadable, {used(own, own, "/q", 1)}, none},
      {"damaged: by the path", State::damaged, {used(own, own, "/p", 1)}, own},
      {"damaged, elsewhere", State::damaged, {used(own, own, "/q", 1)}, none},
      {"a copy", State::copied, {used(own, own, "/p", 1)}, none},
  };
  for (const Choice& choice : choices) {
    const JobFolder* chosen = choose_job_folder({choice.state, own, ""}, "/p", choice.found);
    EXPECT_EQ(chosen != nullptr ? chosen->name_id : none, choice.chosen) << choice.what;
  }
}

TEST_F(PrefixIdFile, OnlyFoldersOfThisJobAndUserAreFound) {
  Settings settings;
  settings.user = "ann";
  settings.job_id = "7";
  const std::string base = folder_ / "store";
  const std::string id = "0123456789abcdef";
  for (const std::string& name :
       {"cairn.7." + id, "cairn.7.1." + id, std::string("cairn.7"), "cairn.8." + id})
    fs::create_directories(base + "/ann/" + name);
  fs::create_directory_symlink(base, base + "/ann/cairn.7.fedcba9876543210");
  std::vector<std::string> unreadable;
  const auto found = find_job_folders(*files_, base, settings, unreadable);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, base + "/ann/cairn.7." + id);
  EXPECT_TRUE(found[0].is_unclaimed());
  EXPECT_EQ(unreadable.size(), 1U) << "the link";
  ASSERT_TRUE(note_prefix(*files_, found[0].path, {"/p", second_id}));
  const auto noted = find_job_folders(*files_, base, settings, unreadable);
  EXPECT_EQ(noted[0].note.path, "/p");
  EXPECT_EQ(noted[0].owner(), second_id);
}

}  // namespace
}  // namespace cairn
