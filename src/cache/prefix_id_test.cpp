#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cache/job_folder.hpp"
#include "files/hooked_files.hpp"
#include "files/passing_files.hpp"
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

TEST_F(PrefixIdFile, TwoConcurrentRunsGetTheSameId) {
  const RecordedId before = recorded();
  // The other run records its id just before each operation of this one.
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

TEST_F(PrefixIdFile, TemporaryFilesOfACrashedRunAreRemoved) {
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

TEST_F(PrefixIdFile, IsRecordedOnFileSystemsWithoutHardLinks) {
  const auto hooked = make_hooked_files(*files_, [](const FileOperation& operation) -> Status {
    return operation.name == "link" ? fail(Code::io, "no such thing") : Status{};
  });
  EXPECT_EQ(record_prefix_id(*hooked, *clock_, prefix_, first_id, recorded()), first_id);
  EXPECT_EQ(recorded().id, first_id);
  EXPECT_EQ(names(), std::vector<std::string>{"id"});
}

TEST_F(PrefixIdFile, ADamagedIdIsReplacedByTheFirstRunThatReadsIt) {
  fs::create_directory(prefix_ + "/.cairn");
  std::ofstream(prefix_ + "/.cairn/id") << "nonsense";
  const RecordedId damaged = recorded();
  ASSERT_EQ(damaged.state, State::damaged);
  EXPECT_NE(damaged.trouble.find(prefix_ + "/.cairn/id"), std::string::npos) << damaged.trouble;
  EXPECT_EQ(record(first_id, damaged), first_id);
  EXPECT_EQ(record(second_id, damaged), first_id);
}

TEST_F(PrefixIdFile, AMissingDirectoryIsUnreadableAndKeepsItsId) {
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

// --- a directory and its copies ---

struct OriginCase {
  std::string what;
  PrefixIdRecord record;
  bool is_claimed_there = false;
  RecordOrigin origin = RecordOrigin::here;
};

TEST(RecordOriginRule, IsThatOfTheFormat) {
  const PrefixIdRecord here = {first_id, "/p", 5};
  const PrefixIdRecord other_inode = {first_id, "/p", 6};
  const PrefixIdRecord other_path = {first_id, "/q", 5};
  const PrefixIdRecord other_both = {first_id, "/q", 6};
  const std::vector<OriginCase> cases = {
      {"as recorded", here, false, RecordOrigin::here},
      {"as recorded, whatever is elsewhere", here, true, RecordOrigin::here},
      {"restored at its path", other_inode, false, RecordOrigin::same_path},
      {"replaced by a copy", other_inode, true, RecordOrigin::same_path},
      {"renamed, or of two paths", other_path, false, RecordOrigin::renamed},
      {"replaced by a copy at its old path", other_path, true, RecordOrigin::elsewhere},
      {"a copy, the original is absent", other_both, false, RecordOrigin::elsewhere},
      {"a copy, the original is there", other_both, true, RecordOrigin::elsewhere},
  };
  for (const OriginCase& one : cases)
    EXPECT_EQ(origin_of(one.record, "/p", 5, one.is_claimed_there), one.origin) << one.what;
}

/// A prefix directory with an id, recorded in place, and its copy.
class PrefixCopy : public PrefixIdFile {
 protected:
  PrefixCopy() {
    EXPECT_EQ(record(first_id, recorded()), first_id);
    EXPECT_TRUE(recorded().is_in_place);
    fs::copy(prefix_, copy_, fs::copy_options::recursive);
  }
  RecordedId recorded_at(const std::string& path) { return read_prefix_id(*files_, path); }

  const std::string copy_ = folder_ / "copy";
};

TEST_F(PrefixCopy, IsKnownWithOrWithoutTheOriginal) {
  EXPECT_EQ(recorded_at(copy_).state, State::copied);
  EXPECT_EQ(recorded_at(copy_).path, prefix_);
  fs::rename(prefix_, folder_ / "aside");
  EXPECT_EQ(recorded_at(copy_).state, State::copied);
  EXPECT_EQ(recorded_at(folder_ / "aside").state, State::known) << "renamed";
}

TEST_F(PrefixCopy, NeverKeepsTheIdOfItsOriginal) {
  const RecordedId before = recorded_at(copy_);
  const auto id = record_prefix_id(*files_, *clock_, copy_, first_id, before);
  ASSERT_TRUE(id) << id.error().text;
  EXPECT_NE(*id, first_id);
  EXPECT_EQ(recorded_at(copy_).id, *id);
  EXPECT_TRUE(recorded_at(copy_).is_in_place);
  EXPECT_EQ(record_prefix_id(*files_, *clock_, copy_, second_id, before), *id)
      << "two processes that see the copy at the same time both get the first id";
}

TEST_F(PrefixCopy, MovedToThePathOfTheOriginalIsTheOriginal) {
  const std::string aside = folder_ / "aside";
  fs::rename(prefix_, aside);
  fs::rename(copy_, prefix_);
  EXPECT_EQ(recorded_at(aside).state, State::copied);
  EXPECT_EQ(recorded().state, State::known);
  EXPECT_FALSE(recorded().is_in_place);
  EXPECT_EQ(record(second_id, recorded()), first_id);
  EXPECT_TRUE(recorded().is_in_place);
  EXPECT_EQ(recorded_at(aside).state, State::copied);
}

TEST_F(PrefixCopy, MadeAfterARenameIsKnownByTheNewPath) {
  const std::string moved = folder_ / "moved";
  fs::rename(prefix_, moved);
  EXPECT_FALSE(recorded_at(moved).is_in_place);
  EXPECT_EQ(record_prefix_id(*files_, *clock_, moved, second_id, recorded_at(moved)), first_id);
  EXPECT_TRUE(recorded_at(moved).is_in_place);
  fs::copy(moved, folder_ / "late", fs::copy_options::recursive);
  EXPECT_EQ(recorded_at(folder_ / "late").path, moved);
}

TEST_F(PrefixCopy, ADirectoryUnderTwoPathsIsNoCopy) {
  fs::create_directory_symlink(prefix_, folder_ / "link");
  EXPECT_EQ(recorded_at(folder_ / "link").state, State::known);
}

TEST_F(PrefixCopy, AtTheOldPathIsDetectedByTheCachesOfTheMovedDirectory) {
  const std::string moved = folder_ / "moved";
  fs::rename(prefix_, moved);
  ASSERT_EQ(record_prefix_id(*files_, *clock_, moved, second_id, recorded_at(moved)), first_id);
  fs::rename(copy_, prefix_);  // a backup from before the move
  const std::vector<JobFolder> found = {{"", first_id, {moved, first_id}, 1}};
  const auto seen = [&](Files& files) { return with_copy_seen(files, recorded(), prefix_, found); };
  EXPECT_EQ(recorded().state, State::known);
  EXPECT_EQ(seen(*files_).state, State::copied);
  EXPECT_EQ(seen(*files_).path, moved);
  for (const std::string& hidden : {prefix_, moved}) {
    const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      return operation.path == hidden + "/.cairn" ? fail(Code::io, "injected") : Status{};
    });
    EXPECT_EQ(seen(*hooked).state, State::known) << "that cannot be seen now: " << hidden;
  }
  ASSERT_TRUE(replace_prefix_id(*files_, *clock_, prefix_, first_id));
  EXPECT_EQ(seen(*files_).state, State::known) << "a user said so";
}

// --- which directory ---

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
      {"nor an unclaimed one", State::known, {used(drawn, none, "/p", 1)}, none},
      {"drawn, and known since; used last",
       State::known,
       {used(own, own, "/p", 1), used(drawn, own, "/p", 2)},
       drawn},
      {"drawn, and known since; not used last",
       State::known,
       {used(own, own, "/p", 3), used(drawn, own, "/p", 2)},
       own},
      {"named so, and another's since", State::known, {used(own, other, "/p", 1)}, none},
      {"unclaimed", State::none, {used(drawn, none, "/p", 1)}, drawn},
      {"unclaimed, elsewhere", State::none, {used(drawn, none, "/q", 1)}, none},
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
      {"a copy, before its original noted anything",
       State::copied,
       {used(own, none, "/p", 1)},
       none},
      {"a copy where no id can be written", State::copied, {used(drawn, none, "/p", 1)}, drawn},
  };
  for (const Choice& choice : choices) {
    const JobFolder* chosen = choose_job_folder({choice.state, own, ""}, "/p", choice.found);
    EXPECT_EQ(chosen != nullptr ? chosen->name_id : none, choice.chosen) << choice.what;
  }
}

