#include "rbio/series_directory.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "files/hooked_files.hpp"
#include "files/passing_files.hpp"
#include "rbio/test_series.hpp"
#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

/// A process that is about to make its claim while another one does something with the attempt: the
/// kernel has found the directory already, and makes the claim where that is by then.
class LateClaim final : public PassingFiles {
 public:
  using Meanwhile = std::function<Status(Files&)>;

  LateClaim(std::string attempt, std::string later_place, Meanwhile meanwhile)
      : PassingFiles(make_posix_files()),
        attempt_(std::move(attempt)),
        later_place_(std::move(later_place)),
        meanwhile_(std::move(meanwhile)) {}

  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    EXPECT_EQ(folder_of(path), attempt_);
    CAIRN_TRY(meanwhile_(*this));
    return PassingFiles::make_new_folder(later_place_ + "/" + name_of_path(path), mode);
  }

 private:
  const std::string attempt_, later_place_;
  const Meanwhile meanwhile_;
};

TEST(SeriesDirectory, AWriterPublishesNothingThatAnotherOneIsPublishing) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  SeriesDirectory series(*files, folder / "series");
  const Attempt attempt{1, 1};
  ASSERT_TRUE(series.open_for_writing());
  ASSERT_TRUE(series.make_attempt(attempt, 7));
  for (const int writer : {0, 1}) ASSERT_TRUE(series.mark_done(attempt, 7, writer, 2));
  ASSERT_EQ(files->make_new_folder(series.attempt_path(attempt, 7) + "/publishing", 0777), true);
  EXPECT_EQ(series.publish_if_complete(attempt, 7, 2), Publication::by_others);
  EXPECT_FALSE(files->info(series.step_path(7)));
  series.release();
  ASSERT_TRUE(series.open_for_writing());  // as after the death of the other one
  EXPECT_TRUE(files->info(series.step_path(7)));
}

TEST(SeriesDirectory, AnEarlierWritingOfAStepNeverReplacesALaterOne) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  for (int run = 0; run < 2; ++run) write_steps(*files, path, shape, {7});
  SeriesDirectory series(*files, path);
  const Attempt later = series.steps().value().at(0).attempt;
  const Attempt earlier{later.generation - 1, 9};
  ASSERT_TRUE(series.make_attempt(earlier, 7));
  ASSERT_TRUE(series.mark_done(earlier, 7, 0, 1));
  EXPECT_EQ(series.publish_if_complete(earlier, 7, 1), Publication::superseded);
  EXPECT_EQ(series.steps().value().at(0).attempt, later);
  EXPECT_FALSE(files->info(series.attempt_path(earlier, 7)));
  expect_restored(*files, path, shape, 7);
}

TEST(SeriesDirectory, AFlippedByteInTheGenerationMakesNoNewStepAnOldOne) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  const std::string path = folder / "series";
  const std::string generation = path + "/.rbio/generation";
  Shape shape;
  for (int run = 0; run < 3; ++run) write_steps(*files, path, shape, {7});
  const Blob whole = read_file(*files, generation, 4096).value();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Blob damaged = whole;
    damaged[i] ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(*files, generation, damaged, false));
    const auto opened = SeriesDirectory(*files, path).open_for_writing();
    ASSERT_TRUE(opened) << "byte " << i << ": " << opened.error().text;
    EXPECT_EQ(*opened, 4u) << "byte " << i;
  }
  const Blob newer = seal(RecordType::rbio_generation, 2, {});
  ASSERT_TRUE(write_file_atomically(*files, generation, newer, false));
  const auto refused = SeriesDirectory(*files, path).open_for_writing();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::newer_format);
  EXPECT_NE(refused.error().text.find(generation), std::string::npos) << refused.error().text;
}

