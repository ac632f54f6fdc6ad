// Kinds and amounts of data, and ways to bring them to the writer.

#include <sys/mman.h>

#include <fstream>
#include <numeric>

#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

/// Of a node where some of it fails.
class FailingMemory final : public SharedMemory {
 public:
  FailingMemory(bool can_create, bool can_attach)
      : can_create_(can_create), can_attach_(can_attach) {}

  Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    if (!can_create_ && bytes > 4096) return fail(Code::no_space, "no shared memory is left");
    return memory_->create(bytes);
  }
  Result<std::unique_ptr<Segment>> attach(const std::string& name, std::uint64_t bytes) override {
    if (!can_attach_) return fail(Code::io, "cannot map {}", name);
    return memory_->attach(name, bytes);
  }

 private:
  const bool can_create_;
  const bool can_attach_;
  const std::unique_ptr<SharedMemory> memory_ = make_shared_memory();
};

class SeriesDataTest : public testing::TestWithParam<Mode> {
 protected:
  std::string directory() const { return folder_ / "series"; }
  static Shape shape_of(int ranks) {
    Shape shape;
    shape.ranks = ranks;
    shape.options.mode = GetParam();
    shape.options.group_size = ranks;
    shape.ranks_per_node = ranks;
    return shape;
  }

  TemporaryFolder folder_{fast_folder()};
  std::unique_ptr<Files> files_ = make_posix_files();
};

/// In the modes in which ranks hand their data to a writer.
class SeriesMemoryTest : public SeriesDataTest {};

TEST_P(SeriesMemoryTest, RanksThatCannotMapTheBufferSendMessages) {
  const auto memory_of_rank = [](int rank) -> std::shared_ptr<SharedMemory> {
    if (rank == 1) return nullptr;
    return std::make_shared<FailingMemory>(true, rank != 2);
  };
  const Shape shape = shape_of(5);
  Team(5).run([&](Communicator& comm) {
    Services services = services_of(*files_);
    services.memory = memory_of_rank(comm.rank());
    std::atomic<int> warnings = 0;
    services.log = Log([&](Severity, const std::string&) { ++warnings; });
    const auto series =
        Series::open(comm, services, placement_of(shape), directory(), shape.options);
    ASSERT_TRUE(series);
    Program program(**series, comm.rank(), comm.size());
    for (const std::uint64_t step : {1U, 2U}) {
      program.compute(step);
      ASSERT_TRUE((*series)->begin(comm, step));
      program.forget();
    }
    EXPECT_TRUE((*series)->close(comm));
    EXPECT_EQ(warnings > 0, comm.rank() == 2);
  });
  expect_restored(*files_, directory(), shape_of(3), 2);
}

TEST_P(SeriesMemoryTest, WithoutSharedMemoryAllRanksSendMessages) {
  const Shape shape = shape_of(4);
  Team(4).run([&](Communicator& comm) {
    Services services = services_of(*files_);
    services.memory = std::make_shared<FailingMemory>(false, true);
    const auto series =
        Series::open(comm, services, placement_of(shape), directory(), shape.options);
    ASSERT_TRUE(series);
    Program program(**series, comm.rank(), comm.size());
    program.compute(1);
    ASSERT_TRUE((*series)->begin(comm, 1));
    program.forget();
    EXPECT_TRUE((*series)->close(comm));
  });
  expect_restored(*files_, directory(), shape_of(4), 1);
}

/// How often this process has mapped shared memory.
int shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:cairn-rbio") != std::string::npos) ++count;
  return count;
}

TEST_P(SeriesMemoryTest, AClosedSeriesKeepsNoSharedMemory) {
  Team(3).run([&](Communicator& comm) {
    auto series = open_series(comm, *files_, directory(), shape_of(3));
    Program program(*series, comm.rank(), comm.size());
    ASSERT_TRUE(series->begin(comm, 1));
    EXPECT_GT(shared_mappings(), 0);
    EXPECT_TRUE(series->close(comm));
    series.reset();
    comm.barrier();
    EXPECT_EQ(shared_mappings(), 0);
  });
}

