// Changes of files while the job looks at them, or makes a dataset of them: the calls of the
// program come at the worst moment.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <latch>
#include <thread>

#include "files/passing_files.hpp"
#include "support/safety_bed.hpp"
#include "wrapped/wrapped_fixture.hpp"

namespace cairn {
namespace {

/// Calls functions of the test beside those of the job.
class WatchedFiles : public PassingFiles {
 public:
  WatchedFiles() : PassingFiles(make_posix_files()) {}

  std::function<void(const std::string& from)> after_link = [](const std::string&) {};
  std::function<void()> before_look = [] {};

  Status link(const std::string& from, const std::string& to) override {
    const Status linked = PassingFiles::link(from, to);
    after_link(from);
    return linked;
  }
  Result<Writer> find_writer(const std::string& path) override {
    before_look();
    return PassingFiles::find_writer(path);
  }
};

/// A program on four nodes whose ranks have such files.
void run_watched(WrappedBed& bed, const std::function<void(Program&, WatchedFiles&)>& main) {
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    WatchedFiles files;
    Program program(bed, rank, &files);
    main(program, files);
  });
}

void announce_change(Program& program, int step) {
  const std::string name = program.name(step);
  program.job().changes(name, Program::step_in(name), false);
}

bool is_in_dataset(const Program& program, int step) {
  return std::filesystem::hard_link_count(program.redirected(step)) > 1;
}

/// Steps 1 and 2, and what rank 2 does when its file of step 2 has been linked.
void write_two_steps(Program& program, WatchedFiles& files,
                     const std::function<void(const std::string& file)>& once_linked) {
  program.restore();
  program.write(1);
  program.rounds();
  program.write(2);
  files.after_link = [&program, once_linked](const std::string& from) {
    if (program.number() == 2 && from == program.redirected(2)) once_linked(from);
  };
  program.rounds();
}

TEST(WrappedChanges, AFileThatIsAboutToBeChangedCountsAsOpen) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    program.write(2);
    if (program.number() == 2) announce_change(program, 2);
    program.rounds();
    EXPECT_FALSE(is_in_dataset(program, 2));
    if (program.number() == 2) program.job().changed(program.name(2));
    program.rounds();
    EXPECT_TRUE(is_in_dataset(program, 2));
  });
}

TEST(WrappedChanges, AFileThatTwoThreadsAreAboutToChangeCountsAsOpenUntilBothHave) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    program.write(2);
    if (program.number() == 2) {
      for (int thread = 0; thread < 2; ++thread) announce_change(program, 2);
      program.job().changed(program.name(2));
    }
    program.rounds();
    EXPECT_FALSE(is_in_dataset(program, 2));
    if (program.number() == 2) program.job().changed(program.name(2));
    program.rounds();
    EXPECT_TRUE(is_in_dataset(program, 2));
  });
}

TEST(WrappedChanges, AStepIsNoDatasetIfAFileOfItIsOpenedWhileItIsMade) {
  WrappedBed bed;
  run_watched(bed, [](Program& program, WatchedFiles& files) {
    write_two_steps(program, files, [&](const std::string&) {
      announce_change(program, 2);
      program.job().changed(program.name(2));
    });
    program.rounds();
    if (program.number() == 2) {
      EXPECT_EQ(read_all(program.plain(2)), program.content(2));
    }
  });
  EXPECT_FALSE(bed.logs("no rank wrote a file")) << bed.log_text();
  EXPECT_TRUE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
  EXPECT_FALSE(bed.logs("step.2 is no checkpoint any more")) << bed.log_text();
}

/// The program renames a temporary file to the name while its step is given up.
TEST(WrappedChanges, AFileThatIsRenamedWhileItsStepIsGivenUpComesToItsPlainPlace) {
  WrappedBed bed;
  run_watched(bed, [](Program& program, WatchedFiles& files) {
    const std::string temporary = program.redirected(2) + ".tmp";
    write_two_steps(program, files, [&](const std::string& file) {
      std::filesystem::rename(file, temporary);
      announce_change(program, 2);
    });
    if (program.number() == 2) {
      std::filesystem::rename(temporary, program.redirected(2));
      program.job().changed(program.name(2));
    }
    program.rounds();
    EXPECT_EQ(read_all(program.plain(2)), program.content(2));
  });
  EXPECT_TRUE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
}