TEST(SeriesDirectory, AClaimThatLandsInThePublishedStepLeavesItThere) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  shape.options.group_size = 2;
  write_steps(*posix, path, shape, {7});
  SeriesDirectory published(*posix, path);
  const Attempt attempt = published.steps().value().at(0).attempt;
  ASSERT_TRUE(published.make_attempt(attempt, 7));
  for (const int writer : {0, 1}) ASSERT_TRUE(published.mark_done(attempt, 7, writer, 2));

  const std::string folder_of_attempt = published.attempt_path(attempt, 7);
  LateClaim late(folder_of_attempt, published.step_path(7),
                 [&](Files& files) { return remove_all(files, folder_of_attempt); });
  const auto publication = SeriesDirectory(late, path).publish_if_complete(attempt, 7, 2);
  ASSERT_TRUE(publication) << publication.error().text;
  EXPECT_EQ(*publication, Publication::by_others);
  EXPECT_EQ(posix->list(published.step_path(7)).value(),
            (std::vector<std::string>{"part.0.rbio", "part.1.rbio"}));
  expect_restored(*posix, path, shape, 7);
}

/// A writer that has seen all markers of an attempt, and then stood still for some time.
class LateWriter final : public PassingFiles {
 public:
  LateWriter() : PassingFiles(make_posix_files()) {}

  Result<std::vector<std::string>> list(const std::string&) override {
    return std::vector<std::string>{"done.0", "done.1", "part.0.rbio"};
  }
};

/// A process that removes an attempt; when it has removed a marker, a late writer goes on.
class InterruptedRemoval final : public PassingFiles {
 public:
  explicit InterruptedRemoval(std::function<void()> goes_on)
      : PassingFiles(make_posix_files()), goes_on_(std::move(goes_on)) {}

  Status remove_file(const std::string& path) override {
    CAIRN_TRY(PassingFiles::remove_file(path));
    if (name_of_path(path) == marker_name(0)) goes_on_();
    return {};
  }

 private:
  const std::function<void()> goes_on_;
};

TEST(SeriesDirectory, ALateWriterPublishesNothingThatIsHalfRemoved) {
  const TemporaryFolder folder(fast_folder());
  LateWriter late_files;
  SeriesDirectory late(late_files, folder / "series");
  const Attempt attempt{1, 1};
  bool has_come = false;
  InterruptedRemoval files([&] {
    has_come = true;
    EXPECT_EQ(late.publish_if_complete(attempt, 7, 2), Publication::by_others);
  });
  SeriesDirectory series(files, folder / "series");
  ASSERT_TRUE(series.open_for_writing());
  ASSERT_TRUE(series.make_attempt(attempt, 7));
  ASSERT_TRUE(series.mark_done(attempt, 7, 0, 2));
  ASSERT_TRUE(files.append(series.attempt_path(attempt, 7) + "/part.0.rbio", {}, 0666));
  EXPECT_TRUE(series.remove_incomplete(attempt, 7, 2));
  EXPECT_TRUE(has_come);
  EXPECT_FALSE(files.info(series.step_path(7)));
  EXPECT_EQ(files.list(folder / "series/.rbio").value(),
            (std::vector<std::string>{"generation", "lock"}));
}

TEST(SeriesDirectory, AnAttemptThatIsBeingPublishedOrIsCompleteIsNotRemoved) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  SeriesDirectory series(*files, folder / "series");
  const Attempt attempt{1, 1};
  ASSERT_TRUE(series.open_for_writing());
  ASSERT_TRUE(series.make_attempt(attempt, 7));
  const std::string claim = series.attempt_path(attempt, 7) + "/publishing";
  ASSERT_EQ(files->make_new_folder(claim, 0777), true);
  EXPECT_TRUE(series.remove_incomplete(attempt, 7, 2));
  EXPECT_TRUE(files->info(claim));
  ASSERT_TRUE(files->remove_folder(claim));
  for (const int writer : {0, 1}) ASSERT_TRUE(series.mark_done(attempt, 7, writer, 2));
  EXPECT_TRUE(series.remove_incomplete(attempt, 7, 2));
  EXPECT_EQ(series.publish_if_complete(attempt, 7, 2), Publication::published);
}

