// PARTNER writes every byte twice, XOR a seventh more: on slow storage that decides.
//
//   slow_storage MIB_PER_RANK ROUNDS
//
// Eight ranks, each a node whose storage ($TMPDIR or /tmp, no memory) takes so many MB/s and no
// more. What was just written is read back from memory at no charge, as a kernel would. Whole
// sessions, from Start to Complete; the floor is the same bytes written plainly to the same
// storage, then a barrier.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "comm/team.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "session/session.hpp"

namespace cairn {
namespace {

constexpr int ranks = 8;

struct Options {
  std::size_t bytes;
  int rounds;
};

void check(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", status.error().text);
  std::exit(EXIT_FAILURE);
}

/// The storage of one node: one write after the other, each at the storage's speed.
class Disk {
 public:
  Disk(Clock& clock, double bytes_per_second) : clock_(clock), rate_(bytes_per_second) {}

  void write(std::uint64_t bytes) {
    const std::int64_t now_us = clock_.steady_us();
    free_at_us_ = std::max(free_at_us_, static_cast<double>(now_us)) +
                  1e6 * static_cast<double>(bytes) / rate_;
    const std::int64_t left_us = static_cast<std::int64_t>(free_at_us_) - now_us;
    if (left_us > 0) clock_.sleep_us(left_us);
  }

 private:
  Clock& clock_;
  const double rate_;
  double free_at_us_ = 0;
};

class RankOnDisk {
 public:
  RankOnDisk(Communicator& comm, const Settings& settings, double bytes_per_second)
      : comm_(comm),
        settings_(settings),
        clock_(make_system_clock()),
        disk_(*clock_, bytes_per_second),
        posix_(make_posix_files()),
        files_(make_hooked_files(*posix_,
                                 [this](const FileOperation& operation) -> Status {
                                   if (operation.name == "write") disk_.write(operation.bytes);
                                   return {};
                                 })),
        background_(make_background_thread()) {
    settings_.node_name = fmt::format("n{}", comm.rank());
  }

  void init() {
    auto session = Session::init({comm_, *files_, *clock_, *background_, Log()}, settings_);
    check(session ? Status{} : Status(tl::unexpected(session.error())));
    session_ = *std::move(session);
  }

  double floor(const std::string& folder, const Blob& data) {
    const std::string path = fmt::format("{}/floor.{}", folder, comm_.rank());
    const double seconds = timed([&] { write(path, data); });
    check(posix_->remove_file(path));
    return seconds;
  }

  double checkpoint(const Blob& data) {
    return timed([&] {
      check(session_->start_checkpoint());
      write(*session_->route_file(settings_.prefix + "/state"), data);
      check(session_->complete_checkpoint(true));
    });
  }

  void finalize() { check(session_->finalize()); }

 private:
  void write(const std::string& path, const Blob& data) {
    const auto file = *files_->create(path, 0600);
    check(file->write_at(0, data));
  }

  template <class Work>
  double timed(Work work) {
    comm_.barrier();
    const std::int64_t begin_us = clock_->steady_us();
    work();
    comm_.barrier();
    return 1e-6 * static_cast<double>(clock_->steady_us() - begin_us);
  }

  Communicator& comm_;
  Settings settings_;
  std::unique_ptr<Clock> clock_;
  Disk disk_;
  std::unique_ptr<Files> posix_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Background> background_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Settings settings_in(const std::string& folder, Scheme scheme) {
  Settings settings;
  settings.prefix = "/prefix";
  settings.user = "bench";
  settings.job_id = "bench";
  settings.control_base = folder + "/%n";
  settings.stores.emplace_back().path = settings.control_base;
  CheckpointSettings& checkpoint = settings.checkpoints.emplace_back();
  checkpoint.store = settings.control_base;
  checkpoint.scheme = scheme;
  return settings;
}

void measure(Scheme scheme, double mb_per_second, const Options& options) {
  const TemporaryFolder folder;  // no store in memory: it is synced, and its files are not mapped
  const Settings settings = settings_in(folder / "nodes", scheme);
  check(make_posix_files()->make_folder(folder / "nodes", 0700));
  std::vector<double> ratios;
  std::vector<double> times;
  Team(ranks, Team::Mode::buffered).run([&](Communicator& comm) {
    RankOnDisk rank(comm, settings, 1e6 * mb_per_second);
    rank.init();
    const Blob data(options.bytes, static_cast<std::byte>(comm.rank()));
    for (int round = -1; round < options.rounds; ++round) {
      const double floor = rank.floor(folder / "nodes", data);
      const double seconds = rank.checkpoint(data);
      if (round < 0 || comm.rank() != 0) continue;
      ratios.push_back(seconds / floor);
      times.push_back(seconds);
    }
    rank.finalize();
  });
  fmt::print("  {:<8} {:5.2f} x floor  [{:.2f} to {:.2f}]   {:7.1f} ms\n", name_of(scheme),
             median(ratios), *std::min_element(ratios.begin(), ratios.end()),
             *std::max_element(ratios.begin(), ratios.end()), 1e3 * median(times));
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using cairn::Scheme;
  if (argc != 3) {
    fmt::print(stderr, "usage: slow_storage MIB_PER_RANK ROUNDS\n");
    return EXIT_FAILURE;
  }
  const cairn::Options options{static_cast<std::size_t>(std::atol(argv[1])) << 20,
                               std::atoi(argv[2])};
  for (const double mb_per_second : {100.0, 500.0}) {
    fmt::print("{} nodes, {} MiB each, storage of {} MB/s; median [least to most] of {} rounds\n",
               cairn::ranks, argv[1], mb_per_second, options.rounds);
    for (const Scheme scheme : {Scheme::single, Scheme::partner, Scheme::xor_, Scheme::rs})
      cairn::measure(scheme, mb_per_second, options);
  }
  return EXIT_SUCCESS;
}
