// What cairn rebuild takes of threads and of main memory does not grow with the job. Not under
// sanitizers, which have an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/heap_meter.hpp"
#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "prefix/keeper.hpp"
#include "recovery/rebuild_sets.hpp"
#include "redundancy/protect.hpp"
#include "redundancy/replicas.hpp"
#include "redundancy/set_on_disk.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"

namespace cairn {
namespace {

constexpr int members = 4;
constexpr int lost_node = 2;
constexpr std::size_t bytes_of_rank = 32 << 10;
constexpr std::uint32_t small_block_bytes = 64;  // so that records are large beside all else

/// A dataset on four nodes, of which each set has one rank on each.
class DeadJob {
 public:
  explicit DeadJob(int ranks) : folder_("/dev/shm"), ranks_(ranks) {
    info_.uuid = {1'700'000'000'000'000, 7};
    info_.number = 1;
    info_.ranks = static_cast<std::uint32_t>(ranks);
    for (int first = 0; first < ranks; first += members) write_set(first);
    std::filesystem::remove_all(node(lost_node));
    std::filesystem::create_directory(spare());
  }

  std::vector<std::string> caches() const { return {node(0), node(1), node(3)}; }
  std::string spare() const { return folder_ / "rebuilt"; }
  int sets() const { return ranks_ / members; }

  void expect_rebuilt(const Rebuild& rebuilt) const {
    ASSERT_EQ(rebuilt.outcome, Rebuild::Outcome::whole) << rebuilt.reason;
    ASSERT_EQ(rebuilt.folders.size(), static_cast<std::size_t>(ranks_));
    EXPECT_EQ(rebuilt.account.rebuilt_ranks, sets());
    for (int rank = lost_node; rank < ranks_; rank += members)
      ASSERT_TRUE(read(rebuilt.folders[static_cast<std::size_t>(rank)].file(name_of(rank))) ==
                  content_of(rank, 0, bytes_of_rank))
          << rank;
  }

 private:
  static std::string name_of(int rank) { return fmt::format("state.{}", rank); }
  std::string node(int number) const { return folder_ / fmt::format("n{}", number); }

  RankFolder folder_of_rank(int rank) const {
    return {
        fmt::format("{}/dataset.1.{}/rank.{}", node(rank % members), text_of(info_.uuid), rank)};
  }

  void write_set(int first) {
    Team(members).run([&](Communicator& set) {
      const auto files = make_posix_files();
      const int rank = first + set.rank();
      const RankFolder folder = folder_of_rank(rank);
      write(folder.file(name_of(rank)), content_of(rank, 0, bytes_of_rank));
      RankRecord record;
      record.dataset = info_;
      record.rank = rank;
      record.files.emplace_back().name = name_of(rank);
      record.files.back().size = bytes_of_rank;
      record.encoding.scheme = Scheme::xor_;
      record.encoding.failures = 1;
      record.encoding.block_bytes = small_block_bytes;
      for (int member = 0; member < members; ++member) {
        record.encoding.members.push_back(first + member);
        record.encoding.member_nodes.push_back(fmt::format("n{}", member));
      }
      ASSERT_TRUE(protect(set, *files, folder, record, encode_bytes));
      const Blob sealed = encode(record);
      const Blob content = join_records(sealed, exchange_records(set, record.encoding, sealed));
      std::ofstream(folder.record(), std::ios::binary)
          .write(reinterpret_cast<const char*>(content.data()),
                 static_cast<std::streamsize>(content.size()));
    });
  }

  TemporaryFolder folder_;
  const int ranks_;
  DatasetInfo info_;
};

int threads_alive() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<int>(std::distance(begin(threads), end(threads)));
}

struct Taken {
  std::int64_t bytes = 0;    ///< at once
  std::int64_t records = 0;  ///< bytes of all of them, if they were read at once
  int threads = 0;           ///< beside that of the caller
};

Taken rebuild(int ranks, const SetTeams& teams) {
  const DeadJob job(ranks);
  const auto posix = make_posix_files();
  std::atomic<int> most = 0;
  const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) {
    if (operation.name != "create") return Status{};
    const int now = threads_alive();
    for (int before = most; now > before && !most.compare_exchange_weak(before, now);) continue;
    return Status{};
  });
  Taken taken;
  heap::begin_peak();
  (void)find_remains(*posix, job.caches(), RecordDetail::all);
  taken.records = heap::peak_since_begin();
  const int before = threads_alive();
  heap::begin_peak();
  const auto found = find_remains(*files, job.caches());
  const Rebuild rebuilt =
      rebuild_remains(*files, found->at(0), job.spare(), Settings{}, Log(), teams);
  taken.bytes = heap::peak_since_begin();
  taken.threads = most - before;
  job.expect_rebuilt(rebuilt);
  return taken;
}

