// What a checkpoint and a restart cost each rank, counted, as the job grows. Counts carry no noise,
// so they are asserted; docs/performance.md shows some rows of what it prints.
#include <atomic>
#include <bit>
#include <cmath>

#include "comm/counting.hpp"
#include "prefix/manifest.hpp"
#include "support/job_bed.hpp"
#include "support/job_settings.hpp"

namespace cairn {
namespace {

constexpr int ranks_per_node = 2;
constexpr int nodes_of_set = 8;
constexpr std::size_t file_bytes = 1000;

/// The ranks of a node make its folders together: who comes first tries a folder, makes the three
/// above it and tries again; who comes last finds all of them. The one count that timing changes.
constexpr std::uint64_t shared_folder_operations = 6;

struct Killed {};

/// Of one rank, between two points.
struct Cost {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gathers = 0;
  std::uint64_t gathered_bytes = 0;
  std::uint64_t file_operations = 0;
  std::uint64_t record_bytes = 0;  ///< written into files other than the ranks' data and parity

  void take_larger(const Cost& other) {
    messages = std::max(messages, other.messages);
    bytes = std::max(bytes, other.bytes);
    gathers = std::max(gathers, other.gathers);
    gathered_bytes = std::max(gathered_bytes, other.gathered_bytes);
    file_operations = std::max(file_operations, other.file_operations);
    record_bytes = std::max(record_bytes, other.record_bytes);
  }
};

/// What a rank has sent and received since `before`.
Cost travelled(const Traffic& now, const Traffic& before) {
  return {now.messages - before.messages, now.bytes - before.bytes, now.gathers - before.gathers,
          now.gathered_bytes - before.gathered_bytes};
}

std::uint64_t record_bytes_of(const FileOperation& operation) {
  const bool writes = operation.name == "write" || operation.name == "append";
  const bool data = operation.path.find("/files/") != std::string_view::npos ||
                    operation.path.find("/parity.") != std::string_view::npos;
  return writes && !data ? operation.bytes : 0;
}

/// At least 64 ranks, `cost` those of 64: messages and bytes grow with the logarithm at most.
void expect_logarithmic(const Cost& cost, const Cost& of_64, int ranks, const std::string& step) {
  const double growth = std::log2(ranks) / std::log2(64);
  EXPECT_LE(static_cast<double>(cost.messages), 1.1 * growth * of_64.messages) << step;
  EXPECT_LE(static_cast<double>(cost.bytes), 1.1 * growth * of_64.bytes) << step;
  EXPECT_LE(cost.gathers, step.find("Init") == std::string::npos ? 0U : 1U) << step;
  EXPECT_LE(cost.gathered_bytes, 16U * cost.gathers) << step;
}

/// The largest of all ranks: so a rank that is a funnel shows.
using Costs = std::map<std::string, Cost>;

class CountedRank {
 public:
  using Hook = std::function<void(const FileOperation&)>;

