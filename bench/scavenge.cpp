// Scavenging a node against cp and fsync of the same files; a rebuild against cat of what it reads.
//
//   scavenge MIB_PER_RANK ROUNDS THREADS [FOLDER]
//
// Four nodes of one rank, XOR over all, caches in /dev/shm. In each round, who comes first
// changing: n1's cache is copied to FOLDER (or $TMPDIR, or /tmp: a disk) by cp -r and synced file
// by file, or is scavenged; then the others are scavenged but for n3, which is lost, and what was
// saved is read by cat, and rebuilt and published; neither finds it in the kernel's cache. Then the
// same once more, where both find it there.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "measure.hpp"
#include "prefix/keeper.hpp"
#include "recovery/commit.hpp"
#include "scavenge/publish.hpp"
#include "scavenge/scavenge.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int ranks = 4;

struct Options {
  std::uint64_t bytes = 0;  ///< of a rank
  int rounds = 0;
  int threads = 0;
};

class Bench {
 public:
  Bench(const Options& options, const std::string& disk)
      : options_(options), disk_(disk), memory_("/dev/shm") {}

  /// One checkpoint, whose job has died.
  void write_caches() {
    const std::uint64_t now_us = static_cast<std::uint64_t>(clock_->now_us());
    Team(ranks).run([&](Communicator& comm) {
      const int me = comm.rank();
      fs::create_directories(cache(me));
      Store store = check(Store::at(*files_, cache(me)));
      RankRecord record;
      record.dataset = {{1, 1}, 1, 1, 1, ranks, "ckpt.1"};
      record.rank = me;
      record.encoding.generation = now_us;
      record.encoding.scheme = Scheme::xor_;
      record.encoding.failures = 1;
      record.encoding.members = {0, 1, 2, 3};
      record.encoding.member_nodes = {"n0", "n1", "n2", "n3"};
      check(store.make_rank_folder(record.dataset, me));
      const RankFolder folder = store.rank_folder(record.dataset, me);
      const std::string name = fmt::format("state.{}", me);
      const auto file = check(files_->create(folder.file(name), 0600));
      Blob piece(1 << 20);
      for (std::uint64_t at = 0; at < options_.bytes; at += piece.size()) {
        for (std::size_t i = 0; i < piece.size(); ++i)
          piece[i] = static_cast<std::byte>(i * 31 + at + static_cast<std::uint64_t>(me));
        check(file->write_at(at, piece));
      }
      const FileInfo info = check(files_->info(folder.file(name)));
      record.files = {{name, info.size, 0640, info.owner, info.group, info.times}};
      check(protect_and_commit(comm, *files_, store, folder, record, Settings{}, nullptr));
    });
  }

  void run() {
    for (int round = -1; round < options_.rounds; ++round) {
      counts_ = round >= 0;
      fs::remove_all(folder().root());
      fs::remove_all(disk_.path() + "/copy");
      ::sync();
      for (int turn = 0; turn < 2; ++turn)
        (turn + round) % 2 == 0 ? time("cp, sync", [&] { copy_node(); })
                                : time("scavenge", [&] { scavenge_node(1); });
      report("scavenge", "cp, sync");
      for (const int node : {0, 2}) scavenge_node(node);
      forget_files();
      time("cat", [&] { read_saved(); });
      forget_files();
      time("rebuild", [&] { rebuild(); });
      report("rebuild", "cat");
      fs::remove_all(folder().root());
      for (const int node : {0, 1, 2}) scavenge_node(node);
      read_saved();
      time("cat, warm", [&] { read_saved(); });
      time("rebuild, warm", [&] { rebuild(); });
      report("rebuild, warm", "cat, warm");
    }
    for (const auto& [what, series] : series_)
      fmt::print("  {:<13} {:8.1f} ms [{:.1f} to {:.1f}]   {:5.2f} x floor [{:.2f} to {:.2f}]\n",
                 what, 1e3 * quantile(series.seconds, 0.5), 1e3 * quantile(series.seconds, 0.1),
                 1e3 * quantile(series.seconds, 0.9), quantile(series.ratios, 0.5),
                 quantile(series.ratios, 0.1), quantile(series.ratios, 0.9));
  }

 private:
  struct Series {
    std::vector<double> seconds;
    std::vector<double> ratios;
  };

