// A flush and a fetch against cp of the same files, checksums and syncs included.
//
//   flush FILES_PER_RANK KIB_PER_FILE ROUNDS THREADS [FOLDER]
//
// Four ranks, threads of this process, with files in /dev/shm. In each round, one after the other:
// cp of each rank's files to FOLDER (or $TMPDIR, or /tmp: a disk), four at a time, then a sync of
// each copy; a flush there; then cp from there to /dev/shm, and a fetch. Before what is read from
// the disk, its pages are dropped from the kernel's cache, or are all in it: the same for both.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "comm/group.hpp"
#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "measure.hpp"
#include "prefix/fetch.hpp"
#include "prefix/flush.hpp"
#include "redundancy/protect.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int ranks = 4;

struct Options {
  int files = 0;  ///< of a rank
  std::size_t bytes = 0;
  int rounds = 0;
  int threads = 0;
};

void each_file(const std::string& folder, const std::function<void(int)>& action) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY);
    check(file >= 0, "cannot open " + entry.path().string());
    action(file);
    ::close(file);
  }
}

/// All in the kernel's cache, or nothing.
void set_cache(const std::string& folder, bool warm) {
  std::vector<char> buffer(1 << 20);
  each_file(folder, [&](int file) {
    if (warm)
      while (::read(file, buffer.data(), buffer.size()) > 0) continue;
    else
      check(::fdatasync(file) == 0 && ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0,
            "cannot drop a file from the kernel's cache");
  });
}

struct Series {
  std::vector<double> seconds;
  std::vector<double> ratios;  ///< to the cp of the same round
};

class Bench {
 public:
  Bench(const Options& options, const std::string& disk)
      : options_(options), disk_(disk), memory_("/dev/shm") {}

  void run() {
    for (int round = -1; round < options_.rounds; ++round) {
      counts_ = round >= 0;
      // Who comes first changes: the disk has more to do behind the back of the second, and it
      // finds the memory that the first has used.
      for (int turn = 0; turn < 2; ++turn) (turn + round) % 2 == 0 ? copy_out() : flush_out();
      report_ratio("flush", "cp, sync");
      for (const bool warm : {false, true}) {
        const std::string state = warm ? ", warm" : ", cold";
        for (int turn = 0; turn < 2; ++turn)
          (turn + round) % 2 == 0 ? copy_back(warm) : fetch_back(warm);
        report_ratio("fetch" + state, "cp back" + state);
      }
    }
    for (const auto& [what, series] : series_)
      fmt::print("  {:<16} {:8.1f} ms [{:.1f} to {:.1f}]   {:5.2f} x cp [{:.2f} to {:.2f}]\n", what,
                 1e3 * quantile(series.seconds, 0.5), 1e3 * quantile(series.seconds, 0.1),
                 1e3 * quantile(series.seconds, 0.9), quantile(series.ratios, 0.5),
                 quantile(series.ratios, 0.1), quantile(series.ratios, 0.9));
  }

  void write_cache() {
    Team(ranks).run([&](Communicator& comm) {
      RankRecord& record = records_[static_cast<std::size_t>(comm.rank())];
      record.dataset = {{1, 1}, 1, 1, 1, ranks, "ckpt"};
      record.rank = comm.rank();
      record.encoding.members = {comm.rank()};
      record.encoding.member_nodes = {"n"};
      const RankFolder folder = cached(comm.rank());
      fs::create_directories(folder.file("state"));
      Blob content(options_.bytes);
      for (int file = 0; file < options_.files; ++file) {
        for (std::size_t at = 0; at < content.size(); ++at)
          content[at] = static_cast<std::byte>(at * 31 + static_cast<std::size_t>(file));
        // Ranks have folders of their own, that cp -r has one to copy.
        const std::string name = fmt::format("state/rank.{}/{}", comm.rank(), file);
        check(make_folders(*files_, folder_of(folder.file(name)), 0700));
        check(check(files_->create(folder.file(name), 0600))->write_at(0, content));
        const FileInfo info = check(files_->info(folder.file(name)));
        record.files.push_back({name, info.size, 0640, info.owner, info.group, info.times});
      }
      Group alone(comm, {comm.rank()});
      check(protect(alone, *files_, folder, record, 32 << 20));
    });
  }

 private:
  RankFolder cached(int rank) const { return {fmt::format("{}/rank.{}", memory_.path(), rank)}; }
  std::string state(int rank) const {
    return cached(rank).file(fmt::format("state/rank.{}", rank));
  }

