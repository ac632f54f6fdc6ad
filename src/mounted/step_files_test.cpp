// Where the files of a mount lie, call by call, and what the job learns of them. tests/crfs has the
// same through a mount.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "crfs/backing_descriptor.hpp"
#include "files/idle_child.hpp"
#include "mounted/step_files_fixture.hpp"

namespace cairn {
namespace {

TEST(StepFiles, ANewFileThatAPatternMatchesLiesInTheCache) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "new");
    EXPECT_EQ(read_all(mounted.in_cache(part)), "new");
    EXPECT_FALSE(fs::exists(mounted.plain(part)));
    EXPECT_GE(mounted.files().find(part).number(), 0);
    EXPECT_TRUE(mounted.files().has_files_below("step.1"));
    ASSERT_EQ(mounted.files().files_in("step.1").size(), 1U);
    EXPECT_EQ(mounted.files().files_in("step.1")[0].name, "part.0");
    EXPECT_FALSE(mounted.create("other"));
    EXPECT_LT(mounted.files().find("other").number(), 0);
    const Descriptor file(::open(mounted.in_cache(part).c_str(), O_PATH));
    EXPECT_TRUE(mounted.files().hides_names(file));
  });
}

TEST(StepFiles, AFileThatIsThereIsNotCreatedAgain) {
  on_a_node([](MountedFiles& mounted) {
    put(mounted.plain(part), "old");
    const auto file = mounted.create(part);
    EXPECT_TRUE(file && file->number() < 0 && errno == EEXIST);
    mounted.write("step.1/part.1", "new");
    const auto again = mounted.create("step.1/part.1");
    EXPECT_TRUE(again && again->number() < 0 && errno == EEXIST);
  });
}

TEST(StepFiles, AFileOfTheBackingDirectoryComesToTheCacheWhenItIsEmptied) {
  on_a_node([](MountedFiles& mounted) {
    put(mounted.plain(part), "old");
    EXPECT_EQ(mounted.admit(mounted.plain(part), O_RDONLY), 0);
    EXPECT_EQ(mounted.admit(mounted.plain(part), O_WRONLY | O_APPEND), 0);
    EXPECT_FALSE(fs::exists(mounted.in_cache(part)));
    EXPECT_EQ(mounted.admit(mounted.plain(part), writes_over), ESTALE);
    EXPECT_EQ(read_all(mounted.in_cache(part)), "");
    EXPECT_EQ(read_all(mounted.plain(part)), "old");
  });
}

TEST(StepFiles, AfterTheJobIsLostFilesOfNewStepsGoToTheBackingDirectory) {
  on_a_node([](MountedFiles& mounted) {
    EXPECT_TRUE(mounted.create(part));
    mounted.files().take_no_new_steps();
    EXPECT_TRUE(mounted.create("step.1/part.2") && !mounted.create("step.7/part.1"));
    put(mounted.plain("step.7/part.1"), "old");
    EXPECT_EQ(mounted.admit(mounted.plain("step.7/part.1"), writes_over), 0);
  });
}

TEST(StepFiles, ACheckpointKeepsAFileThatAProgramChanges) {
  on_a_node([](MountedFiles& mounted) {
    for (const int flags : {O_WRONLY, writes_over}) {
      const std::string name = flags == O_WRONLY ? part : "step.1/part.1";
      mounted.write(name, "whole");
      const std::string kept = mounted.in_cache("../kept") + std::to_string(flags);
      fs::create_hard_link(mounted.in_cache(name), kept);
      EXPECT_EQ(mounted.admit(mounted.in_cache(name), O_RDONLY), 0);
      EXPECT_EQ(mounted.admit(mounted.in_cache(name), flags), ESTALE);
      EXPECT_FALSE(fs::equivalent(mounted.in_cache(name), kept));
      EXPECT_EQ(read_all(mounted.in_cache(name)), flags == O_WRONLY ? "whole" : "");
      EXPECT_EQ(read_all(kept), "whole");
      EXPECT_EQ(mounted.admit(mounted.in_cache(name), flags), 0);
      EXPECT_EQ(mounted.admit(kept, flags), 0);  // not below the cache's files
    }
  });
}

