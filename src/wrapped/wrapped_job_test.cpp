// Programs that only open, write and close files, on simulated nodes.
#include "wrapped/wrapped_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(WrappedJob, AStepThatAllRanksHaveClosedSurvivesTheLossOfANode) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "");
    for (int step : {10, 20, 30}) {
      program.write(step);
      program.rounds();
    }
  });
  bed.lose("n1");
  bed.run_program(replaced(four_nodes(), "n1", "spare"), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.30");
    EXPECT_TRUE(program.has(30)) << program.redirected(30);
  });
}

TEST(WrappedJob, AStepThatARankWasWritingIsNotThereAfterwards) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(10);
    program.rounds();
    program.write(20);
    program.rounds();
    const auto open = program.begin(30, program.number() == 5 ? "half" : program.content(30));
    if (program.number() != 5) program.write(30);
    program.rounds();
  });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.20");
    EXPECT_TRUE(program.has(20));
    EXPECT_FALSE(fs::exists(program.redirected(30)));
    EXPECT_FALSE(fs::exists(program.plain(30)));
  });
}

TEST(WrappedJob, WhatIsNoCheckpointGoesToItsPlainPlaceInTheNextRun) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(10);
    program.rounds();
  });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "");
    EXPECT_EQ(read_all(program.plain(10)), program.content(10));
    EXPECT_FALSE(fs::exists(program.redirected(10)));
  });
}

TEST(WrappedJob, AFileThatCannotBeRedirectedSendsTheStepOfAllRanksToThePrefixDirectory) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(10);
    const std::string other = "dump/more.10";
    if (program.number() == 3) program.job().not_redirected(other, program.step_in(other), true);
    program.rounds();
    EXPECT_EQ(read_all(program.plain(10)), program.content(10));
    EXPECT_FALSE(fs::exists(program.redirected(10)));
    program.write(20);
    program.rounds();
    EXPECT_TRUE(program.job().checkpoints().empty());  // rank 3 has one more file in each step
    program.end();
    EXPECT_TRUE(program.has(20));
  });
  EXPECT_TRUE(bed.logs("step.10 cannot become a checkpoint")) << bed.log_text();
}

TEST(WrappedJob, AStepThatIsWrittenAgainHasItsNewBytes) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(10);
    program.write(20);
    program.rounds();
    if (program.number() == 2) program.write(20, "more");
    program.rounds();
  });
  bed.lose("n1");
  bed.run_program(replaced(four_nodes(), "n1", "spare"), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.20");
    EXPECT_TRUE(program.has(20, program.number() == 2 ? "more" : ""));
  });
}

TEST(WrappedJob, AFileThatIsOverwrittenBeforeItsStepIsADatasetIsOfTheNewStepOnly) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.has_one_name = true;
    program.restore();
    program.write(1);
    if (program.number() % 2 == 0) program.rounds();  // the ranks are not in step with the rounds
    program.write(2);
    if (program.number() % 2 == 1) program.rounds();
    program.end();
    EXPECT_TRUE(program.has(2));
  });
  bed.lose("n2");
  bed.run_program(replaced(four_nodes(), "n2", "spare"), [](Program& program) {
    program.has_one_name = true;
    EXPECT_EQ(program.restore(), "step.2");
    EXPECT_TRUE(program.has(2));
  });
}

TEST(WrappedJob, WhereANameComesAgainEachStepButTheFirstIsACheckpoint) {
  const auto write_slowly = [](Program& program, int from, int to) {
    for (int step = from; step <= to; ++step) {
      program.write(step);
      program.rounds();
    }
  };
  WrappedBed bed;
  bed.run_program(four_nodes(), [&](Program& program) {
    program.has_one_name = true;
    EXPECT_EQ(program.restore(), "");
    write_slowly(program, 1, 4);
    EXPECT_EQ(program.job().checkpoints(), (std::set<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(program.job().newest_certain(), 3);
  });
  EXPECT_TRUE(bed.logs("step.1 cannot become a checkpoint")) << bed.log_text();
  EXPECT_FALSE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
  bed.lose("n2");
  bed.run_program(replaced(four_nodes(), "n2", "spare"), [&](Program& program) {
    program.has_one_name = true;
    EXPECT_EQ(program.restore(), "step.4");
    EXPECT_TRUE(program.has(4));
    write_slowly(program, 5, 6);
    EXPECT_EQ(program.job().checkpoints(), std::set<std::int64_t>{6});  // counted on
  });
}

TEST(WrappedJob, AProgramThatOverwritesTooFastIsReportedTwiceUntilAStepIsACheckpoint) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.has_one_name = true;
    program.restore();
    for (int step = 1; step <= 8; ++step) {
      program.write(step);
      if (step == 5) program.rounds();
      program.round();
    }
    EXPECT_EQ(program.job().checkpoints(), std::set<std::int64_t>{5});
  });
  for (const char* step : {"step.1", "step.2", "step.6", "step.7"})
    EXPECT_EQ(bed.logs(std::string(step) + " cannot become a checkpoint"), step[5] != '7')
        << step << bed.log_text();
  EXPECT_FALSE(bed.logs("step.3 cannot")) << bed.log_text();
  EXPECT_FALSE(bed.logs("step.4 cannot")) << bed.log_text();
}