  std::string cache(int node) const { return fmt::format("{}/n{}", memory_.path(), node); }
  PrefixFolder folder() const { return {disk_.path()}; }

  void time(const std::string& what, const std::function<void()>& action) {
    const std::int64_t from_us = clock_->steady_us();
    action();
    last_[what] = static_cast<double>(clock_->steady_us() - from_us) * 1e-6;
    if (counts_) series_[what].seconds.push_back(last_[what]);
  }

  void report(const std::string& what, const std::string& floor) {
    if (!counts_) return;
    series_[what].ratios.push_back(last_[what] / last_[floor]);
    series_[floor].ratios.push_back(1);
  }

  /// By the kernel's cache.
  void forget_files() {
    for (const auto& entry : fs::recursive_directory_iterator(disk_.path())) {
      if (!entry.is_regular_file()) continue;
      const int file = ::open(entry.path().c_str(), O_RDONLY);
      check(file >= 0 && ::fdatasync(file) == 0 &&
                ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0,
            "cannot drop a file from the kernel's cache");
      ::close(file);
    }
  }

  void copy_node() {
    const std::string to = disk_.path() + "/copy";
    command({"cp", "-r", cache(1), to});
    for (const auto& entry : fs::recursive_directory_iterator(to)) {
      if (!entry.is_regular_file()) continue;
      const int file = ::open(entry.path().c_str(), O_RDONLY);
      check(file >= 0 && ::fsync(file) == 0, "cannot sync a copy");
      ::close(file);
    }
  }

  void scavenge_node(int node) {
    const auto background = make_background_thread();
    std::vector<std::string> unreadable;
    const auto holdings = check(find_holdings(*files_, {cache(node)}, folder(), unreadable, log_));
    const ScavengeLimits limits{{*background, options_.threads}, 0, 0};
    check(scavenge(*files_, *clock_, folder(), fmt::format("n{}", node), holdings, limits, nullptr,
                   log_));
  }

  /// What a rebuild has to read: what survives.
  void read_saved() {
    std::vector<std::string> words = {"sh", "-c", "cat \"$@\" > /dev/null", "cat"};
    for (const auto& entry : fs::recursive_directory_iterator(folder().saved().scavenged()))
      if (entry.is_regular_file()) words.push_back(entry.path());
    command(words);
  }

  void rebuild() {
    Salvage salvage =
        check(make_whole(*files_, *clock_, folder(), {[](const Remains&) { return true; }}, log_));
    OwnerRecord me;
    me.job_id = "bench";
    Keeper keeper = check(Keeper::take_over(*files_, *clock_, folder(), me));
    const auto background = make_background_thread();
    Team(1).run([&](Communicator& comm) {
      publish(comm,
              {*files_,
               *clock_,
               folder(),
               keeper.epoch_folder().epoch(),
               1,
               true,
               {},
               {*background},
               &keeper},
              salvage, "bench", log_);
    });
    check(keeper.resign());
    check(salvage.datasets.at(0).outcome == SalvagedDataset::Outcome::published,
          salvage.datasets.at(0).reason);
  }

  const Options options_;
  const std::unique_ptr<Files> files_ = make_posix_files();
  const std::unique_ptr<Clock> clock_ = make_system_clock();
  const Log log_{[](Severity, const std::string&) {}};
  TemporaryFolder disk_;
  TemporaryFolder memory_;
  std::map<std::string, double> last_;
  std::map<std::string, Series> series_;
  bool counts_ = false;
};

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using namespace cairn;
  check(argc >= 4, "usage: scavenge MIB_PER_RANK ROUNDS THREADS [FOLDER]");
  const Options options{std::strtoull(argv[1], nullptr, 10) << 20, std::atoi(argv[2]),
                        std::atoi(argv[3])};
  check(options.bytes > 0 && options.rounds > 0 && options.threads > 0,
        "the numbers must be positive");
  const char* place = std::getenv("TMPDIR");
  Bench bench(options, argc > 4 ? argv[4] : place != nullptr ? place : "/tmp");
  fmt::print("{} MiB of each of {} ranks; median [10 % to 90 %] of {} rounds\n",
             options.bytes >> 20, ranks, options.rounds);
  bench.write_caches();
  bench.run();
  return EXIT_SUCCESS;
}
