#include "rbio/series_directory.hpp"

#include "files/passing_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

/// A process that is about to make its claim while another one publishes the step: the kernel has
/// found the directory already, and makes the claim where that is by then.
class LateClaim final : public PassingFiles {
 public:
  LateClaim(std::string attempt, std::string step)
      : PassingFiles(make_posix_files()), attempt_(std::move(attempt)), step_(std::move(step)) {}

  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    EXPECT_EQ(folder_of(path), attempt_);
    CAIRN_TRY(remove_all(*this, attempt_));
    return PassingFiles::make_new_folder(step_ + "/" + name_of_path(path), mode);
  }

 private:
  const std::string attempt_, step_;
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

  LateClaim late(published.attempt_path(attempt, 7), published.step_path(7));
  const auto publication = SeriesDirectory(late, path).publish_if_complete(attempt, 7, 2);
  ASSERT_TRUE(publication) << publication.error().text;
  EXPECT_EQ(*publication, Publication::by_others);
  EXPECT_EQ(posix->list(published.step_path(7)).value(),
            (std::vector<std::string>{"part.0.rbio", "part.1.rbio"}));
  expect_restored(*posix, path, shape, 7);
}

}  // namespace
}  // namespace cairn::rbio