TEST(SharedMemory, IsAttachedOnlyAsItWasOffered) {
  const auto memory = make_shared_memory();
  const auto made = memory->create(8192);
  ASSERT_TRUE(made) << made.error().text;
  const auto attached = memory->attach((*made)->name(), 8192);
  ASSERT_TRUE(attached) << attached.error().text;
  (*made)->bytes()[5000] = std::byte{42};
  EXPECT_EQ((*attached)->bytes()[5000], std::byte{42});
  EXPECT_FALSE(memory->attach((*made)->name(), 4096)) << "another size";
  EXPECT_FALSE(memory->attach((*made)->name() + "1", 8192)) << "another inode";
  EXPECT_FALSE(memory->attach("no name", 8192));
}

TEST_P(SeriesDataTest, EveryTypeComesBackOnAnotherNumberOfRanks) {
  constexpr std::uint32_t types = 12;
  // Field i has 7 + i elements, of which rank r has those with e % 3 == r, so to say.
  const auto counts = [](std::uint32_t i, int rank, int ranks) {
    const std::uint64_t all = 7 + i, n = static_cast<std::uint64_t>(ranks);
    return all / n + (static_cast<std::uint64_t>(rank) < all % n ? 1 : 0);
  };
  const auto run = [&](int ranks, bool is_writing) {
    Team(ranks).run([&](Communicator& comm) {
      const auto series = open_series(comm, *files_, directory(), shape_of(ranks));
      std::vector<Blob> data(types);
      std::vector<Blob> expected(types);
      for (std::uint32_t i = 0; i < types; ++i) {
        const FieldShape field{fmt::format("field {}", i), *element_type(i + 1), i % 3 + 1};
        std::uint64_t before = 0;
        for (int r = 0; r < comm.rank(); ++r) before += counts(i, r, ranks);
        const std::uint64_t count = counts(i, comm.rank(), ranks);
        for (std::uint64_t b = 0; b < count * field.element_bytes(); ++b)
          expected[i].push_back(value_at(9, i, before * field.element_bytes() + b));
        data[i] = is_writing ? expected[i] : Blob(expected[i].size());
        ASSERT_TRUE(series->add_field(field, data[i].data(), count));
      }
      if (is_writing)
        ASSERT_TRUE(series->begin(comm, 9));
      else
        ASSERT_TRUE(series->restore(comm, 9));
      EXPECT_TRUE(series->close(comm));
      EXPECT_EQ(data, expected);
    });
  };
  run(3, true);
  for (const int ranks : {1, 2, 3, 5}) run(ranks, false);
}

TEST_P(SeriesDataTest, AStepMayBeEmptyOnAllRanks) {
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape_of(4));
    ASSERT_TRUE(series->add_field({"nothing", ElementType::int32, 2}, nullptr, 0));
    ASSERT_TRUE(series->begin(comm, 1));
    ASSERT_TRUE(series->begin(comm, 2));
    EXPECT_EQ(series->restore(comm, std::nullopt).value(), 2U);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_P(SeriesDataTest, CountsMayGrowAndShrinkFromStepToStep) {
  Shape shape = shape_of(3);
  shape.options.memory_bytes = 5000 * 8 * 3 * 2;
  Team(3).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    std::vector<std::uint64_t> data(5000);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint64, 1}, nullptr, 0));
    const auto* bytes = reinterpret_cast<std::byte*>(data.data());
    std::uint64_t step = 0;
    for (const std::uint64_t count : {10, 700, 0, 701, 5000, 4000, 3, 5000}) {
      const std::uint64_t mine = comm.rank() == 1 ? count / 2 : count;
      std::iota(data.begin(), data.end(), ++step * 1000 + static_cast<std::uint64_t>(comm.rank()));
      ASSERT_TRUE(series->set_field(0, const_cast<std::byte*>(bytes), mine));
      const auto begun = series->begin(comm, step);
      ASSERT_TRUE(begun) << begun.error().text;
      std::fill(data.begin(), data.end(), 0);
      ASSERT_TRUE(series->restore(comm, step));
      for (std::uint64_t i = 0; i < mine; ++i)
        ASSERT_EQ(data[i], step * 1000 + static_cast<std::uint64_t>(comm.rank()) + i);
    }
    EXPECT_LE(series->statistics().peak_buffer_bytes, shape.options.memory_bytes);
    EXPECT_TRUE(series->close(comm));
  });
}