TEST(StepFiles, AFileThatHasLostItsNameIsLookedUpAgain) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "first");
    const Descriptor file(::open(mounted.in_cache(part).c_str(), O_PATH));
    fs::remove(mounted.in_cache(part));
    std::unique_ptr<Redirection::Change> change;
    EXPECT_EQ(mounted.files().admit(file, O_WRONLY, mounted.caller, change), ESTALE);
    EXPECT_FALSE(change);
    mounted.write(part, "second");
    EXPECT_EQ(mounted.files().admit(file, O_WRONLY, mounted.caller, change), ESTALE);
    const std::string other = "step.1/part.1";
    put(mounted.plain(other), "first");
    const Descriptor plain(::open(mounted.plain(other).c_str(), O_PATH));
    fs::remove(mounted.plain(other));
    EXPECT_EQ(mounted.files().admit(plain, O_WRONLY, mounted.caller, change), ESTALE);
  });
}

TEST(StepFiles, AFileFollowsItsNameIntoTheCacheAndOutOfIt) {
  on_a_node([](MountedFiles& mounted) {
    put(mounted.plain("other"), "content");
    EXPECT_EQ(mounted.rename("other", part), 0);
    EXPECT_EQ(read_all(mounted.in_cache(part)), "content");
    EXPECT_FALSE(fs::exists(mounted.plain("other")));
    mounted.write("step.1/part.1", "there");
    EXPECT_EQ(mounted.rename(part, "step.1/part.1", RENAME_NOREPLACE), EEXIST);
    EXPECT_EQ(mounted.rename(part, "step.1/part.1"), 0);
    EXPECT_EQ(read_all(mounted.in_cache("step.1/part.1")), "content");
    put(mounted.plain("step.1/part.1"), "hidden");
    EXPECT_EQ(mounted.rename("step.1/part.1", "out"), 0);
    EXPECT_EQ(read_all(mounted.plain("out")), "content");
    EXPECT_FALSE(fs::exists(mounted.in_cache("step.1/part.1")));
    EXPECT_FALSE(fs::exists(mounted.plain("step.1/part.1")));
    EXPECT_FALSE(mounted.rename("out", "elsewhere"));  // is the caller's
  });
}

/// It cannot go to the cache, as its writer would lose what it writes from now on.
TEST(StepFiles, AFileThatIsRenamedWhileItIsWrittenCountsAsOneStep) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write_over("again", "1");
    mounted.rounds();
    put(mounted.plain("other"), "2");
    {
      std::ofstream writer(mounted.plain("other"), std::ios::app);
      EXPECT_EQ(mounted.rename("other", "again"), 0);
      writer << "+";
    }
    EXPECT_EQ(read_all(mounted.plain("again")), "2+");
    EXPECT_FALSE(fs::exists(mounted.in_cache("again")));
    mounted.rounds();
    for (const char* step : {"3", "4"}) {
      mounted.write_over("again", step);
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{3, 4}));
  });
}

/// As a program that tries again until it succeeds, and the kernel, do it.
void empty(MountedFiles& mounted, const std::string& name) {
  while (true) {
    const Descriptor redirected = mounted.files().find(name);
    const Descriptor plain(::open(mounted.plain(name).c_str(), O_PATH));
    const Descriptor& file = redirected.number() < 0 ? plain : redirected;
    std::unique_ptr<Redirection::Change> change;
    const int flags = MountedFiles::writes_over;
    if (file.number() < 0 || mounted.files().admit(file, flags, mounted.caller, change) != 0)
      continue;
    std::ofstream(name_in_proc(file), std::ios::trunc).close();
    return;
  }
}