JobFolder with_datasets(JobFolder folder) {
  folder.has_datasets = true;
  return folder;
}

TEST(JobFolderLeft, HasDatasetsThatAUserMayMiss) {
  constexpr PrefixId own{7};
  constexpr PrefixId other{8};
  constexpr PrefixId drawn{9};
  constexpr PrefixId none = PrefixId::none;
  struct Case {
    std::string what;
    State state;
    JobFolder folder;
    bool is_left;
  };
  const std::vector<Case> cases = {
      {"its own", State::known, with_datasets(used(own, own, "/p", 1)), false},
      {"of the directory before", State::known, with_datasets(used(other, other, "/p", 1)), true},
      {"of one elsewhere", State::known, with_datasets(used(other, other, "/q", 1)), false},
      {"of a run that could not read", State::known, with_datasets(used(drawn, none, "/p", 1)),
       true},
      {"without a dataset", State::known, used(other, other, "/p", 1), false},
      {"the id is lost", State::none, with_datasets(used(own, own, "/p", 1)), true},
      {"the one that is chosen", State::none, with_datasets(used(drawn, none, "/p", 1)), false},
      {"of the original", State::copied, with_datasets(used(own, own, "/q", 1)), true},
      {"of neither", State::copied, with_datasets(used(other, other, "/q", 1)), false},
      {"by the path only", State::unreadable, with_datasets(used(other, other, "/p", 1)), false},
  };
  for (const Case& one : cases) {
    const RecordedId recorded = {one.state, one.state == State::none ? none : own, "", "/q"};
    const auto left = left_by_another(recorded, "/p", {one.folder});
    EXPECT_EQ(left.size(), one.is_left ? 1U : 0U) << one.what;
    const auto texts = texts_of_left(recorded, "/p", left);
    ASSERT_EQ(texts.size(), left.size());
    if (one.is_left) {
      const std::string remedy = "cairn index id " + text_of(one.folder.owner()) + " -p /p";
      EXPECT_NE(texts[0].find(remedy), std::string::npos) << texts[0];
    }
  }
}