/// In the file the third field follows the second one; in the buffer there is a gap between them.
TEST_P(SeriesDataTest, AFieldThatEndsWithItsPageIsNotTheBeginningOfTheNext) {
  const auto bytes = std::to_array<std::uint64_t>({100, 2 * part_alignment, least_placed_bytes});
  Team(1).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape_of(1));
    std::vector<Blob> data;
    for (std::size_t field = 0; field < bytes.size(); ++field) {
      data.emplace_back(bytes[field], static_cast<std::byte>(field + 1));
      ASSERT_TRUE(series->add_field({fmt::format("f{}", field), ElementType::uint8, 1},
                                    data.back().data(), data.back().size()));
    }
    const auto expected = data;
    ASSERT_TRUE(series->begin(comm, 1));
    for (Blob& one : data) std::fill(one.begin(), one.end(), std::byte{});
    ASSERT_TRUE(series->restore(comm, 1));
    EXPECT_TRUE(data == expected);
    EXPECT_TRUE(series->close(comm));
  });
}

TEST_P(SeriesDataTest, InModeSplitTheWritersHaveNoData) {
  Shape shape = shape_of(4);
  shape.options.mode = Mode::split;
  shape.options.group_size = 2;
  Team(4).run([&](Communicator& comm) {
    const auto series = open_series(comm, *files_, directory(), shape);
    std::uint32_t value = 7 + static_cast<std::uint32_t>(comm.rank());
    auto* data = reinterpret_cast<std::byte*>(&value);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint32, 1}, data, 1));
    EXPECT_EQ(series->begin(comm, 1).error().code, Code::bad_argument);
    const bool is_writer = comm.rank() % 2 == 0;
    ASSERT_TRUE(series->set_field(0, data, is_writer ? 0 : 1));
    ASSERT_TRUE(series->begin(comm, 1));
    value = 0;
    ASSERT_TRUE(series->restore(comm, 1));
    EXPECT_EQ(value, is_writer ? 0U : 7 + static_cast<std::uint32_t>(comm.rank()));
    EXPECT_TRUE(series->close(comm));
  });
}

/// Bytes of rank `rank` where writers have none.
std::uint64_t bytes_without_writers(const Shape& shape, int rank) {
  const auto roles = assign_roles(placement_of(shape).node_of_rank, shape.options.group_size,
                                  shape.options.files, rank);
  return roles->is_writer ? 0 : 3000 + 177 * static_cast<std::uint64_t>(rank);
}

void write_without_writers(Files& files, const std::string& directory, const Shape& shape) {
  Team(shape.ranks).run([&](Communicator& comm) {
    const auto series = open_series(comm, files, directory, shape);
    std::uint64_t first = 0;
    for (int rank = 0; rank < comm.rank(); ++rank) first += bytes_without_writers(shape, rank);
    Blob data(bytes_without_writers(shape, comm.rank()));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value_at(1, 0, first + i);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint8, 1}, data.data(), data.size()));
    ASSERT_TRUE(series->begin(comm, 1));
    std::fill(data.begin(), data.end(), std::byte{});
    EXPECT_TRUE(series->close(comm));
  });
}

void expect_restored_evenly(Files& files, const std::string& directory, int ranks,
                            std::uint64_t total) {
  Shape shape;
  shape.ranks = ranks;
  Team(ranks).run([&](Communicator& comm) {
    const auto series = open_series(comm, files, directory, shape);
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const std::uint64_t first = total * rank / static_cast<std::uint64_t>(ranks);
    Blob data(total * (rank + 1) / static_cast<std::uint64_t>(ranks) - first);
    ASSERT_TRUE(series->add_field({"x", ElementType::uint8, 1}, data.data(), data.size()));
    ASSERT_TRUE(series->restore(comm, 1));
    Blob expected(data.size());
    for (std::size_t i = 0; i < data.size(); ++i) expected[i] = value_at(1, 0, first + i);
    EXPECT_TRUE(data == expected);
  });
}