TEST(SeriesDirectory, AClaimOfARemovedAttemptLeavesTheStepThatIsThere) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  write_steps(*posix, path, shape, {7});
  SeriesDirectory series(*posix, path);
  const Attempt later{9, 1};
  ASSERT_TRUE(series.make_attempt(later, 7));
  ASSERT_TRUE(series.mark_done(later, 7, 0, 1));
  const std::string folder_of_attempt = series.attempt_path(later, 7);
  const std::string aside = path + "/.rbio/" + removed_name({later, 7});
  LateClaim files(folder_of_attempt, aside,
                  [&](Files& there) { return there.rename(folder_of_attempt, aside); });
  EXPECT_EQ(SeriesDirectory(files, path).publish_if_complete(later, 7, 1), Publication::by_others);
  expect_restored(*posix, path, shape, 7);  // its open removes what was put aside
  EXPECT_EQ(posix->list(path + "/.rbio").value(), (std::vector<std::string>{"generation", "lock"}));
}

TEST(SeriesDirectory, AfterADeathAtAnyCallTheNextOpenMakesAllNamesDurable) {
  for (std::uint64_t at = 0;; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    const TemporaryFolder folder(fast_folder());
    const auto posix = make_posix_files();
    std::set<std::string> unsynced;  // directories that were made
    bool may_die = true;
    const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      if (may_die && operation.index >= at)
        return fail(Code::io, "{}: the process is dead", operation.path);
      const std::string path(operation.path);
      if (operation.name == "make_new_folder" && !posix->info(path)) unsynced.insert(path);
      if (operation.name == "sync_folder")
        std::erase_if(unsynced, [&](const std::string& made) { return folder_of(made) == path; });
      return {};
    });
    const std::string path = folder / "runs/today/series";
    const bool was_opened = SeriesDirectory(*files, path).open_for_writing().has_value();
    may_die = false;
    std::erase_if(unsynced, [&](const std::string& made) { return !posix->info(made); });
    ASSERT_TRUE(SeriesDirectory(*files, path).open_for_writing());
    EXPECT_EQ(unsynced, std::set<std::string>());
    if (was_opened) break;
  }
}

TEST(SeriesDirectory, AMarkerCountsOnceItHasItsName) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  SeriesDirectory series(*files, folder / "series");
  const Attempt attempt{1, 1};
  ASSERT_TRUE(series.open_for_writing());
  ASSERT_TRUE(series.make_attempt(attempt, 7));
  ASSERT_TRUE(series.mark_done(attempt, 7, 0, 2));
  const std::string path = series.attempt_path(attempt, 7);
  for (const char* name : {"/done.1.tmp", "/done.", "/done.x", "/done"})
    ASSERT_TRUE(files->append(path + name, {}, 0644));
  EXPECT_EQ(series.publish_if_complete(attempt, 7, 2), Publication::by_others);
  EXPECT_FALSE(files->info(series.step_path(7)));
}

TEST(SeriesDirectory, MarkersOfAnotherAttemptOrStepDoNotCount) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  SeriesDirectory series(*files, folder / "series");
  const Attempt attempt{1, 2};
  ASSERT_TRUE(series.open_for_writing());
  for (const auto& [other, step] : {std::pair(Attempt{1, 1}, 7), std::pair(attempt, 8)}) {
    ASSERT_TRUE(series.make_attempt(other, static_cast<std::uint64_t>(step)));
    ASSERT_TRUE(series.mark_done(other, static_cast<std::uint64_t>(step), 1, 2));
  }
  ASSERT_TRUE(series.make_attempt(attempt, 7));
  ASSERT_TRUE(series.mark_done(attempt, 7, 0, 2));
  EXPECT_EQ(series.publish_if_complete(attempt, 7, 2), Publication::by_others);
  series.release();
  ASSERT_TRUE(series.open_for_writing());  // as after a death
  EXPECT_TRUE(series.steps().value().empty());
}

/// Complete, and published by no one yet.
std::string make_complete_attempt(Files& files, SeriesDirectory& series, const Attempt& attempt) {
  EXPECT_TRUE(series.make_attempt(attempt, 7));
  const std::string path = series.attempt_path(attempt, 7);
  EXPECT_TRUE(files.append(path + "/part.0.rbio", {}, 0666));
  for (const int writer : {0, 1}) EXPECT_TRUE(series.mark_done(attempt, 7, writer, 2));
  return path;
}