/// A program whose ranks have a second file, whose name repeats too. It has written both, and then
/// the first one again: the first step is overwritten.
struct TwoFiles {
  explicit TwoFiles(Program& its_program) : program(its_program) {
    program.has_one_name = true;
    program.restore();
    const std::string name = fmt::format("ckpt2-{}", program.number());
    path = fs::path(program.redirected(1)).parent_path() / name;
    plain = fs::path(program.plain(1)).parent_path() / name;
    program.write(1);
    write_second("first");
    program.write(2);
    program.rounds();
  }

  void write_second(const std::string& content) {
    fs::remove(path);
    std::ofstream(path) << content;
    program.job().opened(fs::path(path).filename().string(), {}, true);
  }

  Program& program;
  std::string path;   ///< of the second file, in the cache
  std::string plain;  ///< where the program wanted it
};

TEST(WrappedJob, AFileOfAnOverwrittenStepWaitsForTheProgramToWriteItAgain) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    TwoFiles files(program);
    EXPECT_EQ(read_all(files.path), "first");
    files.write_second("second");
    program.rounds();
    program.write(3);
    program.rounds();
    EXPECT_EQ(program.job().newest_certain(), 2);
    EXPECT_EQ(read_all(files.path), "second");
    EXPECT_FALSE(fs::exists(files.plain));
  });
}

TEST(WrappedJob, AFileOfAnOverwrittenStepThatIsNotWrittenAgainGoesToItsPlainPlace) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    const TwoFiles files(program);
    program.end();
    program.job().clean_up();
    EXPECT_TRUE(program.has(2));
    EXPECT_EQ(read_all(files.plain), "first");
    EXPECT_FALSE(fs::exists(files.path));
  });
}

TEST(WrappedJob, CountsStepsInTheNamesOfDatasets) {
  EXPECT_EQ(count_in("step.12"), 12);
  for (const char* name : {"step.0.25", "step.", "step.x", "12", "other.1"})
    EXPECT_FALSE(count_in(name)) << name;
}

TEST(WrappedJob, AFileThatIsOpenedAgainInItsPlainPlaceBeginsNoNewStep) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.has_one_name = true;
    program.restore();
    program.write(1);
    const std::string name = program.name(1);
    if (program.number() == 3) {
      program.job().not_redirected(name, "", false);
      program.job().not_redirected(name, "", false);  // it is opened again, to append
    }
    program.rounds();  // the step is given up
    program.write(2);
    program.end();
    EXPECT_TRUE(program.has(2));
  });
  EXPECT_FALSE(bed.logs("step.2 cannot become a checkpoint")) << bed.log_text();
  bed.run_program(four_nodes(), [](Program& program) { EXPECT_EQ(program.restore(), "step.2"); });
}

/// As the processes of one mount, if they are a rank of several.
TEST(WrappedJob, RepeatedNamesOfSeveralProcessesOfOneRankBecomeNoCheckpointOfAnyRank) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.has_one_name = true;
    program.restore();
    for (int step = 1; step <= 3; ++step) {
      program.write(step);
      program.rounds();
    }
    EXPECT_EQ(program.job().checkpoints(), (std::set<std::int64_t>{2, 3}));
    EXPECT_TRUE(program.job().takes_repeated_names());
    if (program.number() == 2) program.job().not_redirected("other", "", true, 4711);
    program.rounds();
    EXPECT_FALSE(program.job().takes_repeated_names());
    EXPECT_TRUE(program.job().checkpoints().empty());
    EXPECT_EQ(read_all(program.plain(3)), program.content(3));
    for (int step = 4; step <= 6; ++step) {
      program.write(step);
      program.rounds();
      EXPECT_EQ(read_all(program.plain(step)), program.content(step));
    }
    EXPECT_TRUE(program.job().checkpoints().empty());
  });
  EXPECT_TRUE(bed.logs("checkpoint files whose names repeat, such as other")) << bed.log_text();
  bed.run_program(four_nodes(), [](Program& program) { EXPECT_EQ(program.restore(), ""); });
}