TEST(SeriesSplitTest, EachLayoutGivesTheBytesOfModeSyncAndAnyNumberOfRanksRestores) {
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  for (const int ranks : {1, 2, 3, 8, 16})
    for (const int group_size : {0, 2, 3, 64})
      for (const int parts : {0, 1}) {
        const std::string name = fmt::format("{} {} {}", ranks, group_size, parts);
        SCOPED_TRACE(name);
        Shape shape;
        shape.ranks = ranks;
        shape.options.group_size = group_size;
        shape.options.files = parts;
        std::uint64_t total = 0;
        for (int rank = 0; rank < ranks; ++rank) total += bytes_without_writers(shape, rank);
        std::vector<Blob> written;
        for (const Mode mode : {Mode::split, Mode::sync}) {
          shape.options.mode = mode;
          const std::string directory = folder / name + name_of_mode({mode, 0});
          write_without_writers(*files, directory, shape);
          const std::vector<std::string> names = files->list(directory + "/step.1").value();
          for (const std::string& part : names)
            written.push_back(read_file(*files, directory + "/step.1/" + part, 1 << 30).value());
          expect_restored_evenly(*files, directory, 1 + ranks % 4, total);
        }
        const auto half = written.begin() + static_cast<std::ptrdiff_t>(written.size() / 2);
        EXPECT_TRUE(std::equal(written.begin(), half, half, written.end()));
      }
}

/// Zeros that take no memory until they are written to.
class Zeros {
 public:
  explicit Zeros(std::uint64_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Zeros() { ::munmap(start_, bytes_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(start_); }

 private:
  const std::uint64_t bytes_;
  void* const start_;
};

/// Whether ranks share memory. In one mode: it takes some seconds.
class SeriesLargeDataTest : public testing::TestWithParam<bool> {};

TEST_P(SeriesLargeDataTest, ARankMayHaveMoreThanTwoGibibytes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "what the sanitizer notes of each byte does not fit into memory";
#endif
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  constexpr std::uint64_t count = (std::uint64_t{1} << 28) + 5;  // of 8 bytes
  if (files->space(folder.path())->free_bytes < 16 * count)
    GTEST_SKIP() << "too little space in " << folder.path();
  constexpr int holder = 1;
  Shape shape;
  shape.ranks = 2;
  const auto marks = std::to_array<std::uint64_t>({0, 8, 0x7FFFFFF8, 0x80000000, 8 * count - 1});
  Team(2).run([&](Communicator& comm) {
    Services services = services_of(*files);
    if (!GetParam()) services.memory = nullptr;
    const auto series =
        Series::open(comm, services, placement_of(shape), folder / "series", shape.options);
    ASSERT_TRUE(series);
    const std::uint64_t mine = comm.rank() == holder ? count : 0;
    const Zeros zeros(8 * count);
    ASSERT_TRUE((*series)->add_field({"x", ElementType::float64, 1}, zeros.data(), mine));
    for (const std::uint64_t mark : marks) zeros.data()[mark] = std::byte{0x5A};
    const auto begun = (*series)->begin(comm, 1);
    ASSERT_TRUE(begun) << begun.error().text;
    const Status closed = (*series)->close(comm);
    ASSERT_TRUE(closed) << closed.error().text;
  });
  const std::string path = folder / "series/step.1/part.0.rbio";
  const auto file = files->open(path).value();
  const auto index = decode_index(read_index_bytes(*file, path).value(), path);
  ASSERT_TRUE(index) << index.error().text;
  const Piece& piece = index->entries[static_cast<std::size_t>(holder)].pieces[0];
  EXPECT_EQ(piece.bytes, 8 * count);
  for (const std::uint64_t mark : marks) {
    std::byte found{};
    ASSERT_TRUE(read_piece(*file, path, piece, mark, {&found, 1}));
    EXPECT_EQ(found, std::byte{0x5A});
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, SeriesLargeDataTest, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Shared" : "Messages"; });
INSTANTIATE_TEST_SUITE_P(Modes, SeriesMemoryTest, testing::Values(Mode::threaded, Mode::sync),
                         name_of_mode);
INSTANTIATE_TEST_SUITE_P(Modes, SeriesDataTest, testing::ValuesIn(tested_modes), name_of_mode);

}  // namespace
}  // namespace cairn::rbio