/// Another rank, or a child, whose calls this rank does not see.
TEST(WrappedChanges, AStepIsNoDatasetIfAnotherProcessHasAFileOfItOpen) {
  WrappedBed bed;
  run_watched(bed, [](Program& program, WatchedFiles& files) {
    std::fstream open;
    write_two_steps(program, files, [&](const std::string& file) { open.open(file); });
    open.close();
    program.rounds();
    if (program.number() == 2) {
      EXPECT_EQ(read_all(program.plain(2)), program.content(2));
    }
  });
  EXPECT_TRUE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
}

TEST(WrappedChanges, ANewRunThatChangesOneFileOfItsStepKeepsTheOthers) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    program.end();
  });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.1");
    if (program.number() == 2) program.write(1, "more");
    program.rounds();
    const auto open = program.begin(2, "half");
    program.rounds();
  });
  EXPECT_FALSE(bed.logs("cannot become a checkpoint")) << bed.log_text();
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.1.again");
    EXPECT_TRUE(program.has(1, program.number() == 2 ? "more" : "")) << program.redirected(1);
  });
}

/// As the preloaded library does it: the name gets a file of its own.
std::fstream open_for_update(Program& program, int step) {
  announce_change(program, step);
  const std::string path = program.redirected(step);
  std::filesystem::copy_file(path, path + ".own");
  std::filesystem::rename(path + ".own", path);
  std::fstream file(path);
  program.job().changed(program.name(step));
  return file;
}

std::set<std::int64_t> steps(std::initializer_list<int> numbers) {
  std::set<std::int64_t> all;
  for (const int number : numbers) all.insert(*number_in(std::to_string(number)));
  return all;
}

void write_two_steps(Program& program) {
  program.restore();
  for (int step : {1, 2}) {
    program.write(step);
    program.rounds();
  }
}

// Writes do not pass through the library, so that the file is open is all that it knows.
TEST(WrappedChanges, AFileThatIsOnlyOpenedForWritingWithdrawsItsStepUntilItIsClosed) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    write_two_steps(program);
    EXPECT_EQ(program.job().checkpoints(), steps({1, 2}));
    {
      std::fstream open;
      if (program.number() == 2) open = open_for_update(program, 2);
      program.rounds();
      EXPECT_EQ(program.job().checkpoints(), steps({1}));
    }
    program.rounds();
    EXPECT_EQ(program.job().checkpoints(), steps({1, 2}));
    EXPECT_TRUE(program.has(2));
  });
}

TEST(WrappedChanges, AFileOfACertainStepThatIsOpenedForWritingSendsTheStepToThePrefixDirectory) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    write_two_steps(program);
    EXPECT_EQ(program.job().newest_certain(), *steps({1}).begin());
    if (program.number() == 2) open_for_update(program, 1);
    program.rounds();
    EXPECT_EQ(program.job().checkpoints(), steps({2}));
    EXPECT_FALSE(program.job().newest_certain());
    EXPECT_EQ(read_all(program.plain(1)), program.content(1));
  });
}

/// Of the step from which the program has started: it writes that again, and opens it once more
/// when the ranks are in the next one. The step is given up, and the run dies.
TEST(WrappedChanges, TheCheckpointFromWhichTheProgramStartedOutlivesItsStepThatIsWrittenAgain) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    write_two_steps(program);
    program.end();
  });
  for (const char* const more : {"again", "and again"}) {
    SCOPED_TRACE(more);
    bed.run_program(four_nodes(), [&](Program& program) {
      EXPECT_EQ(program.restore(), "step.2");
      EXPECT_TRUE(program.has(2));
      program.write(2, more);
      const std::ofstream next = program.begin(3, program.content(3));
      program.rounds();
      EXPECT_EQ(program.job().checkpoints(), steps({2}));
      EXPECT_EQ(program.job().newest_certain(), *steps({2}).begin());
      if (program.number() == 2) open_for_update(program, 2);
      program.rounds();
      EXPECT_EQ(program.job().checkpoints(), steps({}));
    });
  }
  bed.run_program(four_nodes(), [](Program& program) { EXPECT_EQ(program.restore(), "step.2"); });
}

