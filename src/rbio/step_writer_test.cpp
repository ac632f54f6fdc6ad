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
  std::unique_ptr<StepWriter> writer(Files& files, bool is_threaded) {
    auto made = std::make_unique<StepWriter>(
        services_of(files), StepWriter::Settings{is_threaded, folder_ / "series", 0, 600, nullptr});
    EXPECT_TRUE(made->start());
    return made;
  }
  /// Step 7 of one rank, three pieces long.
  std::shared_ptr<WriteJob> job() {
    const std::uint64_t bytes = 2 * write_bytes + 1;
    Blob data(bytes);
    Team(1).run([&](Communicator& comm) {
      const std::vector<Field> fields = {{{"x", ElementType::uint8, 1}, data.data(), bytes}};
      StepPlan plan = plan_step(comm, fields, 0);
      job_->task.shares = {plan.mine};
      job_->task.header = plan.header;
    });
    auto buffer = BufferPool(nullptr, 0, Log()).take(bytes);
    EXPECT_TRUE(buffer);
    job_->buffer = *buffer;
    job_->task.buffer = job_->buffer->segment->bytes().first(bytes);
    job_->task.header.step = 7;
    job_->task.header.attempt = {1, 1};
    job_->task.header.ranks = 1;
    job_->task.header.parts = 1;
    job_->task.writes_header = true;
    job_->begun = std::chrono::steady_clock::now();
    job_->number = 1;
    return job_;
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
  std::shared_ptr<WriteJob> job_ = std::make_shared<WriteJob>();
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