  CountedRank(Communicator& team, Settings settings, Costs& costs, std::mutex& mutex,
              const Hook& hook)
      : comm_(team),
        settings_(std::move(settings)),
        posix_(make_posix_files()),
        files_(make_hooked_files(*posix_,
                                 [this, hook](const FileOperation& operation) {
                                   if (hook) hook(operation);
                                   ++operations_;
                                   record_bytes_ += record_bytes_of(operation);
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
    auto out = posix_->create(*path, 0600);  // the application's own
    ASSERT_TRUE(out);
    const Blob content(file_bytes, static_cast<std::byte>(comm_.rank()));
    ASSERT_TRUE((*out)->write_at(0, content));
    out->reset();
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

  void expect_no_restart() { ASSERT_FALSE(session_->have_restart().value()); }

  void finalize() { ASSERT_TRUE(session_->finalize()); }

 private:
  std::string file() const { return fmt::format("{}/rank.{:04}", settings_.prefix, comm_.rank()); }

  void begin() {
    before_ = comm_.traffic();
    operations_ = 0;
    record_bytes_ = 0;
  }

  void end(const std::string& step) {
    Cost mine = travelled(comm_.traffic(), before_);
    mine.file_operations = operations_;
    mine.record_bytes = record_bytes_;
    const std::scoped_lock lock(mutex_);
    costs_[step].take_larger(mine);
  }

  CountingCommunicator comm_;
  Settings settings_;
  std::uint64_t operations_ = 0;
  std::uint64_t record_bytes_ = 0;
  std::unique_ptr<Files> posix_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Background> background_ = make_foreground();
  std::unique_ptr<Session> session_;
  Costs& costs_;
  std::mutex& mutex_;
  Traffic before_;
};

// --- the prefix directory ---

/// Which operations on it a job makes, of all ranks together and of the busiest.
struct PrefixCost {
  std::uint64_t operations = 0;  ///< but for reads and writes of bytes
  std::uint64_t busiest = 0;
  std::uint64_t records_read = 0;  ///< the most that one process has read of the ranks' records
  Cost travelled;                  ///< the largest of all ranks
};

class PrefixCosts {
 public:
  void count(const std::string& step, int rank, const FileOperation& operation) {
    const std::scoped_lock lock(mutex_);
    Counts& counts = of_[step];
    if (operation.name != "read" && operation.name != "write") ++counts.of_rank[rank];
    if (operation.name == "open" && operation.path.find("/manifest.") != std::string::npos)
      ++counts.manifests_read[rank];
  }

  void travel(const std::string& step, const Cost& cost) {
    const std::scoped_lock lock(mutex_);
    of_[step].travelled.take_larger(cost);
  }

  PrefixCost of(const std::string& step) const {
    PrefixCost cost;
    cost.travelled = of_.at(step).travelled;
    for (const auto& [rank, operations] : of_.at(step).of_rank) {
      cost.operations += operations;
      cost.busiest = std::max(cost.busiest, operations);
    }
    for (const auto& [rank, manifests] : of_.at(step).manifests_read)
      cost.records_read = std::max(cost.records_read, manifests * ranks_per_manifest);
    return cost;
  }

 private:
  struct Counts {
    std::map<int, std::uint64_t> of_rank;
    std::map<int, std::uint64_t> manifests_read;
    Cost travelled;
  };
  std::mutex mutex_;
  std::map<std::string, Counts> of_;
};

/// A job that copies each checkpoint to its prefix directory; its nodes are lost; what was in the
/// middle of a flush then is carried on.
class PrefixJob {
 public:
  PrefixJob(int ranks, int files_each) : ranks_(ranks), files_each_(files_each) {
    settings_ = settings_of_job(folder_ / "prefix", folder_ / "%n");
    settings_.block_bytes = Settings{}.block_bytes;
    std::filesystem::create_directory(settings_.prefix);
    add_level(settings_, settings_.control_base).scheme = Scheme::single;
    settings_.flush = true;
    settings_.flush_interval = 1;
    settings_.fetch = true;
  }

  PrefixCosts& carry_out() {
    run("first flush", [&](Session& session) {
      write(session, "first");
      begin("flush");
      write(session);  // the prefix directory is this run's by now
      EXPECT_TRUE(session.finalize());
    });
    lose_nodes();
    run("Init that fetches", [&](Session& session) {
      EXPECT_TRUE(session.have_restart().value());
      EXPECT_TRUE(session.finalize());
    });
    std::atomic<int> done = 0;
    const auto half = [&](const FileOperation& operation) {
      if (operation.path.find("/done/0.") == std::string_view::npos) return;
      if (rank_ % 2 == 0) {
        if (++done == ranks_ / 2) done.notify_all();
        return;
      }
      for (int now = done; now < ranks_ / 2; now = done) done.wait(now);
      throw Killed{};
    };
    EXPECT_THROW(run(
                     "killed", [&](Session& session) { write(session, "third"); }, half),
                 Killed);
    run("Init that ends a flush", [&](Session& session) {
      begin("after");
      EXPECT_TRUE(session.finalize());
    });
    done = 0;
    EXPECT_THROW(run(
                     "killed", [&](Session& session) { write(session, "late"); }, half),
                 Killed);
    make_it_late();
    run("Init that judges a late flush", [&](Session& session) {
      begin("after");
      EXPECT_TRUE(session.finalize());
    });
    return costs_;
  }

  /// A job that writes there itself, and restarts there: with as many ranks, which all read a file
  /// of rank 0, and with three quarters of them, which read what those have written at the other
  /// end. Each also asks for a file that nobody has written.
  PrefixCosts& carry_out_in_place() {
    settings_.checkpoints.back().bypass = true;
    settings_.broadcast = {"mesh*"};
    settings_.elastic = true;
    run("first publication", [&](Session& session) {
      write(session, "first");
      begin("publication in place");
      write(session);
      EXPECT_TRUE(session.finalize());
    });
    run("Init, restart in place", [&](Session& session) { restart(session, {"mesh"}); });
    const int wrote = std::exchange(ranks_, ranks_ / 4 * 3);
    run("Init, elastic restart", [&](Session& session) {
      std::vector<std::string> far = {"mesh"};
      for (int file = 0; file < files_each_; ++file)
        far.push_back(fmt::format("rank.{}.{}", wrote - 1 - rank_, file));
      restart(session, far);
    });
    return costs_;
  }

 private:
  void restart(Session& session, const std::vector<std::string>& names) const {
    ASSERT_TRUE(*session.have_restart());
    ASSERT_TRUE(session.start_restart());
    for (const std::string& name : names)
      EXPECT_EQ(session.route_file(settings_.prefix + "/" + name).value_or(""),
                settings_.prefix + "/" + name);
    const auto nobodys = session.route_file(settings_.prefix + "/mesh.of.nobody");
    ASSERT_FALSE(nobodys);
    EXPECT_EQ(nobodys.error().code, Code::not_found);
    EXPECT_TRUE(session.complete_restart(true));
    EXPECT_TRUE(session.finalize());
  }

  void run(const std::string& step, const std::function<void(Session&)>& steps,
           const std::function<void(const FileOperation&)>& hook = nullptr) {
    Team(ranks_, Team::Mode::buffered).run([&](Communicator& team) {
      CountingCommunicator comm(team);
      traffic_ = &comm.traffic();
      begin(step);
      const auto posix = make_posix_files();
      const auto files = make_hooked_files(*posix, [&](const FileOperation& operation) {
        if (operation.path.starts_with(settings_.prefix))
          costs_.count(step_, comm.rank(), operation);
        if (hook) hook(operation);
        return Status{};
      });
      const auto clock = make_system_clock();
      const auto background = make_foreground();
      Settings mine = settings_;
      mine.node_name = fmt::format("n{}", comm.rank() / ranks_per_node);
      rank_ = comm.rank();
      auto session = Session::init({comm, *files, *clock, *background, Log()}, mine);
      ASSERT_TRUE(session) << session.error().text;
      steps(**session);
      begin("");
    });
  }

  /// What this rank does from now on is of that step.
  void begin(const std::string& step) {
    if (!step_.empty()) costs_.travel(step_, travelled(*traffic_, before_));
    step_ = step;
    before_ = *traffic_;
  }

  /// The flush that has just died comes to light when newer checkpoints are there, as if its folder
  /// had been on a file system that was away meanwhile.
  void make_it_late() {
    const std::filesystem::path root = settings_.prefix + "/.cairn";
    std::filesystem::path died;
    for (const auto& entry : std::filesystem::directory_iterator(root))
      if (entry.path().filename().string().starts_with("epoch.")) died = entry.path();
    ASSERT_TRUE(std::filesystem::exists(died));
    std::filesystem::rename(died, folder_ / "away");
    lose_nodes();
    run("between", [&](Session& session) {
      write(session, "between");
      EXPECT_TRUE(session.finalize());
    });
    std::filesystem::rename(folder_ / "away", root / "closed.1");
    lose_nodes();
  }

  void lose_nodes() {
    for (int node = 0; node * ranks_per_node < ranks_; ++node)
      std::filesystem::remove_all(folder_ / fmt::format("n{}", node));
  }

  void write(Session& session, std::string_view name = "rank") {
    ASSERT_TRUE(session.start_checkpoint());
    std::vector<std::string> names;
    for (int file = 0; file < files_each_; ++file)
      names.push_back(fmt::format("{}.{}.{}", name, rank_, file));
    if (rank_ == 0 && !settings_.broadcast.empty() && name == "rank") names.emplace_back("mesh");
    for (const std::string& each : names) {
      const auto path = session.route_file(settings_.prefix + "/" + each);
      ASSERT_TRUE(path);
      const auto out = make_posix_files()->create(*path, 0600);
      ASSERT_TRUE((*out)->write_at(0, Blob(file_bytes)));
    }
    const Status done = session.complete_checkpoint(true);
    ASSERT_TRUE(done) << done.error().text;
  }

  TemporaryFolder folder_{memory_base()};
  int ranks_;
  const int files_each_;
  Settings settings_;
  PrefixCosts costs_;
  static thread_local std::string step_;
  static thread_local int rank_;
  static thread_local const Traffic* traffic_;
  static thread_local Traffic before_;
};

thread_local std::string PrefixJob::step_;
thread_local int PrefixJob::rank_ = 0;
thread_local const Traffic* PrefixJob::traffic_ = nullptr;
thread_local Traffic PrefixJob::before_;

constexpr int few_ranks = 64;
constexpr int many_ranks = sanitized ? 128 : 512;
/// Ranks, and the files of each.
constexpr std::pair<int, int> job_sizes[] = {{few_ranks, 1}, {few_ranks, 9}, {many_ranks, 1}};

/// A file costs so many on its way: its copy's making and naming, attributes, sync, checks.
constexpr std::uint64_t for_each_file = 9;

void print_row(int ranks, int files, const std::string& step, const PrefixCost& cost) {
  const Cost& travelled = cost.travelled;
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.1f} | {} |\n", ranks, files, step,
             travelled.messages, travelled.bytes, travelled.gathered_bytes, cost.operations,
             static_cast<double>(cost.operations) / ranks, cost.busiest);
}

TEST(Scale, OperationsInThePrefixDirectoryGrowWithFilesAndRanks) {
  std::map<std::string, PrefixCost> base;
  for (const auto& [ranks, files] : job_sizes) {
    PrefixJob job(ranks, files);
    PrefixCosts& costs = job.carry_out();
    for (const char* step : {"flush", "Init that fetches", "Init that ends a flush",
                             "Init that judges a late flush"}) {
      const PrefixCost cost = costs.of(step);
      print_row(ranks, files, step, cost);
      if (ranks == few_ranks && files == 1) base[step] = cost;
      const PrefixCost& first = base[step];
      if (files == 1) expect_logarithmic(cost.travelled, first.travelled, ranks, step);
      const auto grown = static_cast<std::uint64_t>(ranks / few_ranks);
      const bool ends = step == std::string_view("Init that ends a flush");
      const bool judges = step == std::string_view("Init that judges a late flush");
      // Who meets whom at the markers, and climbs on, is chance; but nobody climbs higher than the
      // tree of them is.
      const auto height = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(ranks)));
      const std::uint64_t operations = ends ? (20 + height) * few_ranks : first.operations;
      const std::uint64_t busiest =
          ends ? (10 + height) * std::uint64_t{ranks_per_manifest} : first.busiest;
      const std::uint64_t more_files = static_cast<std::uint64_t>(ranks) * (files - 1);
      EXPECT_LE(cost.operations, operations * grown + for_each_file * more_files) << step;
      // The keeper makes a few beside its own part, for each manifest of 64 ranks; whoever ends
      // what others began does so for the ranks of a manifest, however many manifests there are.
      const std::uint64_t at_most_ranks = ends || judges ? ranks_per_manifest : 1;
      EXPECT_LE(cost.busiest,
                busiest + 4 * grown + at_most_ranks * (1 + for_each_file * (files - 1)))
          << step;
      // That of its own part, and one dealt to it, which it reads again to give files their names;
      // of a late flush also one to judge it by, of it and of each newer dataset.
      const std::uint64_t manifests = judges ? 4 : 3;
      EXPECT_LE(cost.records_read, manifests * ranks_per_manifest)
          << "of " << ranks << " at " << step;
    }
  }
}

/// Each of the names that all ranks learn is eight bytes, which a rank receives once and sends to
/// at most so many as the tree is high; on the way up those of a rank have a label of 16 bytes.
void expect_logarithmic_but_for_names(Cost cost, const Cost& of_64, int ranks, std::uint64_t names,
                                      const std::string& step) {
  const auto height = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(ranks)));
  const std::uint64_t for_names = names * (8 * (height + 1) + 16);
  cost.bytes -= std::min(cost.bytes, for_names);
  expect_logarithmic(cost, of_64, ranks, step);
}