TEST(RebuildBounds, ThreadsAndMemoryAreThoseOfAFewSetsHoweverManyRanksThereAre) {
  constexpr int few = 8;
  constexpr int many = 512;
  SetTeams teams;
  teams.sets = 2;
  const Taken of_few = rebuild(few, teams);
  const Taken of_many = rebuild(many, teams);
  constexpr int workers = 2;
  EXPECT_GT(of_many.threads, members + workers - 1) << "several sets at once";
  for (const Taken& taken : {of_few, of_many}) EXPECT_LE(taken.threads, 2 * members + workers - 1);
  const std::int64_t growth = of_many.bytes - of_few.bytes;
  RecordProperty("bytes_for_each_rank", static_cast<int>(growth / (many - few)));
  constexpr int most_of_rank = 3456;
  EXPECT_LE(growth, (many - few) * most_of_rank) << "names of folders, and who is in which set";
  EXPECT_GE(of_many.records, 3 * (many - few) * most_of_rank) << "the records would be more";
}

std::int64_t bytes_of_scavenge(int ranks) {
  const DeadJob job(ranks);
  const auto files = make_posix_files();
  const auto clock = make_system_clock();
  const auto background = make_foreground();
  std::vector<std::string> unreadable;
  heap::begin_peak();
  const auto holdings = find_holdings(*files, job.caches(), {job.spare()}, unreadable, Log());
  const auto saved = scavenge(*files, *clock, {job.spare()}, "n0", *holdings,
                              {{*background, 1, 4096}, 0, 0}, nullptr, Log());
  const std::int64_t taken = heap::peak_since_begin();
  EXPECT_TRUE(saved);
  EXPECT_EQ(saved->files, static_cast<std::uint64_t>(ranks / members * (members - 1)));
  return taken;
}

TEST(RebuildBounds, AScavengeHoldsOneRecordAtATime) {
  constexpr int few = 8;
  constexpr int many = 512;
  const std::int64_t growth = bytes_of_scavenge(many) - bytes_of_scavenge(few);
  EXPECT_LE(growth, (many - few) * 2048) << "as a rebuild, of which the records would be more";
}

/// All that a rebuild takes beyond making the dataset whole.
std::int64_t bytes_of_publishing(int ranks) {
  const DeadJob job(ranks);
  const auto files = make_posix_files();
  const auto clock = make_system_clock();
  const auto background = make_foreground();
  const PrefixFolder folder{job.spare()};
  for (const std::string& cache : job.caches()) {
    std::vector<std::string> unreadable;
    const auto holdings = find_holdings(*files, {cache}, folder, unreadable, Log());
    EXPECT_TRUE(scavenge(*files, *clock, folder, name_of_path(cache), *holdings,
                         {{*background, 1, 4096}, 0, 0}, nullptr, Log()));
  }
  auto salvage = make_whole(*files, *clock, folder, {[](const Remains&) { return true; }}, Log());
  OwnerRecord me;
  me.job_id = "job";
  auto keeper = Keeper::take_over(*files, *clock, folder, me);
  heap::begin_peak();
  Team(1).run([&](Communicator& comm) {
    publish(comm,
            {*files,
             *clock,
             folder,
             keeper->epoch_folder().epoch(),
             1,
             true,
             {},
             {*background, 1},
             &*keeper},
            *salvage, "job", Log());
  });
  const std::int64_t taken = heap::peak_since_begin();
  EXPECT_EQ(salvage->datasets.at(0).outcome, SalvagedDataset::Outcome::published)
      << salvage->datasets.at(0).reason;
  EXPECT_TRUE(keeper->resign());
  return taken;
}

TEST(RebuildBounds, PublishingHoldsTheRecordsOfOneManifestAtATime) {
  constexpr int few = 128;  // more than one holds
  constexpr int many = 512;
  const std::int64_t growth = bytes_of_publishing(many) - bytes_of_publishing(few);
  RecordProperty("bytes_for_each_rank", static_cast<int>(growth / (many - few)));
  EXPECT_LE(growth, (many - few) * 2048) << "names of files; the records would be more";
}

TEST(RebuildBounds, SetsThatAreWorkedAtTogetherHaveNoMoreMembersThanThreadsAreAllowed) {
  SetTeams teams;
  teams.sets = 8;
  teams.threads = 2 * members - 1;
  EXPECT_LE(rebuild(64, teams).threads, members);
}

}  // namespace
}  // namespace cairn

#endif