  void anew(const std::string& folder) const {
    fs::remove_all(folder);
    fs::create_directories(folder);
    ::sync();
  }

  /// Of what all ranks do at once.
  void time(const std::string& what, const std::function<void(Communicator&)>& action) {
    double seconds = 0;
    Team(ranks).run([&](Communicator& comm) {
      comm.barrier();
      const std::int64_t from_us = clock_->steady_us();
      action(comm);
      comm.barrier();
      if (comm.rank() == 0) seconds = static_cast<double>(clock_->steady_us() - from_us) * 1e-6;
    });
    last_[what] = seconds;
    if (counts_) series_[what].seconds.push_back(seconds);
  }

  void report_ratio(const std::string& what, const std::string& floor) {
    if (!counts_) return;
    series_[what].ratios.push_back(last_[what] / last_[floor]);
    series_[floor].ratios.push_back(1);
  }

  void copy_out() {
    anew(disk_ + "/cp");
    time("cp, sync", [&](Communicator& comm) {
      const std::string to = fmt::format("{}/cp/{}", disk_, comm.rank());
      command({"cp", "-r", state(comm.rank()), to});
      each_file(to, [](int file) { check(::fsync(file) == 0, "cannot sync"); });
    });
  }

  template <class Action>
  void as_job(const std::string& what, Action action) {
    auto keeper = check(Keeper::take_over(*files_, *clock_, {disk_ + "/prefix"}, {}));
    time(what, [&](Communicator& comm) {
      const auto background = make_background_thread();
      const Site site{*files_,
                      *clock_,
                      {disk_ + "/prefix"},
                      keeper.epoch_folder().epoch(),
                      ranks,
                      true,
                      {ranks, 0},
                      {*background, options_.threads},
                      comm.rank() == 0 ? &keeper : nullptr};
      action(comm, site);
    });
  }

  void flush_out() {
    anew(disk_ + "/prefix");
    as_job("flush", [&](Communicator& comm, const Site& site) {
      const RankRecord& record = records_[static_cast<std::size_t>(comm.rank())];
      std::vector<std::string> paths;
      for (const FileEntry& file : record.files)
        paths.push_back(cached(comm.rank()).file(file.name));
      check(check(flush(comm, site, record, paths, "bench")).settled);
    });
  }

  void copy_back(bool warm) {
    anew(memory_ / "back");
    set_cache(disk_ + "/cp", warm);
    time(warm ? "cp back, warm" : "cp back, cold", [&](Communicator& comm) {
      command({"cp", "-r", fmt::format("{}/cp/{}", disk_, comm.rank()), memory_ / "back"});
    });
    fs::remove_all(memory_ / "back");
  }

  void fetch_back(bool warm) {
    anew(memory_ / "back");
    set_cache(disk_ + "/prefix/state", warm);
    std::vector<std::string> damaged;
    const Listing listing = check(read_listing(*files_, {disk_ + "/prefix"}, damaged));
    as_job(warm ? "fetch, warm" : "fetch, cold", [&](Communicator& comm, const Site& site) {
      const RankFolder into{fmt::format("{}/back/{}", memory_.path(), comm.rank())};
      check(fetch(comm, site, listing.at(0), into));
    });
    fs::remove_all(memory_ / "back");
  }

  const Options options_;
  const std::string disk_;
  const TemporaryFolder memory_;
  const std::unique_ptr<Files> files_ = make_posix_files();
  const std::unique_ptr<Clock> clock_ = make_system_clock();
  std::array<RankRecord, ranks> records_;
  bool counts_ = false;
  std::map<std::string, Series> series_;
  std::map<std::string, double> last_;
};

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: flush FILES_PER_RANK KIB_PER_FILE ROUNDS THREADS [FOLDER]\n");
    return EXIT_FAILURE;
  }
  const cairn::Options options{std::atoi(argv[1]),
                               static_cast<std::size_t>(std::atol(argv[2])) * 1024,
                               std::atoi(argv[3]), std::atoi(argv[4])};
  const cairn::TemporaryFolder disk(argc > 5 ? argv[5] : "");
  fmt::print("{} ranks, {} files of {} KiB each, {} threads; median [10 % to 90 %] of {} rounds\n",
             cairn::ranks, options.files, argv[2], options.threads, options.rounds);
  cairn::Bench bench(options, disk.path());
  bench.write_cache();
  bench.run();
  return EXIT_SUCCESS;
}
