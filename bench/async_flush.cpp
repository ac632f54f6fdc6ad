// What a flush costs the program that waits for it, and the one that does not (SCR_FLUSH_ASYNC=1).
//
//   async_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]
//
// Two ranks, threads of this process, each its own node, with caches in /dev/shm. In each round
// three checkpoints: one that is only cached, one that is flushed while the program waits, one that
// is flushed while it goes on, in changing order. What each took from Start to Complete; and of the
// last, when all of it was in FOLDER (or $TMPDIR, or /tmp: a disk), which takes MIB_PER_S of a
// rank's bytes (0: as fast as it can).
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "measure.hpp"
#include "session/session.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int ranks = 2;

enum class Kind { cached, waited_for, not_waited_for };
constexpr std::array<const char*, 3> names = {"cached only", "flush, waited for",
                                              "flush, not waited for"};

struct Options {
  std::size_t bytes = 0;  ///< of a rank
  int rounds = 0;
  std::uint64_t bytes_per_s = 0;
};

struct Taken {
  double blocked_s = 0;  ///< from Start to Complete, without the program's own writing
  double arrived_s = 0;  ///< until it is in the prefix directory
};

class Bench {
 public:
  Bench(const Options& options, const std::string& disk)
      : options_(options), disk_(disk), memory_("/dev/shm"), content_(options.bytes) {
    for (std::size_t at = 0; at < content_.size(); ++at)
      content_[at] = static_cast<std::byte>(at * 31);
  }

  void run() {
    for (int round = -1; round < options_.rounds; ++round) {
      std::array<Taken, 3> taken;
      for (int turn = 0; turn < 3; ++turn) {
        const int kind = (turn + round + 3) % 3;
        taken[static_cast<std::size_t>(kind)] = checkpoint(static_cast<Kind>(kind));
      }
      if (round < 0) continue;  // files and memory are touched for the first time
      for (std::size_t kind = 0; kind < 3; ++kind) blocked_[kind].push_back(taken[kind].blocked_s);
      // What the flush adds to a checkpoint that is only cached.
      const double waited = taken[1].blocked_s - taken[0].blocked_s;
      const double gone_on = taken[2].blocked_s - taken[0].blocked_s;
      added_.push_back(gone_on);
      ratios_.push_back(gone_on / waited);
      throughput_.push_back(static_cast<double>(options_.bytes) * ranks / taken[2].arrived_s);
    }
    report();
  }

 private:
  void report() {
    for (std::size_t kind = 0; kind < 3; ++kind)
      fmt::print("  {:<22} {:9.2f} ms [{:.2f} to {:.2f}]\n", names[kind],
                 1e3 * quantile(blocked_[kind], 0.5), 1e3 * quantile(blocked_[kind], 0.1),
                 1e3 * quantile(blocked_[kind], 0.9));
    fmt::print(
        "  added, not waited for  {:9.2f} ms [{:.2f} to {:.2f}], {:.4f} of what a flush that is "
        "waited for adds [{:.4f} to {:.4f}]\n",
        1e3 * quantile(added_, 0.5), 1e3 * quantile(added_, 0.1), 1e3 * quantile(added_, 0.9),
        quantile(ratios_, 0.5), quantile(ratios_, 0.1), quantile(ratios_, 0.9));
    fmt::print("  arrives with           {:9.1f} MiB/s [{:.1f} to {:.1f}]\n",
               quantile(throughput_, 0.5) / (1 << 20), quantile(throughput_, 0.1) / (1 << 20),
               quantile(throughput_, 0.9) / (1 << 20));
  }

  Settings settings_of(Kind kind, int rank) const {
    Settings settings;
    settings.prefix = disk_.path();
    settings.user = "bench";
    settings.job_id = "bench";
    settings.node_name = fmt::format("n{}", rank);
    settings.control_base = memory_.path() + "/%n";
    settings.flush = true;
    settings.flush_interval = kind == Kind::cached ? 0 : 1;
    settings.flush_async = kind == Kind::not_waited_for;
    settings.flush_bytes_per_s = options_.bytes_per_s;
    settings.stores.emplace_back().path = settings.control_base;
    CheckpointSettings& level = settings.checkpoints.emplace_back();
    level.store = settings.control_base;
    level.scheme = Scheme::partner;
    level.set_size = ranks;
    return settings;
  }

  /// Of a run of its own, whose caches and prefix directory are empty.
  Taken checkpoint(Kind kind) {
    Taken taken;
    for (const std::string& folder : {disk_.path(), memory_.path()}) {
      fs::remove_all(folder);
      fs::create_directories(folder);
    }
    Team(ranks).run([&](Communicator& comm) {
      const auto background = make_background_thread();
      const auto files = make_posix_files();
      const auto clock = make_system_clock();
      auto session = check(Session::init({comm, *files, *clock, *background, Log()},
                                         settings_of(kind, comm.rank())));
      const Taken mine = write(comm, *session, *files, *clock);
      if (comm.rank() == 0) taken = mine;
    });
    return taken;
  }

  Taken write(Communicator& comm, Session& session, Files& files, Clock& clock) {
    check(session.start_checkpoint());
    const std::string name = fmt::format("{}/ckpt/rank.{}", disk_.path(), comm.rank());
    const std::string path = check(session.route_file(name));
    check(check(files.create(path, 0600))->write_at(0, content_));
    comm.barrier();
    const std::int64_t from_us = clock.steady_us();
    check(session.complete_checkpoint(true));
    const std::int64_t blocked_us = clock.steady_us() - from_us;
    check(session.finalize());
    return {static_cast<double>(blocked_us) * 1e-6,
            static_cast<double>(clock.steady_us() - from_us) * 1e-6};
  }

  const Options options_;
  TemporaryFolder disk_;
  TemporaryFolder memory_;
  Blob content_;
  std::array<std::vector<double>, 3> blocked_;
  std::vector<double> added_;
  std::vector<double> ratios_;
  std::vector<double> throughput_;
};

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: async_flush MIB_PER_RANK ROUNDS MIB_PER_S [FOLDER]\n");
    return EXIT_FAILURE;
  }
  const cairn::Options options{static_cast<std::size_t>(std::atol(argv[1])) << 20,
                               std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10) << 20};
  fmt::print("{} ranks, {} MiB each, {} MiB/s (0: no limit); median [10 % to 90 %] of {} rounds\n",
             cairn::ranks, argv[1], argv[3], options.rounds);
  cairn::Bench(options, argc > 4 ? argv[4] : "").run();
  return EXIT_SUCCESS;
}