/// A store with directories of several jobs.
class FindingJobFolders : public PrefixIdFile {
 protected:
  FindingJobFolders() {
    settings_.user = "ann";
    settings_.job_id = "7";
    for (const std::string& name :
         {"cairn.7." + id_, "cairn.7.1." + id_, std::string("cairn.7"), "cairn.8." + id_})
      fs::create_directories(path(name));
  }
  std::string path(const std::string& name) const { return base_ + "/ann/" + name; }
  JobFolders find(Files& files) const {
    JobFolders all;
    find_job_folders(files, base_, settings_, all);
    return all;
  }

  Settings settings_;
  const std::string base_ = folder_ / "store";
  const std::string id_ = "0123456789abcdef";
};

TEST_F(FindingJobFolders, FindsThoseOfThisJob) {
  const JobFolders all = find(*files_);
  ASSERT_EQ(all.found.size(), 1U);
  EXPECT_EQ(all.found[0].path, path("cairn.7." + id_));
  EXPECT_TRUE(all.found[0].is_unclaimed());
  EXPECT_FALSE(all.found[0].has_datasets);
  EXPECT_EQ(all.unreadable.size() + all.ignored.size(), 0U);
  ASSERT_TRUE(note_prefix(*files_, all.found[0].path, {"/p", second_id}));
  fs::create_directory(all.found[0].path + "/dataset.1.x");
  const JobFolders noted = find(*files_);
  EXPECT_EQ(noted.found[0].note.path, "/p");
  EXPECT_EQ(noted.found[0].owner(), second_id);
  EXPECT_TRUE(noted.found[0].has_datasets);
}

