#include "rbio/series.hpp"

#include <mutex>
#include <string_view>

#include "files/hooked_files.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

class SeriesTest : public testing::TestWithParam<Mode> {
 protected:
  std::string directory() const { return folder_ / "series"; }
  std::string part(std::uint64_t step, std::uint32_t part) {
    return SeriesDirectory(*files_, directory()).step_path(step) + "/" + part_name(part);
  }

  static Shape shape_of(int ranks, int group_size, int parts) {
    Shape shape;
    shape.ranks = ranks;
    shape.options.mode = GetParam();
    shape.options.group_size = group_size;
    shape.options.files = files_in(GetParam(), parts);
    return shape;
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_P(SeriesTest, EveryNumberOfRanksGroupsAndFilesGivesBackWhatWasWritten) {
  std::uint64_t step = 0;
  for (const int ranks : {1, 2, 3, 5, 8, 16}) {
    for (const int group_size : {0, 1, 2, 3, 64}) {
      const auto roles =
          assign_roles(placement_of(shape_of(ranks, 0, 0)).node_of_rank, group_size, 0, 0);
      for (const int parts : {0, 1, (roles->groups + 1) / 2}) {
        SCOPED_TRACE(fmt::format("{} ranks, groups of {}, {} files", ranks, group_size, parts));
        const Shape shape = shape_of(ranks, group_size, parts);
        write_steps(*files_, directory(), shape, {++step});
        expect_restored(*files_, directory(), shape, step);
      }
    }
  }
}

TEST_P(SeriesTest, AnyNumberOfRanksRestores) {
  write_steps(*files_, directory(), shape_of(6, 2, 2), {11});
  for (const int ranks : {1, 2, 5, 6, 9, 16})
    expect_restored(*files_, directory(), shape_of(ranks, 0, 0), 11);
}

TEST_P(SeriesTest, RanksThatAlternateBetweenNodesAreInRankOrderInASharedFile) {
  const Shape shape = shape_of(4, 0, 1);
  Placement alternating;
  alternating.node_of_rank = {1, 2, 1, 2};
  Team(4).run([&](Communicator& comm) {
    const auto series =
        Series::open(comm, services_of(*files_), alternating, directory(), shape.options);
    ASSERT_TRUE(series);
    Program program(**series, comm.rank(), comm.size());
    program.compute(5);
    const auto ticket = (*series)->begin(comm, 5);
    ASSERT_TRUE(ticket);
    ASSERT_TRUE((*series)->wait(comm, *ticket));
  });
  expect_restored(*files_, directory(), shape_of(3, 0, 0), 5);
}

TEST_P(SeriesTest, AStepThatIsWrittenAgainIsReplaced) {
  const Shape shape = shape_of(4, 2, 0);
  write_steps(*files_, directory(), shape, {1, 2, 3});
  write_steps(*files_, directory(), shape, {2});
  // The last one written is the newest: the run went back.
  expect_restored(*files_, directory(), shape, 2);
}

/// What a run does on disk, in order.
class Trace {
 public:
  static constexpr std::ptrdiff_t never = -1;

  std::unique_ptr<Files> over(Files& inner) {
    return make_hooked_files(inner, [this](const FileOperation& operation) -> Status {
      const std::scoped_lock lock(mutex_);
      done_.push_back(fmt::format("{} {} {}", operation.name, operation.path, operation.to));
      return {};
    });
  }
  /// The first or the last that begins and ends so, before or after another one.
  std::ptrdiff_t first(std::string_view begin, std::string_view end,
                       std::ptrdiff_t after = never) const {
    for (auto at = after + 1; at < std::ssize(done_); ++at)
      if (is(at, begin, end)) return at;
    return never;
  }
  std::ptrdiff_t last(std::string_view begin, std::string_view end) const {
    for (auto at = std::ssize(done_) - 1; at >= 0; --at)
      if (is(at, begin, end)) return at;
    return never;
  }

 private:
  bool is(std::ptrdiff_t at, std::string_view begin, std::string_view end) const {
    const std::string& one = done_[static_cast<std::size_t>(at)];
    return one.starts_with(begin) && one.ends_with(end);
  }

  std::mutex mutex_;
  std::vector<std::string> done_;
};

TEST_P(SeriesTest, BytesAreDurableBeforeTheirMarkerAndMarkersBeforeTheName) {
  Trace trace;
  const auto traced = trace.over(*files_);
  write_steps(*traced, directory(), shape_of(4, 2, 2), {1});
  const std::string attempt = directory() + "/.rbio/attempt.1-1.1";
  const auto named = trace.first("rename " + attempt + " ", "/step.1");
  ASSERT_NE(named, Trace::never);
  for (const std::string number : {"0", "1"}) {
    SCOPED_TRACE(number);
    const std::string part = attempt + "/part." + number + ".rbio ";
    const auto marked = trace.first("rename " + attempt, "/done." + number);
    const auto written = trace.last("write " + part, "");
    const auto synced = trace.last("sync " + part, "");
    EXPECT_NE(written, Trace::never);
    EXPECT_LT(written, synced);
    EXPECT_LT(synced, marked);
    const auto is_made =
        std::max(trace.first("append " + part, ""), trace.first("create " + part, ""));
    const auto has_name = trace.first("sync_folder " + attempt + " ", "", is_made);
    EXPECT_NE(has_name, Trace::never);
    EXPECT_LT(has_name, marked);
    EXPECT_LT(marked, named);
    const auto is_durable = trace.first("sync_folder " + directory() + " ", "", named);
    EXPECT_NE(is_durable, Trace::never);
    EXPECT_LT(is_durable, trace.first("remove_file " + directory() + "/step.1/done." + number, ""));
  }
}

TEST_P(SeriesTest, OnlyTheNewestStepsAreKept) {
  Shape shape = shape_of(4, 2, 1);
  shape.options.keep = 2;
  write_steps(*files_, directory(), shape, {10, 20, 30, 40});
  SeriesDirectory series(*files_, directory());
  const auto steps = series.steps();
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 2U);
  EXPECT_EQ((*steps)[0].step, 30U);
  EXPECT_EQ((*steps)[1].step, 40U);
}

/// Some of the header, the table and the fields, and the first and last of each gap.
std::vector<std::uint64_t> places_in(Files& files, const std::string& path) {
  const auto file = files.open(path).value();
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = 0; at < file->size().value(); at += at < 8192 ? 997 : 9973)
    places.push_back(at);
  const auto gaps = gaps_of(read_header(*file, path).value());
  EXPECT_FALSE(gaps.empty());
  for (const ByteRange& gap : gaps) {
    places.push_back(gap.begin);
    places.push_back(gap.end - 1);
  }
  return places;
}