TEST(WrappedJob, ALateFileAndItsStepGoToThePrefixDirectory) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    const bool is_late = program.number() == 6;
    if (!is_late) program.write(1);
    if (!is_late) program.write(2);
    program.rounds();  // step 1 is certain
    if (is_late) program.write(1);
    program.rounds();
    if (is_late) program.write(2);
    program.rounds();
    program.end();
    EXPECT_EQ(read_all(program.plain(1)), program.content(1));
    EXPECT_TRUE(program.has(2));
  });
}

/// The ranks hear of one late step in each round, and a later step may be certain before the last.
TEST(WrappedJob, NoFileOfARankThatIsSeveralStepsLateIsLost) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    const bool is_late = program.number() == 3;
    for (const int step : {1, 2, 3, 4, 5}) {
      if (!is_late) program.write(step);
      if (step < 5) program.rounds();
    }
    EXPECT_EQ(program.job().newest_certain(), *number_in("3"));
    for (const int step : {1, 2, 3, 4, 5})
      if (is_late) program.write(step);
    program.rounds();
    for (const int step : {1, 2, 3})
      if (is_late) {
        EXPECT_EQ(read_all(program.plain(step)), program.content(step));
      }
  });
}

TEST(WrappedJob, OnlyTheTwoNewestStepsStay) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    for (int step = 1; step <= 5; ++step) {
      program.write(step);
      program.rounds();
    }
    program.end();
    EXPECT_FALSE(fs::exists(program.redirected(1)));
    EXPECT_FALSE(fs::exists(program.redirected(2)));
    EXPECT_FALSE(fs::exists(program.redirected(3)));
    EXPECT_TRUE(program.has(4));
    EXPECT_TRUE(program.has(5));
  });
  EXPECT_EQ(bed.parts("n0").size(), 4U);
}

TEST(WrappedJob, TheStepOfARestartGoesOnceItIsSuperseded) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    program.end();
  });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.1");
    EXPECT_TRUE(program.has(1));
    for (int step : {2, 3, 4}) {
      program.write(step);
      program.rounds();
    }
    program.end();
    EXPECT_FALSE(fs::exists(program.redirected(1)));
    EXPECT_TRUE(program.has(4));
  });
}

TEST(WrappedJob, AFileThatIsOpenAtTheEndSendsItsStepToThePrefixDirectory) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    std::ofstream open;
    if (program.number() == 2)
      open = program.begin(2, program.content(2));
    else
      program.write(2);
    program.end();
    EXPECT_TRUE(program.has(1));
    if (program.number() == 2) return;
    EXPECT_EQ(read_all(program.plain(2)), program.content(2));
  });
}

TEST(WrappedJob, AFileThatIsGivenUpWhileItIsOpenIsMovedOnceItIsClosed) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    {
      const auto open = program.begin(1, program.content(1));
      const std::string other = "dump/more.1.";
      if (program.number() == 3) program.job().not_redirected(other, program.step_in(other), true);
      program.rounds();
      EXPECT_FALSE(fs::exists(program.plain(1)));
    }
    program.rounds();
    EXPECT_EQ(read_all(program.plain(1)), program.content(1));
  });
}

TEST(WrappedJob, AStepThatCannotBeCopiedToThePrefixDirectoryIsACheckpointAllTheSame) {
  WrappedBed bed;
  bed.settings.prefix = bed.node("missing");
  bed.settings.flush = true;
  bed.settings.flush_interval = 1;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    program.write(1);
    program.end();
    EXPECT_TRUE(program.has(1));
  });
  bed.run_program(four_nodes(), [](Program& program) { EXPECT_EQ(program.restore(), "step.1"); });
}

TEST(WrappedJob, EmptyDirectoriesOfLaterStepsAreRemovedBeforeARestart) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [&bed](Program& program) {
    program.has_directories = true;
    program.restore();
    program.write(1);
    program.end();
    const std::string own = fmt::format("{}/rank{}/", bed.settings.prefix, program.number());
    fs::create_directories(own + "0");
    fs::create_directories(own + "1");
    fs::create_directories(own + "2/uniform");
    fs::create_directories(own + "3");
    std::ofstream(own + "3/mine") << "kept";
  });
  bed.run_program(four_nodes(), [&bed](Program& program) {
    program.has_directories = true;
    EXPECT_EQ(program.restore(), "step.1");
    const std::string own = fmt::format("{}/rank{}/", bed.settings.prefix, program.number());
    EXPECT_TRUE(fs::exists(own + "1")) << "the program's files of its step are in it";
    EXPECT_TRUE(fs::exists(own + "0")) << "it is of an earlier step";
    EXPECT_FALSE(fs::exists(own + "2"));
    EXPECT_TRUE(fs::exists(own + "3/mine"));
  });
}

