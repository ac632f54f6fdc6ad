// What is special in mode collective; what it has in common with the others is in series_test.cpp.

#include <atomic>
#include <mutex>

#include "files/hooked_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

/// Fails, or not, on one rank, and counts.
class OneRankFails final : public CollectiveFiles {
 public:
  OneRankFails(std::shared_ptr<Files> files, std::atomic<bool>& fails)
      : below_(make_collective_files(std::move(files))), fails_(fails) {}

  void join(Communicator& comm, int part) override {
    rank_ = comm.rank();
    below_->join(comm, part);
  }
  Status write(Communicator& part, const std::string& path,
               const std::vector<FilePiece>& pieces) override {
    CAIRN_TRY(below_->write(part, path, pieces));
    if (rank_ == 3 && fails_) return fail(Code::no_space, "cannot write {}", path);
    return {};
  }

 private:
  const std::unique_ptr<CollectiveFiles> below_;
  std::atomic<bool>& fails_;
  int rank_ = 0;
};

class SeriesCollectiveTest : public testing::Test {
 protected:
  static Shape shape_of(Mode mode, int files) {
    Shape shape;
    shape.options.mode = mode;
    shape.options.group_size = 2;
    shape.options.files = files;
    return shape;
  }
  Blob part(const std::string& series, std::uint32_t number) {
    return read_file(*files_, series + "/step.2/" + part_name(number), 1 << 30).value();
  }

  TemporaryFolder folder_{fast_folder()};
  const std::shared_ptr<Files> files_ = make_posix_files();
  const std::string directory_ = folder_ / "series";
};

TEST_F(SeriesCollectiveTest, FilesAreTheSameAsThoseOfModeSyncAndEitherRestoresThem) {
  for (const std::uint32_t parts : {1U, 2U}) {
    const Shape sync = shape_of(Mode::sync, static_cast<int>(parts));
    const Shape collective = shape_of(Mode::collective, parts == 1 ? 1 : 0);
    const std::string a = folder_ / fmt::format("sync.{}", parts);
    const std::string b = folder_ / fmt::format("collective.{}", parts);
    write_steps(*files_, a, sync, {1, 2});
    write_steps(*files_, b, collective, {1, 2});
    for (std::uint32_t number = 0; number < parts; ++number)
      EXPECT_EQ(part(a, number), part(b, number));
    expect_restored(*files_, a, collective, 2);
    expect_restored(*files_, b, sync, 2);
  }
}

TEST_F(SeriesCollectiveTest, ANumberOfFilesBetweenOneAndThatOfGroupsIsAnError) {
  Shape shape = shape_of(Mode::collective, 2);
  shape.ranks = 6;
  Team(6).run([&](Communicator& comm) {
    const auto series =
        Series::open(comm, services_of(*files_), placement_of(shape), directory_, shape.options);
    ASSERT_FALSE(series);
    EXPECT_EQ(series.error().code, Code::bad_setting);
    EXPECT_NE(series.error().text.find("2 files for 3 groups"), std::string::npos);
  });
}

TEST_F(SeriesCollectiveTest, AllRanksSyncTheirBytesAndTheNameBeforeAnyLeavesAMarker) {
  std::mutex mutex;
  int synced_parts = 0, written_since = 0, synced_folders = 0;
  bool is_marked = false;
  const auto watching = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    const std::scoped_lock lock(mutex);
    if (operation.path.find("attempt.") == std::string_view::npos) return {};
    const bool is_part = operation.path.find("part.0") != std::string_view::npos;
    if (is_part && operation.name == "sync") ++synced_parts;
    if (is_part && operation.name == "write" && is_marked) ++written_since;
    if (operation.name == "sync_folder" && !is_marked) ++synced_folders;
    if (operation.name == "create" && operation.path.find("done.") != std::string_view::npos) {
      EXPECT_TRUE(is_marked || synced_parts == 4);
      is_marked = true;
    }
    return {};
  });
  write_steps(*watching, directory_, shape_of(Mode::collective, 1), {1});
  EXPECT_TRUE(is_marked);
  EXPECT_EQ(written_since, 0);
  EXPECT_EQ(synced_folders, 1);
}

TEST_F(SeriesCollectiveTest, AllBytesAreWrittenWhenBeginReturnsEachByItsOwnRank) {
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory_, shape_of(Mode::collective, 1));
    Program program(*series, comm.rank(), comm.size());
    const auto begun = series->begin(comm, 1);
    ASSERT_TRUE(begun);
    EXPECT_EQ(series->is_finished(*begun), true);
    const Statistics now = series->statistics();
    EXPECT_EQ(now.written_bytes, now.bytes);
    EXPECT_EQ(now.peak_buffer_bytes, 0U);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesCollectiveTest, AnErrorOfOneRankIsThatOfAllAndItsFilesGoWithTheNextStep) {
  std::atomic<bool> fails = false;
  Team(4).run([&](Communicator& comm) {
    Services services = services_of(*files_);
    services.collective = std::make_shared<OneRankFails>(files_, fails);
    const Shape shape = shape_of(Mode::collective, 0);
    const auto series =
        Series::open(comm, services, placement_of(shape), directory_, shape.options).value();
    Program program(*series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE(series->wait(comm, series->begin(comm, 1).value()));
    fails = true;
    comm.barrier();
    program.compute(2);
    const auto second = series->begin(comm, 2);
    ASSERT_TRUE(second);
    EXPECT_EQ(series->wait(comm, *second).error().code, Code::no_space);
    fails = false;
    comm.barrier();
    EXPECT_FALSE(files_->info(directory_ + "/step.2"));
    program.compute(3);
    ASSERT_TRUE(series->wait(comm, series->begin(comm, 3).value()));
    comm.barrier();
    EXPECT_EQ(files_->list(directory_ + "/.rbio").value(),
              (std::vector<std::string>{"generation", "lock"}));
    EXPECT_EQ(series->restore(comm, std::nullopt), 3U);
    EXPECT_TRUE(program.holds(3));
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_F(SeriesCollectiveTest, AStepThatTakesTooLongHasFailed) {
  std::atomic<bool> is_slow = false;
  const auto slow = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (is_slow && operation.name == "sync") ::usleep(300000);
    return {};
  });
  Shape shape = shape_of(Mode::collective, 1);
  shape.options.timeout_s = 0.25;
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *slow, directory_, shape);
    Program program(*series, comm.rank(), comm.size());
    is_slow = true;
    comm.barrier();
    const auto begun = series->begin(comm, 1);
    ASSERT_TRUE(begun);
    EXPECT_EQ(series->wait(comm, *begun).error().code, Code::io);
    EXPECT_EQ(series->steps(comm), std::vector<std::uint64_t>{});
    EXPECT_TRUE(series->close(comm));
  });
}

}  // namespace
}  // namespace cairn::rbio