TEST(SeriesDirectory, ADamagedMarkerLosesNoCompleteStep) {
  for (const std::string damaged : {"/done.0", "/done.1"}) {
    const TemporaryFolder folder(fast_folder());
    const auto files = make_posix_files();
    SeriesDirectory series(*files, folder / "series");
    ASSERT_TRUE(series.open_for_writing());
    const std::string path = make_complete_attempt(*files, series, {1, 1});
    ASSERT_TRUE(write_file_atomically(*files, path + damaged, Blob(5), false));
    series.release();
    ASSERT_TRUE(series.open_for_writing());
    EXPECT_TRUE(files->info(series.step_path(7))) << damaged;
  }
}

TEST(SeriesDirectory, AMarkerOfANewerFormatIsAnErrorAndTheStepStays) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  SeriesDirectory series(*files, folder / "series");
  ASSERT_TRUE(series.open_for_writing());
  const std::string path = make_complete_attempt(*files, series, {1, 1});
  const Blob newer = seal(RecordType::rbio_done, 2, {});
  for (const std::string marker : {"/done.0", "/done.1"})
    ASSERT_TRUE(write_file_atomically(*files, path + marker, newer, false));
  series.release();
  const auto opened = series.open_for_writing();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::newer_format);
  EXPECT_NE(opened.error().text.find(path), std::string::npos) << opened.error().text;
  EXPECT_TRUE(files->info(path));
}

TEST(SeriesDirectory, AStepWithItsNameIsPublishedWhateverFailsAfterwards) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  int failures = 0;
  const auto failing = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (!operation.name.starts_with("remove_") ||
        operation.path.find("/step.7/") == std::string_view::npos)
      return {};
    ++failures;
    return fail(Code::io, "{}: failed", operation.path);
  });
  SeriesDirectory series(*failing, folder / "series");
  ASSERT_TRUE(series.open_for_writing());
  make_complete_attempt(*posix, series, {1, 1});
  const auto publication = series.publish_if_complete({1, 1}, 7, 2);
  ASSERT_TRUE(publication) << publication.error().text;
  EXPECT_EQ(*publication, Publication::published);
  EXPECT_EQ(failures, 3);  // the claim, and two markers
}

TEST(SeriesDirectory, AStepThatIsReplacedIsRemovedOnceTheNewOneHasItsName) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  bool was_removed = false, was_named = false;
  const auto watched = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (operation.name == "rename" && operation.to == path + "/step.7") was_named = true;
    if (!operation.name.starts_with("remove_") ||
        operation.path.find("/removed.7/") == std::string_view::npos)
      return {};
    was_removed = true;
    EXPECT_TRUE(was_named) << operation.path;
    return {};
  });
  Shape shape;
  write_steps(*posix, path, shape, {7});
  write_steps(*watched, path, shape, {7});
  EXPECT_TRUE(was_removed);
  EXPECT_EQ(posix->list(path + "/.rbio").value(), (std::vector<std::string>{"generation", "lock"}));
  expect_restored(*posix, path, shape, 7);
}

TEST(SeriesDirectory, AStepWhoseSuccessorCannotGetItsNameStays) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  write_steps(*posix, path, shape, {7});
  const auto failing = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (operation.name == "rename" && operation.to == path + "/step.7" &&
        operation.path.find("/attempt.") != std::string_view::npos)
      return fail(Code::io, "{}: failed", operation.path);
    return {};
  });
  SeriesDirectory series(*failing, path);
  ASSERT_TRUE(series.make_attempt({9, 1}, 7));
  ASSERT_TRUE(series.mark_done({9, 1}, 7, 0, 1));
  EXPECT_EQ(series.publish_if_complete({9, 1}, 7, 1).error().code, Code::io);
  ASSERT_EQ(series.steps().value().size(), 1U);
  EXPECT_EQ(series.steps().value()[0].attempt.generation, 1U);
}