TEST_P(SeriesTest, EveryFlippedByteIsFoundAndNeverHandedOut) {
  write_steps(*files_, directory(), shape_of(4, 2, 2), {1, 2});
  const Shape shape = shape_of(3, 2, 2);  // so that ranks also read parts of blocks
  const Blob content = read_file(*files_, part(2, 1), 1 << 30).value();
  int restored_after_a_warning = 0;
  for (const std::uint64_t at : places_in(*files_, part(2, 1))) {
    SCOPED_TRACE(fmt::format("byte {}", at));
    Blob damaged = content;
    damaged[at] ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(*files_, part(2, 1), damaged, false));
    std::atomic<int> warnings = 0;
    Team(3).run([&](Communicator& comm) {
      Services services = services_of(*files_);
      services.log = Log([&](Severity, const std::string&) { ++warnings; });
      const auto series =
          Series::open(comm, services, placement_of(shape), directory(), shape.options).value();
      Program program(*series, comm.rank(), comm.size());
      const auto restored = series->restore(comm, std::nullopt);
      ASSERT_TRUE(restored);
      EXPECT_TRUE(program.holds(*restored));
      if (comm.rank() == 0 && *restored == 2) ++restored_after_a_warning;
    });
    EXPECT_GE(warnings, 1);
  }
  EXPECT_GE(restored_after_a_warning, 2);  // the gaps are in no field
}

TEST_P(SeriesTest, AStepThatCannotBeReadNowIsNotPassedOver) {
  const Shape shape = shape_of(2, 0, 0);
  write_steps(*files_, directory(), shape, {1, 2});
  const auto broken = make_hooked_files(*files_, [](const FileOperation& operation) -> Status {
    if (operation.name == "read" && operation.path.ends_with("step.2/part.0.rbio"))
      return fail(Code::io, "{}: broken", operation.path);
    return {};
  });
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *broken, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::io);
    EXPECT_EQ(series->steps(comm).error().code, Code::io);
    EXPECT_EQ(series->restore(comm, 1), 1U);
    EXPECT_TRUE(program.holds(1));
  });
}

TEST_P(SeriesTest, AMissingPartIsFoundAndAnOlderStepIsRestored) {
  const Shape shape = shape_of(4, 2, 2);
  write_steps(*files_, directory(), shape, {1, 2});
  ASSERT_TRUE(files_->remove_file(part(2, 1)));
  expect_restored(*files_, directory(), shape, 1);
}

TEST_P(SeriesTest, APartOfAnotherStepIsNotTaken) {
  const Shape shape = shape_of(4, 2, 2);
  write_steps(*files_, directory(), shape, {1, 2});
  ASSERT_TRUE(files_->rename(part(1, 1), part(2, 1)));
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::corrupt);
  });
}

TEST_P(SeriesTest, APartOfAnEarlierWritingOfTheSameStepIsNotTaken) {
  const Shape shape = shape_of(4, 2, 2);
  write_steps(*files_, directory(), shape, {1, 2});
  const Blob earlier = read_file(*files_, part(2, 1), 1 << 30).value();
  write_steps(*files_, directory(), shape, {2});
  ASSERT_TRUE(write_file_atomically(*files_, part(2, 1), earlier, false));
  expect_restored(*files_, directory(), shape, 1);
}

