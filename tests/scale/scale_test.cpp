// What a checkpoint and a restart cost each rank, counted, as the job grows. Counts carry no noise,
// so they are asserted; docs/performance.md shows the table that this program prints.
#include <cmath>

#include "comm/counting.hpp"
#include "session/session_harness.hpp"

namespace cairn {
namespace {

constexpr int ranks_per_node = 2;
constexpr std::size_t file_bytes = 1000;

/// The ranks of a node make its folders together: who comes first tries a folder, makes the three
/// above it and tries again; who comes last finds all of them. The one count that timing changes.
constexpr std::uint64_t shared_folder_operations = 6;

/// Of one rank, between two points.
struct Cost {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gathered_bytes = 0;
  std::uint64_t file_operations = 0;

  void take_larger(const Cost& other) {
    messages = std::max(messages, other.messages);
    bytes = std::max(bytes, other.bytes);
    gathered_bytes = std::max(gathered_bytes, other.gathered_bytes);
    file_operations = std::max(file_operations, other.file_operations);
  }
};

/// The largest of all ranks: so a rank that is a funnel shows.
using Costs = std::map<std::string, Cost>;

class CountedRank {
 public:
  CountedRank(Communicator& team, Settings settings, Costs& costs, std::mutex& mutex)
      : comm_(team),
        settings_(std::move(settings)),
        posix_(make_posix_files()),
        files_(make_hooked_files(*posix_,
                                 [this](const FileOperation&) {
                                   ++operations_;
                                   return Status{};
                                 })),
        clock_(make_system_clock()),
        costs_(costs),
        mutex_(mutex) {}

  void init(const std::string& step) {
    begin();
    auto session = Session::init({comm_, *files_, *clock_, *background_, Log()}, settings_);
    ASSERT_TRUE(session) << session.error().text;
    session_ = *std::move(session);
    end(step);
  }

  void checkpoint(const std::string& step) {
    begin();
    ASSERT_TRUE(session_->start_checkpoint());
    const auto path = session_->route_file(file());
    ASSERT_TRUE(path);
    const auto out = posix_->create(*path, 0600);  // the application's own
    ASSERT_TRUE(out);
    const Blob content(file_bytes, static_cast<std::byte>(comm_.rank()));
    ASSERT_TRUE((*out)->write_at(0, content));
    const Status done = session_->complete_checkpoint(true);
    ASSERT_TRUE(done) << done.error().text;
    end(step);
  }

  void restart(const std::string& step) {
    begin();
    ASSERT_TRUE(*session_->have_restart());
    ASSERT_TRUE(session_->start_restart());
    const auto path = session_->route_file(file());
    ASSERT_TRUE(path);
    const auto content = read_file(*posix_, *path, file_bytes);
    ASSERT_TRUE(content);
    ASSERT_EQ(*content, Blob(file_bytes, static_cast<std::byte>(comm_.rank())));
    ASSERT_TRUE(session_->complete_restart(true));
    end(step);
  }

  void finalize() { ASSERT_TRUE(session_->finalize()); }

 private:
  std::string file() const { return fmt::format("{}/rank.{}", settings_.prefix, comm_.rank()); }

  void begin() {
    before_ = comm_.traffic();
    operations_before_ = operations_;
  }

  void end(const std::string& step) {
    const Traffic& now = comm_.traffic();
    const Cost mine{now.messages - before_.messages, now.bytes - before_.bytes,
                    now.gathered_bytes - before_.gathered_bytes, operations_ - operations_before_};
    const std::scoped_lock lock(mutex_);
    costs_[step].take_larger(mine);
  }

  CountingCommunicator comm_;
  Settings settings_;
  std::uint64_t operations_ = 0;
  std::unique_ptr<Files> posix_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Background> background_ = make_foreground();
  std::unique_ptr<Session> session_;
  Costs& costs_;
  std::mutex& mutex_;
  Traffic before_;
  std::uint64_t operations_before_ = 0;
};

/// A job of so many ranks: its first run, a restart with nothing lost, and one with a node lost.
Costs costs_of(int ranks) {
  TemporaryFolder folder(Cluster::memory());
  Settings settings;
  settings.prefix = "/prefix";
  settings.user = "tester";
  settings.job_id = "job";
  settings.control_base = folder / "%n";
  settings.block_bytes = 64 << 10;
  settings.encode_bytes = 256 << 10;
  settings.stores.emplace_back().path = settings.control_base;
  settings.checkpoints.emplace_back().store = settings.control_base;
  Costs costs;
  std::mutex mutex;
  const auto run = [&](const std::function<void(CountedRank&)>& steps) {
    Team(ranks, Team::Mode::buffered).run([&](Communicator& team) {
      Settings mine = settings;
      mine.node_name = fmt::format("n{}", team.rank() / ranks_per_node);
      CountedRank rank(team, std::move(mine), costs, mutex);
      steps(rank);
      rank.finalize();
    });
  };
  run([](CountedRank& rank) {
    rank.init("first Init");
    rank.checkpoint("first checkpoint");
    rank.checkpoint("checkpoint");  // and the first one is evicted
  });
  run([](CountedRank& rank) {
    rank.init("Init, nothing lost");
    rank.restart("restart");
  });
  std::filesystem::remove_all(folder / "n1");
  run([](CountedRank& rank) {
    rank.init("Init, a node lost");
    rank.restart("restart after it");
  });
  return costs;
}

TEST(Scale, EachRanksShareGrowsWithTheLogarithmOfTheJob) {
  // What 64 ranks need per power of two bounds what more may need.
  Costs small;
  const std::vector<int> sizes = sanitized ? std::vector{64, 256} : std::vector{64, 512, 4096};
  for (const int ranks : sizes) {
    const double powers = std::log2(ranks);
    const Costs costs = costs_of(ranks);
    if (ranks == 64) small = costs;
    for (const auto& [step, cost] : costs) {
      fmt::print("| {} | {} | {} | {} | {} | {} |\n", ranks, step, cost.messages, cost.bytes,
                 cost.gathered_bytes, cost.file_operations);
      const Cost& base = small.at(step);
      const double growth = powers / std::log2(64);
      EXPECT_LE(static_cast<double>(cost.messages), 1.1 * growth * base.messages) << step;
      EXPECT_LE(static_cast<double>(cost.bytes), 1.1 * growth * base.bytes) << step;
      // Ranks of a node race to make, or to remove, the folders they share.
      const bool shares_folders = !step.starts_with("restart");
      EXPECT_LE(cost.file_operations,
                base.file_operations + (shares_folders ? shared_folder_operations : 0))
          << step;
      EXPECT_LE(cost.gathered_bytes,
                step.starts_with("Init") || step.starts_with("first I") ? 16U : 0U)
          << step;
    }
  }
}

}  // namespace
}  // namespace cairn
