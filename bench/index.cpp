// The commands of `cairn index` in a prefix directory with many datasets, and a few more that were
// scavenged and are not published.
//
//   index CAIRN DATASETS ROUNDS [FOLDER]
//
// CAIRN is the program. The directory is made in FOLDER (or $TMPDIR, or /tmp). Every command is a
// process of its own, with its output thrown away; in each round all are called once.
#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "measure.hpp"
#include "prefix/keeper.hpp"
#include "prefix/manifest.hpp"
#include "recovery/commit.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

DatasetInfo info_of(int dataset) {
  const auto number = static_cast<std::uint64_t>(dataset);
  return {{1000 + dataset, 7}, number, number, 1, 1, fmt::format("ckpt.{}", dataset)};
}

void publish(Files& files, Keeper& keeper, const PrefixFolder& folder, int dataset) {
  DatasetRecord record;
  record.info = info_of(dataset);
  record.job_id = "1234567";
  record.settled = true;
  record.flushed_us = 1;
  RankRecord part;
  part.dataset = record.info;
  part.encoding.members = {0};
  part.encoding.member_nodes = {"node1"};
  part.encoding.member_bytes = {0};
  check(keeper.begin(record.info));
  check(write_manifest(files, folder.pending(keeper.epoch_folder().epoch(), record.info), 0,
                       encode(part)));
  check(keeper.epoch_folder().plan(record));
  check(keeper.publish(record, EpochFolder::Seen::by_us_only));
}

constexpr int scavenged_datasets = 4;
constexpr int scavenged_ranks = 64;
constexpr int ranks_on_node = 4;

/// One that a dead job has left, all of it there.
void scavenge(Files& files, const PrefixFolder& folder, int dataset) {
  Team(scavenged_ranks).run([&](Communicator& comm) {
    const int me = comm.rank();
    RankRecord record;
    record.dataset = info_of(dataset);
    record.dataset.ranks = scavenged_ranks;
    record.rank = me;
    record.encoding.generation = 1;
    record.encoding.scheme = Scheme::xor_;
    record.encoding.failures = 1;
    for (int rank = me % ranks_on_node; rank < scavenged_ranks; rank += ranks_on_node) {
      record.encoding.members.push_back(rank);
      record.encoding.member_nodes.push_back(fmt::format("n{}", rank / ranks_on_node));
    }
    const std::string cache = folder.saved().of_node(fmt::format("n{}", me / ranks_on_node));
    fs::create_directories(cache);
    Store store = check(Store::at(files, cache));
    check(store.make_rank_folder(record.dataset, me));
    const RankFolder part = store.rank_folder(record.dataset, me);
    const std::string name = fmt::format("state.{}", me);
    check(check(files.create(part.file(name), 0600))->write_at(0, Blob(4096)));
    const FileInfo info = check(files.info(part.file(name)));
    record.files = {{name, info.size, 0640, info.owner, info.group, info.times}};
    check(protect_and_commit(comm, files, store, part, record, Settings{}, nullptr));
  });
}

/// Made in memory, where a sync costs nothing.
void make_datasets(int count, const std::string& prefix) {
  const TemporaryFolder memory("/dev/shm");
  const PrefixFolder folder{memory.path()};
  const auto files = make_posix_files();
  const auto clock = make_system_clock();
  auto keeper = check(Keeper::take_over(*files, *clock, folder, {}));
  for (int dataset = 1; dataset <= count; ++dataset) publish(*files, keeper, folder, dataset);
  for (int more = 1; more <= scavenged_datasets; ++more) scavenge(*files, folder, count + more);
  check(keeper.set_current(info_of(count).name));
  check(keeper.save_listing());
  check(keeper.resign());
  fs::copy(memory.path(), prefix, fs::copy_options::recursive);
}

struct Command {
  std::vector<std::string> words;
  bool without_listing = false;
  bool another_each_round = false;  ///< the name of the oldest that is left comes behind the words
  std::vector<double> wall_ms{};
  std::vector<double> cpu_ms{};
};

double cpu_of_children_ms() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

void call(const std::string& cairn, const std::string& prefix, Command& each) {
  if (each.without_listing) fs::remove(PrefixFolder{prefix}.listing());
  std::vector<std::string> words = {cairn, "index"};
  words.insert(words.end(), each.words.begin(), each.words.end());
  if (each.another_each_round)
    words.push_back(info_of(static_cast<int>(each.wall_ms.size()) + 1).name);
  words.insert(words.end(), {"--prefix", prefix});
  const double cpu = cpu_of_children_ms();
  const auto from = std::chrono::steady_clock::now();
  command(words);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - from;
  each.wall_ms.push_back(wall.count());
  each.cpu_ms.push_back(cpu_of_children_ms() - cpu);
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using namespace cairn;
  if (argc < 4) {
    fmt::print(stderr, "usage: index CAIRN DATASETS ROUNDS [FOLDER]\n");
    return EXIT_FAILURE;
  }
  const int datasets = std::atoi(argv[2]);
  const TemporaryFolder base(argc > 4 ? argv[4] : "");
  const std::string prefix = base / "prefix";
  make_datasets(datasets, prefix);
  const std::string some = info_of(datasets / 2 + 1).name;
  std::vector<Command> commands = {{{"list"}},
                                   {{"list", "--json"}},
                                   {{"show", some}},
                                   {{"show", "--files", some}},
                                   {{"current", some}},
                                   {{"quarantine", some}},
                                   {{"quarantine", "--lift", some}},
                                   {{"drop", some}},
                                   {{"list", "--dropped"}},
                                   {{"add", some}},
                                   {{"delete"}, false, true},
                                   {{"list"}, true},
                                   {{"build"}}};
  const int terminal = ::dup(STDOUT_FILENO);
  check(::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO) >= 0, "cannot open /dev/null");
  for (int round = 0; round < std::atoi(argv[3]); ++round)
    for (Command& each : commands) call(argv[1], prefix, each);
  ::dup2(terminal, STDOUT_FILENO);
  fmt::print("{} datasets, {} more of {} ranks scavenged; median [10 % to 90 %] of {} rounds\n",
             datasets, scavenged_datasets, scavenged_ranks, argv[3]);
  for (const Command& each : commands)
    fmt::print("  {:<32} {:6.1f} ms [{:.1f} to {:.1f}]   {:6.1f} ms of processor time\n",
               fmt::format("{}{}", fmt::join(each.words, " "),
                           each.without_listing ? " (no listing)" : ""),
               quantile(each.wall_ms, 0.5), quantile(each.wall_ms, 0.1),
               quantile(each.wall_ms, 0.9), quantile(each.cpu_ms, 0.5));
  return EXIT_SUCCESS;
}