TEST(Scale, ARestartFromFilesInPlaceGrowsWithFilesAndRanks) {
  std::map<std::string, PrefixCost> base;
  for (const auto& [ranks, files] : job_sizes) {
    PrefixJob job(ranks, files);
    PrefixCosts& costs = job.carry_out_in_place();
    for (const char* step :
         {"publication in place", "Init, restart in place", "Init, elastic restart"}) {
      const PrefixCost cost = costs.of(step);
      print_row(ranks, files, step, cost);
      if (ranks == few_ranks && files == 1) base[step] = cost;
      const PrefixCost& first = base[step];
      const auto grown = static_cast<std::uint64_t>(ranks / few_ranks);
      const std::uint64_t more_files = static_cast<std::uint64_t>(ranks) * (files - 1);
      const bool publishes = step == std::string_view("publication in place");
      const bool elastic = step == std::string_view("Init, elastic restart");
      if (files == 1)
        expect_logarithmic_but_for_names(cost.travelled, first.travelled, ranks,
                                         publishes ? 0 : static_cast<std::uint64_t>(ranks), step);
      EXPECT_LE(cost.operations, first.operations * grown + for_each_file * more_files) << step;
      // Where fewer restart, some have the files of two to check.
      const std::uint64_t parts = elastic ? 2 : 1;
      EXPECT_LE(cost.busiest, first.busiest + parts * for_each_file * (files - 1)) << step;
      EXPECT_LE(cost.records_read, parts * ranks_per_manifest) << "of " << ranks << " at " << step;
    }
  }
}

