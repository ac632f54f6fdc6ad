// Runs of random programs: steps of any size, limits, slow and failing file systems, and deaths.
// CAIRN_RBIO_SEEDS sets how many are run, and CAIRN_RBIO_SEED runs a single one.

#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <random>

#include "files/hooked_files.hpp"
#include "rbio/held_messages.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x =
      a * 0x9E3779B97F4A7C15U ^ (b + 1) * 0xBF58476D1CE4E5B9U ^ (c + 7) * 0x94D049BB133111EBU;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9U;
  return x ^ (x >> 32);
}

/// What follows from a seed.
struct Plan {
  explicit Plan(std::uint64_t number) : seed(number), random(number) {
    shape.ranks = pick(1, 6);
    const int nodes = pick(1, shape.ranks);
    for (int rank = 0; rank < shape.ranks; ++rank)
      placement.node_of_rank.push_back(static_cast<std::uint64_t>(pick(1, nodes)));
    constexpr std::array modes = {Mode::threaded, Mode::threaded, Mode::split, Mode::sync,
                                  Mode::collective};
    shape.options.mode = modes.at(static_cast<std::size_t>(pick(0, 4)));
    shape.options.group_size = pick(0, 3);
    shape.options.files = pick(0, 1);
    shape.options.keep = static_cast<std::size_t>(pick(0, 2));
    shape.options.pace = pick(0, 2) == 0 ? 0.5 : 0;
    largest_count = static_cast<std::uint64_t>(pick(1, 4) == 1 ? 200000 : 3000);
    // Of 8 fields of a rank at most, so that at least one step always fits.
    if (pick(0, 1) == 0)
      shape.options.memory_bytes =
          largest_count * 8 * 3 * 6 * static_cast<std::uint64_t>(pick(1, 3));
    steps = static_cast<std::uint64_t>(pick(1, 8));
    slow_one_in = pick(0, 1) == 0 ? 0 : pick(1, 20);
    fail_one_in = pick(0, 2) == 0 ? pick(20, 200) : 0;
    dies_at = pick(0, 1) == 0 ? static_cast<std::uint64_t>(pick(30, 400)) : UINT64_MAX;
    has_shared_memory = pick(0, 3) != 0;
    looks_until_sent = pick(0, 2) * pick(0, 10);
  }
  bool has_data(int rank) const {
    const auto roles =
        assign_roles(placement.node_of_rank, shape.options.group_size, shape.options.files, rank);
    return shape.options.mode != Mode::split || !roles->is_writer;
  }
  int pick(int from, int to) { return std::uniform_int_distribution(from, to)(random); }

  std::uint64_t seed;
  std::mt19937_64 random;
  Shape shape;
  Placement placement;
  std::uint64_t largest_count = 0, steps = 0, dies_at = 0;
  int slow_one_in = 0, fail_one_in = 0;
  bool has_shared_memory = true;
  int looks_until_sent = 0;  ///< so slow is the network
};

constexpr std::size_t fields = 3;

/// Elements of 8 bytes; the value follows from step, field and global element.
class RandomProgram {
 public:
  RandomProgram(Series& series, const Plan& plan) : series_(series), plan_(plan), data_(fields) {
    for (std::size_t field = 0; field < fields; ++field)
      EXPECT_TRUE(
          series_.add_field({fmt::format("f{}", field), ElementType::uint64, 1}, nullptr, 0));
  }

  void compute(std::uint64_t step, int rank) {
    for (std::size_t field = 0; field < fields; ++field) {
      std::uint64_t first = 0;
      for (int r = 0; r < rank; ++r) first += count_of_rank(step, field, r);
      fill(step, field, first, count_of_rank(step, field, rank));
    }
  }
  void forget() {
    for (auto& one : data_) std::fill(one.begin(), one.end(), ~std::uint64_t{0});
  }
  /// Restores on any number of ranks; false if a value is wrong.
  bool restores(Communicator& comm, std::uint64_t step) {
    const auto index = series_.index_of(comm, step);
    if (!index) return false;
    for (std::size_t field = 0; field < fields; ++field) {
      std::uint64_t total = 0;
      for (const std::uint64_t count : index->counts(*index->find(fmt::format("f{}", field))))
        total += count;
      const auto rank = static_cast<std::uint64_t>(comm.rank());
      const auto ranks = static_cast<std::uint64_t>(comm.size());
      const std::uint64_t first = total * rank / ranks;
      fill(step, field, first, total * (rank + 1) / ranks - first);
    }
    const auto expected = data_;
    forget();
    return series_.restore(comm, step) && data_ == expected;
  }

 private:
  std::uint64_t count_of_rank(std::uint64_t step, std::size_t field, int rank) const {
    const std::uint64_t x = mixed(plan_.seed, step * 8 + field, static_cast<std::uint64_t>(rank));
    return x % 5 == 0 || !plan_.has_data(rank) ? 0 : x % plan_.largest_count;
  }
  void fill(std::uint64_t step, std::size_t field, std::uint64_t first, std::uint64_t count) {
    data_[field].resize(count);
    for (std::uint64_t i = 0; i < count; ++i) data_[field][i] = mixed(step, field, first + i);
    EXPECT_TRUE(series_.set_field(field, reinterpret_cast<std::byte*>(data_[field].data()), count));
  }