TEST(WrappedChanges, AStepThatIsWrittenAgainAfterARestartIsTheNewestCheckpoint) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    write_two_steps(program);
    program.end();
  });
  const std::vector<std::string> names = {"step.2", "step.2.again", "step.2"};
  for (std::size_t run = 0; run < names.size(); ++run)
    bed.run_program(four_nodes(), [&](Program& program) {
      EXPECT_EQ(program.restore(), names[run]);
      EXPECT_TRUE(program.has(2, std::string(run, '+')));
      program.write(2, std::string(run + 1, '+'));
      program.end();
    });
}

/// The round of the job looks at the open file, and waits there until the program has ended.
TEST(WrappedChanges, TheEndOfTheProgramSeesAnOpenFileThatTheJobLooksAt) {
  WrappedBed bed;
  run_watched(bed, [](Program& program, WatchedFiles& files) {
    program.restore();
    program.write(1);
    program.rounds();
    std::ofstream open;
    if (program.number() == 2)
      open = program.begin(2, program.content(2));
    else
      program.write(2);
    std::latch is_looking(1);
    std::latch has_ended(1);
    std::atomic<bool> is_first = true;
    std::thread program_thread;
    if (program.number() == 2) {
      files.before_look = [&] {
        if (!is_first.exchange(false)) return;
        is_looking.count_down();
        has_ended.wait();
      };
      program_thread = std::thread([&] {
        is_looking.wait();
        program.job().ended();
        has_ended.count_down();
      });
    } else {
      program.job().ended();
    }
    constexpr int rounds_most = 30;
    for (int i = 0; i < rounds_most && !program.round(); ++i) {
    }
    if (program_thread.joinable()) program_thread.join();
  });
  EXPECT_TRUE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
}

/// The Complete of step 3 returns that step 1 is lost.
TEST(WrappedChanges, TheLossOfAnEarlierStepCostsNoOther) {
  WrappedBed bed;
  bed.settings.flush = bed.settings.flush_async = true;
  bed.settings.flush_interval = 1;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.settings.stores[0].count = 9;
  Gate gate;
  std::atomic<bool> is_shut = false;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool logs = operation.path.ends_with("/log.json") || operation.path.ends_with("/log");
      if (is_shut && operation.path.starts_with(bed.settings.prefix) && !logs) gate.pass();
      return {};
    };
    ASSERT_TRUE(rank.init());
    Program program(bed, rank);
    program.restore();
    rank.comm.barrier();
    is_shut = true;
    for (const int step : {1, 2}) {
      program.write(step);
      program.rounds();
    }
    rank.comm.barrier();
    if (rank.number() == 0) {
      for (const std::string& part : bed.parts("n1", 1))
        for (const auto& file : std::filesystem::recursive_directory_iterator(part))
          if (file.path().filename().string().starts_with("state")) flip_bit(file.path());
      gate.open();
    }
    sleep_ms(300);  // without it the loss may be found later
    rank.comm.barrier();
    program.write(3);
    program.rounds();
    program.end();
    (void)rank.session->finalize();
  }));
  EXPECT_TRUE(bed.logs("is lost")) << bed.log_text();
  EXPECT_FALSE(bed.logs("cannot become a checkpoint")) << bed.log_text();
}

/// The copy to the prefix directory finds it, before the Complete of the step returns.
TEST(WrappedChanges, AStepThatIsLostInItsOwnCompleteGoesToThePrefixDirectory) {
  WrappedBed bed;
  bed.settings.flush = true;
  bed.settings.flush_interval = 1;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    const bool is_damaged = program.number() == 2;
    if (is_damaged) program.once_committed([&] { flip_bit(program.redirected(1)); });
    program.end();
    EXPECT_EQ(program.job().checkpoints(), steps({}));
    EXPECT_FALSE(std::filesystem::exists(program.redirected(1)));
    ASSERT_TRUE(std::filesystem::exists(program.plain(1)));
    EXPECT_EQ(read_all(program.plain(1)) == program.content(1), !is_damaged);
  });
  EXPECT_TRUE(bed.logs("(step.1) is lost")) << bed.log_text();
  EXPECT_TRUE(bed.logs("step.1 cannot become a checkpoint")) << bed.log_text();
}

}  // namespace
}  // namespace cairn