TEST(StepFiles, AFileThatLeavesTheCacheWhileItIsEmptiedCountsAsOneStep) {
  on_a_node([](MountedFiles& mounted) {
    constexpr int times = 300;
    mounted.write("again", "1");
    for (int i = 0; i < times; ++i) {
      std::atomic<bool> begins = false;
      std::thread mover([&] {
        while (!begins) continue;
        (void)mounted.files().move_to_plain_place("again");
      });
      begins = true;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(i / 2);
      while (std::chrono::steady_clock::now() < until) continue;
      empty(mounted, "again");
      mover.join();
      mounted.rounds();
    }
    for (const char* step : {"2", "3"}) {
      mounted.write_over("again", step);
      mounted.rounds();
    }
    ASSERT_FALSE(mounted.job().checkpoints().empty());
    EXPECT_EQ(*mounted.job().checkpoints().rbegin(), 1 + times + 2);
  });
}

TEST(StepFiles, AStepWithALinkOrAPipeBecomesNoCheckpoint) {
  on_a_node([](MountedFiles& mounted) {
    const auto made = [&](const std::string& name) {
      mounted.at(name, [&](const MountedName& named) {
        mounted.files().made(named);
        return 0;
      });
    };
    for (const std::string step : {"step.1/", "step.2/", "step.3/"})
      mounted.write(step + "part.0", "content");
    fs::create_directories(mounted.plain("step.1/part.1"));
    made("step.1/part.1");
    fs::create_symlink("part.0", mounted.plain("step.1/other"));
    made("step.1/other");
    mounted.directory_of("step.2/part.1");
    fs::create_symlink("part.0", mounted.plain("step.2/part.1"));
    made("step.2/part.1");
    mounted.directory_of("step.3/part.1");
    ASSERT_EQ(::mkfifo(mounted.plain("step.3/part.1").c_str(), 0600), 0);
    made("step.3/part.1");
    for (const std::string step : {"step.4/", "step.5/"}) {
      mounted.write(step + "part.0", "content");
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), step_numbers({"1", "4", "5"}));
  });
}

TEST(StepFiles, ARenamedDirectoryTakesItsFilesAlong) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write("step.1/part.0", "content");
    const auto rename_directory = [&](const std::string& from, const std::string& to) {
      EXPECT_FALSE(mounted.rename(from, to));
      fs::rename(mounted.plain(from), mounted.plain(to));
      mounted.at(from, [&](const MountedName& old_name) {
        mounted.at(to, [&](const MountedName& new_name) {
          mounted.files().renamed(old_name, new_name);
          return 0;
        });
        return 0;
      });
    };
    rename_directory("step.1", "step.2");
    EXPECT_EQ(read_all(mounted.in_cache("step.2/part.0")), "content");
    EXPECT_FALSE(fs::exists(mounted.in_cache("step.1")));
    rename_directory("step.2", "saved");  // no pattern matches
    EXPECT_EQ(read_all(mounted.plain("saved/part.0")), "content");
    EXPECT_FALSE(mounted.files().has_files_below(""));
  });
}

TEST(StepFiles, ARemovedFileUncoversNoOlderOne) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "new");
    put(mounted.plain(part), "hidden");
    EXPECT_EQ(mounted.remove(part), 0);
    EXPECT_FALSE(fs::exists(mounted.in_cache(part)));
    EXPECT_FALSE(fs::exists(mounted.plain(part)));
    EXPECT_EQ(mounted.remove(part), ENOENT);
  });
}

TEST(StepFiles, AFileThatIsOpenStaysInTheCache) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "content");
    {
      std::ofstream open(mounted.in_cache(part), std::ios::app);
      EXPECT_EQ(mounted.files().move_to_plain_place(part), EBUSY);
      EXPECT_EQ(mounted.files().set_aside(), 1);
      open << ", more";
    }
    EXPECT_EQ(mounted.files().move_to_plain_place(part), ENOENT);
    EXPECT_EQ(mounted.files().settle_set_aside(), "");
    EXPECT_EQ(read_all(mounted.plain(part)), "content, more");
  });
}

TEST(StepFiles, AHardLinkMovesTheFileToTheBackingDirectory) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "content");
    const Descriptor file(::open(mounted.in_cache(part).c_str(), O_PATH));
    const auto linked = mounted.at(
        "second", [&](const MountedName& named) { return mounted.files().link(file, named); });
    EXPECT_EQ(linked, 0);
    EXPECT_TRUE(fs::equivalent(mounted.plain(part), mounted.plain("second")));
    EXPECT_FALSE(fs::exists(mounted.in_cache(part)));
  });
}