/// The step 3 that only ranks up to `last`, from `first` on, have in their plain places.
void leave_later_step(WrappedBed& bed, bool has_directories, int first, int last) {
  bed.run_program(four_nodes(), [&](Program& program) {
    program.has_directories = has_directories;
    program.restore();
    program.write(1);
    program.end();
    const std::string later = fmt::format("{}/{}", bed.settings.prefix, program.name(3));
    if (program.number() < first || program.number() > last) return;
    fs::create_directories(fs::path(later).parent_path());
    std::ofstream(later) << "of a job that died";
  });
}

int lines_with(const WrappedBed& bed, const std::string& text) {
  int lines = 0;
  const std::string log = bed.log_text();
  for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1))
    ++lines;
  return lines;
}

/// The first two of eight ranks have files of it, the last two, all, or none.
TEST(WrappedJob, OneLineNamesALaterStepThatIsNotWhole) {
  struct Left {
    int first, last, lacking;
  };
  constexpr int none = -1;
  for (const bool has_directories : {true, false})
    for (const Left left : {Left{0, 1, 2}, Left{6, 7, 0}, Left{0, 7, none}, Left{8, 8, none}}) {
      WrappedBed bed;
      leave_later_step(bed, has_directories, left.first, left.last);
      std::string named;
      bed.run_program(four_nodes(), [&](Program& program) {
        program.has_directories = has_directories;
        EXPECT_EQ(program.restore(), "step.1");
        if (program.number() == left.first) named = "/" + program.name(3) + " is of a later step";
      });
      const bool is_whole = left.lacking == none;
      EXPECT_EQ(lines_with(bed, "is of a later step"), is_whole ? 0 : 1) << bed.log_text();
      if (is_whole) continue;
      EXPECT_TRUE(bed.logs(named)) << bed.log_text();
      const std::string lacking = has_directories ? fmt::format("rank{}/1/field", left.lacking)
                                                  : fmt::format("dump/state.1.{}", left.lacking);
      EXPECT_TRUE(bed.logs("no file in place of " + lacking + ":")) << bed.log_text();
    }
}

TEST(WrappedJob, ALaterStepOfNamesThatNoRankHasIsNotNamed) {
  WrappedBed bed;
  leave_later_step(bed, false, 8, 8);
  std::ofstream(bed.settings.prefix + "/dump/state.3.8") << "of a run with more ranks";
  bed.run_program(four_nodes(), [](Program& program) { EXPECT_EQ(program.restore(), "step.1"); });
  EXPECT_FALSE(bed.logs("is of a later step")) << bed.log_text();
}

/// Of two steps, rank 1 removes its file of `step` again.
void write_two_and_remove(Program& program, int step) {
  program.restore();
  program.write(1);
  program.write(2);
  if (program.number() == 1) {
    fs::remove(program.redirected(step));
    program.job().removed(program.name(step));
  }
  program.end();
}

TEST(WrappedJob, AFileThatIsRemovedAgainIsNotMissed) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) { write_two_and_remove(program, 2); });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.2");
    EXPECT_EQ(program.has(2), program.number() != 1);
  });
}

TEST(WrappedJob, AFileThatIsRemovedWhenTheNextStepHasBegunIsNotMissed) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) { write_two_and_remove(program, 1); });
  EXPECT_FALSE(bed.logs("cannot become a checkpoint")) << bed.log_text();
}

TEST(WrappedJob, ARankMayWriteNothing) {
  WrappedBed bed;
  bed.run_program(four_nodes(), [](Program& program) {
    program.restore();
    for (int step : {1, 2}) {
      if (program.number() != 4) program.write(step);
      program.rounds();
    }
    program.end();
  });
  bed.run_program(four_nodes(), [](Program& program) {
    EXPECT_EQ(program.restore(), "step.2");
    EXPECT_EQ(program.has(2), program.number() != 4);
  });
}

TEST(WrappedJob, ADatasetHasTheNumberOfItsStepAsItsName) {
  EXPECT_EQ(dataset_name(7), "step.7");
  for (const char* number : {"1000", "0.25", "3"})
    EXPECT_EQ(dataset_name(*number_in(number)), std::string("step.") + number);
}

}  // namespace
}  // namespace cairn