TEST_P(SeriesTest, TheStepWrittenLastIsTheNewestAlsoIfTheWorkDirectoryWasRemoved) {
  const Shape shape = shape_of(2, 0, 0);
  write_steps(*files_, directory(), shape, {1, 2});
  write_steps(*files_, directory(), shape, {3});
  ASSERT_TRUE(remove_all(*files_, directory() + "/.rbio"));
  write_steps(*files_, directory(), shape, {1});
  expect_restored(*files_, directory(), shape, 1);
}

TEST_P(SeriesTest, StepsThatAreAllDamagedAreNotTakenForNone) {
  const Shape shape = shape_of(2, 0, 0);
  write_steps(*files_, directory(), shape, {1, 2});
  for (const std::uint64_t step : {1, 2})
    ASSERT_TRUE(write_file_atomically(*files_, part(step, 0), Blob(100), true));
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::corrupt);
    EXPECT_EQ(series->restore(comm, 2).error().code, Code::corrupt);
    EXPECT_EQ(series->restore(comm, 3).error().code, Code::not_found);
    EXPECT_EQ(series->steps(comm).error().code, Code::corrupt);
  });
}

TEST_P(SeriesTest, AStepThatWasAskedForIsRestored) {
  const Shape shape = shape_of(3, 0, 0);
  write_steps(*files_, directory(), shape, {1, 2, 3});
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->restore(comm, 2));
    EXPECT_TRUE(program.holds(2));
    EXPECT_EQ(series->restore(comm, 7).error().code, Code::not_found);
  });
}

TEST_P(SeriesTest, AnotherNumberOfElementsIsRefused) {
  const Shape shape = shape_of(2, 0, 0);
  write_steps(*files_, directory(), shape, {1});
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    std::vector<double> data(100);
    ASSERT_TRUE(series->add_field({"density", ElementType::float64, 1},
                                  reinterpret_cast<std::byte*>(data.data()), data.size()));
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::bad_argument);
  });
}

TEST_P(SeriesTest, AnotherTypeIsRefused) {
  const Shape shape = shape_of(1, 0, 0);
  write_steps(*files_, directory(), shape, {1});
  Team(1).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    std::vector<std::int64_t> data(total_of(0));
    ASSERT_TRUE(series->add_field({"density", ElementType::int64, 1},
                                  reinterpret_cast<std::byte*>(data.data()), data.size()));
    EXPECT_EQ(series->restore(comm, std::nullopt).error().code, Code::bad_argument);
  });
}

TEST_P(SeriesTest, RanksThatRegisterDifferentFieldsAreFound) {
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape_of(3, 0, 0));
    const auto type = comm.rank() == 2 ? ElementType::int32 : ElementType::int64;
    ASSERT_TRUE(series->add_field({"x", type, 1}, nullptr, 0));
    const auto begun = series->begin(comm, 7);
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::differs);
  });
}

TEST_P(SeriesTest, ASecondRunInTheSameDirectoryIsRefused) {
  Team(1).run([&](Communicator& comm) {
    const auto first = open_series(comm, *files_, directory(), shape_of(1, 0, 0));
    const auto second = Series::open(comm, services_of(*files_), placement_of(shape_of(1, 0, 0)),
                                     directory(), shape_of(1, 0, 0).options);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::busy);
  });
}

TEST_P(SeriesTest, ATicketIsWaitedForAsOftenAsOneLikes) {
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape_of(3, 1, 0));
    Program program(*series, comm.rank(), comm.size());
    EXPECT_EQ(series->wait(comm, 1).error().code, Code::bad_argument);
    for (const std::uint64_t step : {7U, 9U}) {
      program.compute(step);
      ASSERT_TRUE(series->begin(comm, step));
    }
    for (const Ticket ticket : {2, 1, 2}) {
      EXPECT_TRUE(series->wait(comm, ticket));
      EXPECT_TRUE(series->is_finished(ticket).value());
    }
    EXPECT_EQ(series->is_finished(3).error().code, Code::bad_argument);
    EXPECT_EQ(series->statistics().steps, 2U);
  });
}

TEST_P(SeriesTest, AClosedSeriesMayBeOpenedAgainAndAcceptsNoCalls) {
  Team(2).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape_of(2, 0, 0));
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->close(comm));
    EXPECT_EQ(series->begin(comm, 1).error().code, Code::wrong_state);
    EXPECT_EQ(series->close(comm).error().code, Code::wrong_state);
    EXPECT_TRUE(open_series(comm, *files_, directory(), shape_of(2, 0, 0)));
  });
}

TEST_P(SeriesTest, OptionsOutOfRangeAreErrors) {
  SeriesOptions late, fast;
  late.timeout_s = 0;
  fast.pace = 1.5;
  for (const SeriesOptions& options : {late, fast}) {
    Team(2).run([&](Communicator& comm) {
      const auto series = Series::open(comm, services_of(*files_), placement_of(shape_of(2, 0, 0)),
                                       directory(), options);
      ASSERT_FALSE(series);
      EXPECT_EQ(series.error().code, Code::bad_argument);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, SeriesTest, testing::ValuesIn(tested_modes), name_of_mode);

}  // namespace
}  // namespace cairn::rbio