// --- what the job learns ---

TEST(StepFiles, AStepOfClosedFilesIsACheckpointOnceTheNextOneBegins) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write("step.1/part.0", "content");
    mounted.rounds();
    EXPECT_TRUE(mounted.job().checkpoints().empty());
    mounted.write("step.2/part.0", "content");
    mounted.rounds();
    EXPECT_EQ(mounted.job().checkpoints(), step_numbers({"1", "2"}));
  });
}

TEST(StepFiles, AFileThatIsRenamedInTheCacheIsInTheCheckpointByItsLastName) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write("step.1/part.0.tmp", "content");
    EXPECT_EQ(mounted.rename("step.1/part.0.tmp", part), 0);
    mounted.write("step.2/part.0", "content");
    mounted.rounds();
    EXPECT_TRUE(mounted.job().checkpoints().contains(*number_in("1")));
    EXPECT_EQ(fs::hard_link_count(mounted.in_cache(part)), 2u);
  });
}

TEST(StepFiles, AStepWithAHardLinkBecomesNoCheckpoint) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write(part, "content");
    put(mounted.plain("other"), "content");
    const Descriptor file(::open(mounted.plain("other").c_str(), O_PATH));
    const auto linked = mounted.at("step.1/part.1", [&](const MountedName& named) {
      return mounted.files().link(file, named);
    });
    EXPECT_FALSE(linked) << "the mount makes the link itself";
    mounted.write("step.2/part.0", "content");
    mounted.rounds();
    EXPECT_FALSE(mounted.job().checkpoints().contains(*number_in("1")));
  });
}

TEST(StepFiles, AFileThatLeavesTheCacheTakesItsStepWithIt) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write("step.1/part.0", "content");
    mounted.write("step.1/part.1", "content");
    EXPECT_EQ(mounted.rename("step.1/part.0", "out"), 0);
    mounted.rounds();  // the step is given up at once
    EXPECT_EQ(read_all(mounted.plain("step.1/part.1")), "content");
    mounted.write("step.2/part.0", "content");
    mounted.write("step.2/part.1", "content");
    mounted.rounds();
    EXPECT_EQ(mounted.job().checkpoints(), step_numbers({"2"}));
  });
}

TEST(StepFiles, AFileThatIsEmptiedAgainBeginsAStepOnce) {
  on_a_node([](MountedFiles& mounted) {
    mounted.write("again", "1");
    mounted.rounds();
    for (int step = 2; step <= 4; ++step) {
      mounted.write_over("again", std::to_string(step));
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{2, 3, 4}));
  });
}

// --- several processes ---

constexpr const char* first_name = "1/again";
constexpr const char* second_name = "2/again";
constexpr const char* several = "several processes write checkpoint files whose names repeat";

void write_as(MountedFiles& mounted, pid_t process, const std::string& name,
              const std::string& content) {
  mounted.caller = process;
  mounted.write_over(name, content);
}

TEST(StepFiles, NamesThatSeveralProcessesRepeatStayInTheirPlaces) {
  WrappedBed bed;
  on_a_node(bed, [&](MountedFiles& mounted) {
    const IdleChild other;
    const pid_t me = mounted.caller;
    write_as(mounted, me, first_name, "1");
    mounted.rounds();
    write_as(mounted, other.id(), second_name, "1");
    mounted.rounds();
    EXPECT_FALSE(bed.logs(several)) << bed.log_text();
    for (const char* step : {"2", "3", "4"}) {
      write_as(mounted, me, first_name, step);
      mounted.rounds();
      EXPECT_EQ(read_all(mounted.plain(first_name)), step);
      EXPECT_FALSE(fs::exists(mounted.in_cache(first_name)));
      write_as(mounted, other.id(), second_name, step);
      mounted.rounds();
      EXPECT_EQ(read_all(mounted.plain(second_name)), step);
      EXPECT_TRUE(mounted.job().checkpoints().empty());
    }
    EXPECT_FALSE(mounted.create("3/again"));
  });
  EXPECT_EQ(bed.log_text().find(several), bed.log_text().rfind(several)) << bed.log_text();
  EXPECT_TRUE(bed.logs(several)) << bed.log_text();
  EXPECT_FALSE(bed.logs("cannot become a checkpoint")) << bed.log_text();
}