/// With the path alone, any directory at that path could use it.
TEST_F(FindingJobFolders, ACrashLeavesNoNoteWithAPathButNoId) {
  const std::string folder = path("cairn.7." + id_);
  bool is_noted = false;
  for (int most = 0; !is_noted; ++most) {
    for (const char* note : {"/prefix", "/prefix.id"}) fs::remove(folder + note);
    const auto hooked = make_hooked_files(*files_, [&, left = most](const FileOperation&) mutable {
      if (left-- == 0) throw std::runtime_error("crash");
      return Status{};
    });
    try {
      is_noted = note_prefix(*hooked, folder, {"/p", second_id}).has_value();
    } catch (const std::runtime_error&) {
    }
    const JobFolder found = find(*files_).found.at(0);
    EXPECT_TRUE(found.note.path.empty() || !found.is_unclaimed()) << "after operation " << most;
  }
}

TEST_F(FindingJobFolders, IgnoresLinksFilesAndDirectoriesOfOtherUsers) {
  const std::string elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere + "/dataset.1.x");
  fs::create_directory_symlink(elsewhere, path("cairn.7.fedcba9876543210"));
  std::ofstream(path("cairn.7.1111111111111111")) << "a file";
  const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    const bool follows = operation.path.find("fedcba9876543210/") != std::string_view::npos;
    EXPECT_FALSE(follows) << operation.name << " " << operation.path;
    return {};
  });
  const JobFolders all = find(*hooked);
  EXPECT_EQ(all.found.size(), 1U);
  EXPECT_EQ(all.unreadable, std::vector<std::string>{});
  EXPECT_EQ(all.ignored.size(), 2U);
}

/// Another user has made the entry, or the directory above it.
class AnotherUsersFiles : public PassingFiles {
 public:
  explicit AnotherUsersFiles(std::string path)
      : PassingFiles(make_posix_files()), path_(std::move(path)) {}
  Result<FileInfo> info(const std::string& path) override {
    auto info = PassingFiles::info(path);
    if (info && path == path_) info->owner += 1;
    return info;
  }

 private:
  const std::string path_;
};

TEST_F(FindingJobFolders, IgnoresEntriesOfAnotherUser) {
  for (const std::string& theirs : {path("cairn.7." + id_), base_ + "/ann"}) {
    AnotherUsersFiles files(theirs);
    const JobFolders all = find(files);
    EXPECT_EQ(all.found.size(), 0U) << theirs;
    EXPECT_EQ(all.unreadable.size(), 0U) << theirs;
    ASSERT_EQ(all.ignored.size(), 1U) << theirs;
    EXPECT_NE(all.ignored[0].find(theirs), std::string::npos) << all.ignored[0];
  }
}

TEST_F(FindingJobFolders, ReportsADirectoryOfThisUserThatCannotBeRead) {
  for (const std::string name : {"list", "open"}) {
    const auto hooked = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      const bool fails =
          operation.name == name && operation.path.starts_with(path("cairn.7." + id_));
      return fails ? fail(Code::io, "injected") : Status{};
    });
    const JobFolders all = find(*hooked);
    EXPECT_EQ(all.found.size(), 0U) << name;
    EXPECT_EQ(all.unreadable.size(), 1U) << name;
  }
}

}  // namespace
}  // namespace cairn
