// Whole processes of a wrapped program, as threads: real messages, real files.
#include "wrapped/wrapped_process.hpp"

#include <atomic>
#include <fstream>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// A program of one file for each rank and step, which waits for no call of Cairn.
class LiveBed : public JobBed {
 public:
  LiveBed() {
    settings.prefix = node("pfs");
    std::filesystem::create_directories(settings.prefix);
    settings.stores[0].count = 2;
    settings.checkpoints[0].set_size = 8;
  }

  struct Rank {
    int number;
    std::string redirected;
    WrappedProcess* process;

    std::string path(int step) const { return fmt::format("{}/s.{}.{}", redirected, step, number); }
    std::string content(int step) const {
      return fmt::format("{} of {} ", step, number) + std::string(5000, 'y');
    }
    void write(int step) const {
      std::filesystem::remove(path(step));
      std::ofstream out(path(step));
      out << content(step);
      const std::string name = name_of_path(path(step));
      const std::string text = std::to_string(step);
      process->job().opened(name, std::string_view(name).substr(2, text.size()), true);
    }
  };

  void run_program(const Nodes& nodes, const std::function<void(Rank&, Communicator&)>& main) {
    Team(static_cast<int>(nodes.size())).run([&](Communicator& world) {
      ResolvedSettings resolved;
      resolved.settings = settings;
      resolved.settings.node_name = nodes[static_cast<std::size_t>(world.rank())];
      Rank rank{world.rank(), node(resolved.settings.node_name) + "/redirected", nullptr};
      WrappedProcess::Options options;
      options.redirected = rank.redirected;
      options.move_to_plain_place = [](const std::string&) { return Status{}; };
      options.find_step = [](std::string_view) { return std::string_view(); };
      options.pause = std::chrono::milliseconds(2);
      auto process = WrappedProcess::start(world, log(), resolved, options);
      rank.process = process.get();
      if (process) main(rank, world);
      if (rank.process != nullptr) process->finish();
    });
  }
};

const Nodes one_each = {"n0", "n1", "n2", "n3"};

TEST(WrappedProcess, TheNewestStepSurvivesTheLossOfANode) {
  LiveBed bed;
  bed.run_program(one_each, [](LiveBed::Rank& rank, Communicator&) {
    for (int step : {1, 2, 3}) rank.write(step);
  });
  EXPECT_FALSE(std::filesystem::exists(bed.node("n0") + "/redirected/s.1.0"));
  bed.lose("n2");
  bed.run_program({"n0", "n1", "spare", "n3"}, [](LiveBed::Rank& rank, Communicator&) {
    EXPECT_EQ(read_all(rank.path(3)), rank.content(3));
  });
  EXPECT_TRUE(bed.logs("finds step.3")) << bed.log_text();
}

TEST(WrappedProcess, ARankThatEndsBeforeTheOthersDoesNotHoldThemUp) {
  LiveBed bed;
  bed.run_program(one_each, [](LiveBed::Rank& rank, Communicator& world) {
    rank.write(1);
    world.barrier();
    if (rank.number == 1) rank.process->job().ended();
    if (rank.number != 1) rank.write(2);
    world.barrier();
  });
  bed.run_program(one_each, [](LiveBed::Rank& rank, Communicator&) {
    if (rank.number == 1) return;
    EXPECT_EQ(read_all(rank.path(2)), rank.content(2));
  });
  EXPECT_TRUE(bed.logs("finds step.2")) << bed.log_text();
}

TEST(WrappedProcess, ARankThatHasMissedACallOfTheProgramEndsTheCheckpointsOfAllRanks) {
  LiveBed bed;
  bed.run_program(one_each, [](LiveBed::Rank& rank, Communicator& world) {
    rank.write(1);
    world.barrier();
    if (rank.number == 1) rank.process->job().missed();
    world.barrier();
    for (int step : {2, 3}) rank.write(step);
  });
  EXPECT_TRUE(bed.logs("there is no memory for the names")) << bed.log_text();
  bed.run_program(one_each, [](LiveBed::Rank&, Communicator&) {});
  EXPECT_FALSE(bed.logs("finds step")) << bed.log_text();
}

TEST(WrappedProcess, ACacheOnAnotherFileSystemThanTheStoreIsRefused) {
  LiveBed bed;
  bed.settings.stores[0].path = "/proc";
  bool has_run = false;
  bed.run_program({"n0", "n1"}, [&](LiveBed::Rank&, Communicator&) { has_run = true; });
  EXPECT_FALSE(has_run);
  EXPECT_TRUE(bed.logs("different file systems")) << bed.log_text();
}

TEST(WrappedProcess, AStoreThatWillBeMadeOnAnotherFileSystemIsRefused) {
  for (const bool is_behind_link : {false, true}) {
    LiveBed bed;
    std::filesystem::create_directories(bed.node("links"));
    std::filesystem::create_symlink("/proc", bed.node("links") + "/elsewhere");
    bed.settings.stores[0].path =
        is_behind_link ? bed.node("links/elsewhere/none") : "/proc/none/deeper";
    bool has_run = false;
    bed.run_program({"n0", "n1"}, [&](LiveBed::Rank&, Communicator&) { has_run = true; });
    EXPECT_FALSE(has_run);
    EXPECT_TRUE(bed.logs("different file systems")) << bed.log_text();
  }
}

TEST(WrappedProcess, AProcessThatEndsWithoutFinalizeIsReportedByTheOthers) {
  LiveBed bed;
  std::atomic<int> lost = 0;
  Team(3).run([&](Communicator& world) {
    ResolvedSettings resolved;
    resolved.settings = bed.settings;
    resolved.settings.node_name = one_each[static_cast<std::size_t>(world.rank())];
    WrappedProcess::Options options;
    options.find_step = [](std::string_view) { return std::string_view(); };
    options.job_lost = [&] { ++lost; };
    options.redirected = bed.node(resolved.settings.node_name) + "/redirected";
    options.pause = std::chrono::milliseconds(2);
    auto process = WrappedProcess::start(world, bed.log(), resolved, options);
    ASSERT_TRUE(process);
    if (world.rank() == 2) return process->leave();
    EXPECT_TRUE(process->finish()) << "it has left, so all that it has written is there";
  });
  EXPECT_TRUE(bed.logs("no step becomes a checkpoint any more")) << bed.log_text();
  EXPECT_EQ(lost, 2);
}

}  // namespace
}  // namespace cairn