/// The first one has made checkpoints before the second one writes at all. None of them may hide
/// newer files from the next job.
TEST(StepFiles, AProcessThatComesLateLeavesNoCheckpointOfRepeatedNames) {
  WrappedBed bed;
  on_a_node(bed, [&](MountedFiles& mounted) {
    for (const char* step : {"1", "2", "3"}) {
      mounted.write_over(first_name, step);
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{2, 3}));
  });
  on_a_node(bed, [&](MountedFiles& mounted) {
    EXPECT_EQ(read_all(mounted.in_cache(first_name)), "3");
    for (const std::string step : {"4", "5", "6", "7"}) {
      mounted.write_over(first_name, step);
      if (step != "7") mounted.write_over("3/again", step);
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{5, 6}));
    const IdleChild other;
    write_as(mounted, other.id(), second_name, "4");
    mounted.rounds();
    EXPECT_TRUE(mounted.job().checkpoints().empty());
    EXPECT_EQ(read_all(mounted.plain(first_name)), "7");
    EXPECT_EQ(read_all(mounted.plain(second_name)), "4");
    EXPECT_EQ(read_all(mounted.plain("3/again")), "6");
  });
  on_a_node(bed, [&](MountedFiles& mounted) {
    for (const char* name : {first_name, second_name})
      EXPECT_FALSE(fs::exists(mounted.in_cache(name))) << name;
    EXPECT_EQ(read_all(mounted.plain(first_name)), "7");
  });
}

TEST(StepFiles, AProgramThatIsStartedAgainOnTheMountKeepsItsCheckpoints) {
  on_a_node([](MountedFiles& mounted) {
    IdleChild crashed;
    for (const char* name : {first_name, second_name}) write_as(mounted, crashed.id(), name, "1");
    crashed.end();
    for (const char* step : {"2", "3"}) {
      for (const char* name : {first_name, second_name}) write_as(mounted, ::getpid(), name, step);
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{2, 3}));
  });
}

TEST(StepFiles, ThreadsOfAProcessMayWriteNamesThatRepeat) {
  on_a_node([](MountedFiles& mounted) {
    const auto write_in_thread = [&](const char* name, const char* step) {
      std::thread([&] { write_as(mounted, ::gettid(), name, step); }).join();
    };
    for (const char* step : {"1", "2", "3"}) {
      write_as(mounted, ::getpid(), first_name, step);
      write_in_thread(second_name, step);
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), (std::set<std::int64_t>{2, 3}));
  });
}

TEST(StepFiles, AnUnknownProcessCountsAsOneOfItsOwn) {
  on_a_node([](MountedFiles& mounted) {
    for (const char* step : {"1", "2", "3"}) {
      write_as(mounted, 0, first_name, step);
      mounted.rounds();
    }
    EXPECT_TRUE(mounted.job().checkpoints().empty());
    EXPECT_EQ(read_all(mounted.plain(first_name)), "3");
  });
}

TEST(StepFiles, SeveralProcessesMayWriteNamesThatCarryTheirStep) {
  on_a_node([](MountedFiles& mounted) {
    const IdleChild other;
    const pid_t me = mounted.caller;
    for (const std::string step : {"step.1/", "step.2/"}) {
      write_as(mounted, me, step + "part.0", "content");
      write_as(mounted, other.id(), step + "part.1", "content");
      write_as(mounted, me, step + "part.0", "newer");
      mounted.rounds();
    }
    EXPECT_EQ(mounted.job().checkpoints(), step_numbers({"1", "2"}));
  });
}

}  // namespace
}  // namespace cairn