  Series& series_;
  const Plan& plan_;
  std::vector<std::vector<std::uint64_t>> data_;
};

/// In memory that the parent process shares: what the program knew before it died.
struct Known {
  std::atomic<std::uint64_t> newest = 0;  ///< step that wait() has returned
  std::atomic<std::uint64_t> begun = 0;
};

void run(const Plan& plan, Files& files, const std::string& directory, Known& known) {
  Services services = services_of(files);
  if (!plan.has_shared_memory) services.memory = nullptr;
  Team(plan.shape.ranks).run([&](Communicator& team) {
    int looks = 0;
    HeldMessages comm(team, [&] { return looks++ % (plan.looks_until_sent + 1) != 0; });
    auto opened = Series::open(comm, services, plan.placement, directory, plan.shape.options);
    if (!opened) return;
    Series& series = **opened;
    RandomProgram program(series, plan);
    for (std::uint64_t step = 1; step <= plan.steps; ++step) {
      program.compute(step, comm.rank());
      if (comm.rank() == 0) known.begun = step;
      const auto ticket = series.begin(comm, step);
      if (!ticket) continue;
      program.forget();
      for (int look = 0; look < 5 * (comm.rank() % 2); ++look)
        EXPECT_TRUE(series.is_finished(*ticket));
      if (mixed(plan.seed, step, 99) % 3 == 0 && series.wait(comm, *ticket) && comm.rank() == 0)
        known.newest = step;
    }
    const auto limit = plan.shape.options.memory_bytes;
    EXPECT_TRUE(limit == 0 || series.statistics().peak_buffer_bytes <= limit);
    static_cast<void>(series.close(comm));
  });
}

Status disturb(const Plan& plan, const FileOperation& operation,
               const std::atomic<bool>& may_fail) {
  if (operation.index >= plan.dies_at) static_cast<void>(::raise(SIGKILL));
  const std::uint64_t x = mixed(plan.seed, operation.index, 3);
  if (plan.slow_one_in > 0 && x % static_cast<std::uint64_t>(plan.slow_one_in) == 0)
    ::usleep(static_cast<useconds_t>(x % 3000));
  if (may_fail && plan.fail_one_in > 0 && x % static_cast<std::uint64_t>(plan.fail_one_in) == 1)
    return fail(x % 2 == 0 ? Code::io : Code::no_space, "{}: failed", operation.path);
  return {};
}

void run_in_child(const Plan& plan, Files& posix, const std::string& directory, Known& known) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::atomic<bool> may_fail = true;
    const auto files = make_hooked_files(
        posix, [&](const FileOperation& operation) { return disturb(plan, operation, may_fail); });
    run(plan, *files, directory, known);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
}

/// The newest step is whole, and not older than the newest that wait() has returned.
void check(const Plan& plan, Files& files, const std::string& directory, const Known& known) {
  const int ranks = 1 + static_cast<int>(plan.seed % 4);
  Team(ranks).run([&](Communicator& comm) {
    Shape shape;
    shape.ranks = ranks;
    const auto series = open_series(comm, files, directory, shape);
    RandomProgram program(*series, plan);
    const auto steps = series->steps(comm).value();
    const std::uint64_t newest = steps.empty() ? 0 : steps.back();
    EXPECT_GE(newest, known.newest);
    EXPECT_LE(newest, known.begun);
    for (const std::uint64_t step : steps) EXPECT_TRUE(program.restores(comm, step)) << step;
    EXPECT_TRUE(series->close(comm));
  });
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = ::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(SeriesRandom, StepsThatWaitReturnedArePublishedAndAllAreWhole) {
  const auto posix = make_posix_files();
  void* shared =
      ::mmap(nullptr, sizeof(Known), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const std::uint64_t only = number_from("CAIRN_RBIO_SEED", 0);
  const std::uint64_t last = only > 0 ? only : number_from("CAIRN_RBIO_SEEDS", 60);
  std::uint64_t waited_for = 0;
  for (std::uint64_t seed = only > 0 ? only : 1; seed <= last && !testing::Test::HasFailure();
       ++seed) {
    SCOPED_TRACE(fmt::format("CAIRN_RBIO_SEED={}", seed));
    const TemporaryFolder folder(fast_folder());
    auto* known = new (shared) Known();
    const Plan plan(seed);
    run_in_child(plan, *posix, folder / "series", *known);
    if (known->begun > 0) check(plan, *posix, folder / "series", *known);
    if (known->newest > 0) ++waited_for;
  }
  if (only == 0) {
    EXPECT_GT(waited_for, last / 4);
  }
  ::munmap(shared, sizeof(Known));
}

}  // namespace
}  // namespace cairn::rbio