/// As the I/O thread of a run that a file system has held, while another run wrote the step anew.
TEST(SeriesDirectory, AStepThatWasWrittenAnewMeanwhileIsNotPutAside) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  write_steps(*posix, path, shape, {7});
  write_steps(*posix, path, shape, {8});
  bool has_come = false;
  const auto held = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
    if (operation.path.ends_with("/removed.7") && !std::exchange(has_come, true))
      write_steps(*posix, path, shape, {7});
    return {};
  });
  EXPECT_TRUE(SeriesDirectory(*held, path).remove_all_but(1));
  EXPECT_TRUE(has_come);
  expect_restored(*posix, path, shape, 7);

  has_come = false;
  SeriesDirectory late(*held, path);
  const Attempt attempt{3, 9};  // between the two writings
  ASSERT_TRUE(late.make_attempt(attempt, 7));
  ASSERT_TRUE(late.mark_done(attempt, 7, 0, 1));
  EXPECT_EQ(late.publish_if_complete(attempt, 7, 1), Publication::superseded);
  expect_restored(*posix, path, shape, 7);
}

TEST(SeriesDirectory, AFileInItsPlaceIsNotAFirstRun) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  ASSERT_TRUE(files->append(folder / "file", {}, 0644));
  for (const char* path : {"file", "file/series"})
    EXPECT_EQ(SeriesDirectory(*files, folder / path).open_for_writing().error().code, Code::io);
}

/// Later it may be readable again. A damaged one stays too: a user may still save parts of it.
TEST(SeriesDirectory, AStepThatCannotBeReadStaysAndIsNotCounted) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const std::string path = folder / "series";
  write_steps(*posix, path, Shape(), {1, 2, 3, 4});
  const auto broken = make_hooked_files(*posix, [](const FileOperation& operation) -> Status {
    if (operation.name != "read" || !operation.path.ends_with("step.1/part.0.rbio")) return {};
    return fail(Code::io, "{}: broken", operation.path);
  });
  SeriesDirectory series(*broken, path);
  ASSERT_TRUE(write_file_atomically(*posix, series.step_path(2) + "/" + part_name(0), {}, false));
  const Status removed = series.remove_all_but(1);
  ASSERT_TRUE(removed) << removed.error().text;
  for (const std::uint64_t step : {1, 2, 4}) EXPECT_TRUE(posix->info(series.step_path(step)));
  EXPECT_FALSE(posix->info(series.step_path(3)));
}

/// Else each step would fail as it gets its name.
TEST(SeriesDirectory, ALinkInItsPlaceIsUntrustedAlsoIfThereAreStepsBehindIt) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  write_steps(*files, folder / "series", Shape(), {1});
  ASSERT_TRUE(files->make_folder(folder / "empty", 0777));
  for (const char* target : {"series", "empty"}) {
    const std::string link = folder / (std::string("link to ") + target);
    std::filesystem::create_directory_symlink(folder / target, link);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(SeriesDirectory(*files, link).open_for_writing().error().code, Code::untrusted);
  }
}

TEST(SeriesDirectory, AFileSystemWithoutLocksIsNamed) {
  const TemporaryFolder folder(fast_folder());
  const auto posix = make_posix_files();
  const auto files = make_hooked_files(*posix, [](const FileOperation& operation) -> Status {
    if (operation.name != "lock") return {};
    return fail(Code::io, "cannot lock {}: Function not implemented", operation.path);
  });
  const auto opened = SeriesDirectory(*files, folder / "series").open_for_writing();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::io);
  EXPECT_NE(opened.error().text.find("flock"), std::string::npos) << opened.error().text;
}

TEST(SeriesDirectory, AStepCopiedFromAnotherSeriesIsOlderThanAllThatAreWrittenLater) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  const std::string path = folder / "series";
  Shape shape;
  shape.options.keep = 1;
  for (int run = 0; run < 3; ++run) write_steps(*files, folder / "other", shape, {7});
  write_steps(*files, path, shape, {1});
  ASSERT_TRUE(files->rename(folder / "other/step.7", path + "/step.7"));
  write_steps(*files, path, shape, {8});
  const auto steps = SeriesDirectory(*files, path).steps().value();
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].step, 8U);
  expect_restored(*files, path, shape, 8);
}

}  // namespace
}  // namespace cairn::rbio
