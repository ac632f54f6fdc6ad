#include "rbio/step_writer.hpp"

#include "rbio/slow_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

using namespace std::chrono_literals;

class StepWriterTest : public testing::Test {
 protected:
  StepWriterTest() { EXPECT_TRUE(make_directories()); }

  Status make_directories() {
    SeriesDirectory series(*files_, folder_ / "series");
    CAIRN_TRY(series.open_for_writing());
    series.release();
    return {};
  }
  std::unique_ptr<StepWriter> writer(Files& files, bool is_threaded, double timeout_s = 600) {
    auto made = std::make_unique<StepWriter>(
        services_of(files),
        StepWriter::Settings{is_threaded, folder_ / "series", 0, timeout_s, nullptr});
    EXPECT_TRUE(made->start());
    return made;
  }
  /// Step 7, or a later one, of one rank, three pieces long.
  static std::shared_ptr<WriteJob> job(std::uint64_t number = 1) {
    auto made = std::make_shared<WriteJob>();
    const std::uint64_t bytes = 2 * write_bytes + 1;
    Blob data(bytes);
    Team(1).run([&](Communicator& comm) {
      const std::vector<Field> fields = {{{"x", ElementType::uint8, 1}, data.data(), bytes}};
      StepPlan plan = plan_step(comm, fields, 0);
      made->task.shares = {plan.mine};
      made->task.header = plan.header;
    });
    auto buffer = BufferPool(nullptr, 0, Log()).take(bytes);
    EXPECT_TRUE(buffer);
    made->buffer = *buffer;
    made->task.buffer = made->buffer->segment->bytes().first(bytes);
    made->task.header.step = 6 + number;
    made->task.header.attempt = {1, number};
    made->task.header.ranks = 1;
    made->task.header.parts = 1;
    made->task.writes_header = true;
    made->begun = std::chrono::steady_clock::now();
    made->number = number;
    return made;
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(StepWriterTest, WithoutAThreadNothingWaitsForTheNextStep) {
  const auto sync = writer(*files_, false);
  const auto paced = job();
  paced->paced_s = 60;
  sync->post(paced);
  EXPECT_TRUE(sync->is_done(*paced));
  EXPECT_EQ(sync->take_result(*paced).value(), Publication::published);
  EXPECT_LT(std::chrono::steady_clock::now() - paced->begun, 30s);
}

TEST_F(StepWriterTest, PausesEndWhenARankWaitsAndAreNoTimeOfWriting) {
  std::atomic<int> writes = 0;
  const auto watched = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "write") ++writes;
    return {};
  });
  const auto threaded = writer(*watched, true);
  const auto paced = job();
  paced->paced_s = 3600;
  threaded->post(paced);
  while (writes == 0) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1s);  // in which the first piece is written, and the pause begins
  EXPECT_EQ(writes, 1) << "the second piece is due in half an hour";
  EXPECT_FALSE(threaded->is_done(*paced));
  const auto waiting = std::chrono::steady_clock::now();
  EXPECT_TRUE(threaded->wait_until_done(*paced, waiting + 60s));
  EXPECT_EQ(threaded->take_result(*paced).value(), Publication::published);
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - paced->begun;
  EXPECT_LT(threaded->write_s(), since.count() - 0.1);
}

TEST_F(StepWriterTest, PausesEndWhenTheNextStepIsThere) {
  const auto threaded = writer(*files_, true);
  const auto paced = job(1), next = job(2);
  paced->paced_s = 3600;
  threaded->post(paced);
  threaded->post(next);
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (!threaded->is_done(*paced) && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(threaded->is_done(*paced));
}

TEST_F(StepWriterTest, StopFinishesAllThatWasPosted) {
  const auto threaded = writer(*files_, true);
  for (const std::uint64_t number : {1U, 2U, 3U}) threaded->post(job(number));
  threaded->stop();
  for (const int step : {7, 8, 9})
    EXPECT_TRUE(files_->info(fmt::format("{}/series/step.{}", folder_.path(), step)));
}

TEST_F(StepWriterTest, WritesAreLargeAndAligned) {
  std::vector<std::uint64_t> sizes;
  const auto watched = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "write" && operation.path.ends_with(part_name(0)))
      sizes.push_back(operation.bytes);
    return {};
  });
  const auto sync = writer(*watched, false);
  const auto posted = job();
  sync->post(posted);
  ASSERT_TRUE(sync->take_result(*posted));
  ASSERT_EQ(sizes.size(), 5U);  // three pieces, the table and the header
  const std::uint64_t offset = posted->task.header.fields[0].offset;
  EXPECT_EQ((offset + sizes[0]) % write_bytes, 0U);
  EXPECT_EQ(sizes[1], write_bytes);
  EXPECT_EQ(sizes[0] + sizes[1] + sizes[2], 2 * write_bytes + 1);
}

TEST_F(StepWriterTest, TheTimeOfWritingHasTheSyncs) {
  std::atomic<int> syncs = 0;
  const auto slow = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name != "sync") return {};
    ++syncs;
    std::this_thread::sleep_for(30ms);
    return {};
  });
  const auto sync = writer(*slow, false);
  const auto posted = job();
  sync->post(posted);
  ASSERT_TRUE(sync->take_result(*posted));
  EXPECT_GE(syncs, 1);
  EXPECT_GE(sync->write_s(), 0.03 * syncs);
}

TEST_F(StepWriterTest, AJobWhoseTimeIsOverIsNotPublishedAlsoIfNoRankWaitsForIt) {
  const auto slow = slow_files(*files_, 300ms);
  const auto threaded = writer(*slow, true, 0.1);
  const auto posted = job();
  threaded->post(posted);
  while (!threaded->is_done(*posted)) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(threaded->failure_of(*posted));
  EXPECT_EQ(threaded->take_result(*posted).error().code, Code::io);
  EXPECT_FALSE(files_->info(folder_ / "series/step.7"));
}

TEST_F(StepWriterTest, AJobWhoseResultWasTakenBeforeItsEndIsNotPublished) {
  Barrage barrage;
  const auto hanging = hanging_files(*files_, barrage, "sync");
  const auto threaded = writer(*hanging, true);
  const auto posted = job();
  barrage.close();
  threaded->post(posted);
  barrage.wait_until_reached();
  EXPECT_EQ(threaded->take_result(*posted).error().code, Code::io);
  barrage.open();
  EXPECT_TRUE(threaded->wait_until_done(*posted, std::chrono::steady_clock::now() + 60s));
  EXPECT_FALSE(files_->info(folder_ / "series/step.7"));
}

TEST_F(StepWriterTest, AJobThatWasGivenUpIsNotPublishedWhenItComes) {
  for (const bool is_threaded : {false, true}) {
    const auto writes = writer(*files_, is_threaded);
    const auto late = job();
    writes->give_up(*late);
    writes->post(late);
    EXPECT_TRUE(writes->wait_until_done(*late, std::chrono::steady_clock::now() + 30s));
    EXPECT_FALSE(late->buffer->is_used);
    writes->stop();
    EXPECT_FALSE(files_->info(folder_ / "series/step.7"));
  }
}

}  // namespace
}  // namespace cairn::rbio