// --- the caches ---

int node_of(int rank) { return rank / ranks_per_node; }
/// Ranks that protect each other come to share nodes.
int crowded_node_of(int rank) { return rank / 4 * 2 + rank % 2; }

/// A job of so many ranks and its runs.
class CacheJob {
 public:
  explicit CacheJob(int ranks) : ranks_(ranks) {
    settings_ = settings_of_job("/prefix", folder_ / "%n");
    settings_.block_bytes = 64 << 10;
    settings_.encode_bytes = 256 << 10;
    add_level(settings_, settings_.control_base);
  }

  const Costs& carry_out() {
    run(node_of, [](CountedRank& rank) {
      rank.init("first Init");
      rank.checkpoint("first checkpoint");
      rank.checkpoint("checkpoint");  // and the first one is evicted
    });
    restart("Init, nothing lost", "restart");
    lose({1});
    restart("Init, a node lost", "restart after it");
    for (int node = 1; node < node_of(ranks_); node += nodes_of_set) lose({node});
    restart("Init, a node of each set lost", "restart after them");
    leave_two_generations();
    run(crowded_node_of, [](CountedRank& rank) {
      rank.init("Init, two generations");
      rank.restart("restart after those");
    });
    lose_too_much();
    return costs_;
  }

 private:
  void run(int (*node)(int rank), const std::function<void(CountedRank&)>& steps,
           const CountedRank::Hook& hook = nullptr) {
    Team(ranks_, Team::Mode::buffered).run([&](Communicator& team) {
      Settings mine = settings_;
      mine.node_name = fmt::format("n{:04}", node(team.rank()));
      CountedRank rank(team, std::move(mine), costs_, mutex_, hook);
      steps(rank);
      rank.finalize();
    });
  }

