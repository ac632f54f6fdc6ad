// There is no memory for a step: an error on all ranks, and no rank waits.

#include <sys/resource.h>

#include <fstream>
#include <optional>

#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

constexpr std::uint64_t data_bytes = std::uint64_t{16} << 20;

/// While it lives, the process can map only so many bytes more.
class LittleAddressSpace {
 public:
  explicit LittleAddressSpace(std::uint64_t bytes) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{pages * static_cast<std::uint64_t>(::getpagesize()) + bytes,
                       before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleAddressSpace() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleAddressSpace(const LittleAddressSpace&) = delete;
  LittleAddressSpace& operator=(const LittleAddressSpace&) = delete;

 private:
  rlimit before_{};
};

/// The ranks of a node share memory, send messages, or are each on a node of their own.
enum class Way { shared, messages, apart };

class SeriesWithoutMemoryTest : public testing::TestWithParam<Way> {};

TEST_P(SeriesWithoutMemoryTest, AStepForWhichThereIsNoMemoryIsAnErrorOnAllRanksAndTheNextIsNot) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs address space";
#endif
  const TemporaryFolder folder(fast_folder());
  const auto files = make_posix_files();
  Shape shape;
  shape.ranks = 3;
  shape.ranks_per_node = GetParam() == Way::apart ? 1 : 3;
  shape.options.group_size = 3;
  std::optional<LittleAddressSpace> little;
  Team(shape.ranks).run([&](Communicator& comm) {
    Services services = services_of(*files);
    if (GetParam() != Way::shared) services.memory = nullptr;
    const auto series =
        Series::open(comm, services, placement_of(shape), folder / "series", shape.options);
    ASSERT_TRUE(series);
    Blob data(data_bytes);
    const auto field = (*series)->add_field({"x", ElementType::int8, 1}, data.data(), data_bytes);
    ASSERT_TRUE(field);
    comm.barrier();
    // Enough for the buffer of one rank, and not for that of the writer.
    if (comm.rank() == 0) little.emplace(data_bytes / 2 * 3);
    comm.barrier();
    const auto begun = (*series)->begin(comm, 1);
    comm.barrier();
    if (comm.rank() == 0) little.reset();
    comm.barrier();
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::no_space);
    EXPECT_TRUE(begun.error().text.find("memory") != std::string::npos) << begun.error().text;
    const auto next = (*series)->begin(comm, 2);
    ASSERT_TRUE(next) << next.error().text;
    EXPECT_TRUE((*series)->wait(comm, *next));
    const Status closed = (*series)->close(comm);
    EXPECT_TRUE(closed) << closed.error().text;
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, SeriesWithoutMemoryTest,
                         testing::Values(Way::shared, Way::messages, Way::apart));

}  // namespace
}  // namespace cairn::rbio