  void restart(const std::string& init, const std::string& step) {
    run(node_of, [&](CountedRank& rank) {
      rank.init(init);
      rank.restart(step);
    });
  }

  /// More than XOR holds, and then what SINGLE does not hold: nothing is left to restart from.
  void lose_too_much() {
    lose({1, 2, 3});
    settings_.checkpoints.back().scheme = Scheme::single;
    run(crowded_node_of, [](CountedRank& rank) {
      rank.init("Init, three neighbours of a set lost");
      rank.expect_no_restart();
      rank.checkpoint("checkpoint, SINGLE");
    });
    lose({1});
    run(crowded_node_of, [](CountedRank& rank) {
      rank.init("Init, SINGLE, a node lost");
      rank.expect_no_restart();
    });
  }

  void lose(const std::vector<int>& nodes) const {
    for (const int node : nodes) std::filesystem::remove_all(folder_ / fmt::format("n{:04}", node));
  }

  /// The job dies when it has committed new sets, and before what the old ones had elsewhere goes.
  void leave_two_generations() {
    const auto kill = [](const FileOperation& operation) {
      if (operation.name == "remove_file" && operation.path.ends_with("/record")) throw Killed{};
    };
    EXPECT_THROW(run(
                     crowded_node_of, [](CountedRank& rank) { rank.init("killed"); }, kill),
                 Killed);
    costs_.erase("killed");
  }

  TemporaryFolder folder_{memory_base()};
  const int ranks_;
  Settings settings_;
  Costs costs_;
  std::mutex mutex_;
};

/// SCALE_RANKS in the environment sets another size; `make soak` takes 4096.
int ranks_of_a_large_job() {
  const char* wanted = std::getenv("SCALE_RANKS");
  return wanted != nullptr ? std::stoi(wanted) : sanitized ? 256 : 1024;
}

TEST(Scale, EachRanksShareGrowsWithTheLogarithmOfTheJob) {
  // What 64 ranks need per power of two bounds what more may need.
  Costs small;
  for (const int ranks : {64, ranks_of_a_large_job()}) {
    const Costs costs = CacheJob(ranks).carry_out();
    if (ranks == 64) small = costs;
    for (const auto& [step, cost] : costs) {
      fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", ranks, step, cost.messages, cost.bytes,
                 cost.gathered_bytes, cost.file_operations, cost.record_bytes);
      const Cost& base = small.at(step);
      expect_logarithmic(cost, base, ranks, step);
      // Ranks of a node race to make, or to remove, the folders they share.
      const bool shares_folders = !step.starts_with("restart");
      EXPECT_LE(cost.file_operations,
                base.file_operations + (shares_folders ? shared_folder_operations : 0))
          << step;
      EXPECT_LE(cost.record_bytes, base.record_bytes) << step;
    }
  }
}

}  // namespace
}  // namespace cairn
