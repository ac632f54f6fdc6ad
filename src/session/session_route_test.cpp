// Names of the application's files, and the places they get.
#include <set>
#include <thread>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

const Nodes two_nodes = {"n0", "n1"};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// No other rank has it.
std::string own(const JobRank& rank, const std::string& name) {
  return fmt::format("{}.{}", name, rank.number());
}

std::string routed(JobRank& rank, const std::string& name) {
  const auto path = rank.session->route_file(rank.settings.prefix + "/" + name);
  EXPECT_TRUE(path) << path.error().text;
  return path.value_or("/nowhere");
}

/// A run that writes these files on every rank, each holding its own name and the rank.
void write_named(JobBed& bed, const Nodes& nodes, const std::vector<std::string>& names) {
  bed.run_well(nodes, [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    for (const std::string& name : names)
      write_text(routed(rank, own(rank, name)), fmt::format("{} {}", name, rank.number()));
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
  });
}

TEST(SessionRoute, FilesOfOneBaseNameInTwoFoldersAreBothKept) {
  const std::vector<std::string> names = {"a/r0", "b/r0", "r0", "a b/r 0 ", "b/c/r0", "ü\n"};
  JobBed bed;
  write_named(bed, two_nodes, names);
  bed.lose("n1");
  bed.run_well({"n0", "n2"}, [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_restart());
    for (const std::string& name : names)
      EXPECT_EQ(read_all(routed(rank, own(rank, name))), fmt::format("{} {}", name, rank.number()));
  });
}

TEST(SessionRoute, OutsideThePrefixIsRefused) {
  JobBed bed;
  bed.run_well(two_nodes, [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    for (const char* path : {"/elsewhere/file", "/prefix", "/prefixed/file", "/prefix/../file",
                             "/prefix/a/../../file", "/prefix/./file", "/prefix//file"}) {
      const auto refused = rank.session->route_file(path);
      ASSERT_FALSE(refused) << path;
      EXPECT_EQ(refused.error().code, Code::bad_argument);
      EXPECT_NE(refused.error().text.find("SCR_PREFIX"), std::string::npos) << refused.error().text;
    }
    const auto too_long = rank.session->route_file("/prefix/" + std::string(1000, 'x'));
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().code, Code::bad_argument);
    EXPECT_FALSE(rank.session->complete_checkpoint(true)) << "files of it are missing";
  });
}

TEST(SessionRoute, NamesOfCairnsOwnAreRefused) {
  JobBed bed;
  bed.run_well(two_nodes, [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    for (const char* path : {"/prefix/.cairn", "/prefix/.cairn/file", "/prefix/.cairn.0123.0.0",
                             "/prefix/a/b/.cairn.file"}) {
      const auto refused = rank.session->route_file(path);
      ASSERT_FALSE(refused) << path;
      EXPECT_EQ(refused.error().code, Code::bad_argument);
      EXPECT_NE(refused.error().text.find("reserved name"), std::string::npos)
          << refused.error().text;
    }
    for (const char* name : {"cairn", ".cairnrc", "a/.cairn", "a.cairn.b"})
      write_text(routed(rank, name), name);
    EXPECT_FALSE(rank.session->complete_checkpoint(true)) << "files of it are missing";
  });
}

TEST(SessionRoute, IdleGivesThePathItself) {
  JobBed bed;
  bed.run_well(two_nodes, [](JobRank& rank) {
    EXPECT_EQ(*rank.session->route_file("/anywhere/at/all"), "/anywhere/at/all");
    EXPECT_EQ(*rank.session->route_file("/prefix/file"), "/prefix/file");
    EXPECT_EQ(rank.session->route_loaded("/prefix/file"), "/prefix/file");
  });
}

/// Before SCR_Start_restart only the newest has been read as a whole.
TEST(SessionRoute, IdleHandsOutNothingThatWasNotChecked) {
  JobBed bed;
  bed.settings.stores[0].count = 2;
  bed.write(two_nodes, {1, 2});
  bed.run_well(two_nodes, [](JobRank& rank) {
    const std::string newest = rank.file_name(0, 2);
    const std::string older = rank.file_name(0, 1);
    EXPECT_EQ(read_all(rank.session->route_loaded(newest)), content_of(rank.number(), 0, 2));
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_EQ(rank.session->route_loaded(older), older);
    ASSERT_TRUE(rank.session->start_restart());
    ASSERT_TRUE(rank.session->route_file(older));
    EXPECT_EQ(read_all(rank.session->route_loaded(older)), content_of(rank.number(), 0, 1));
  });
}

TEST(SessionRoute, TheSameNameGivesTheSamePath) {
  JobBed bed;
  bed.run_well(two_nodes, [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const std::string path = routed(rank, own(rank, "a/file"));
    EXPECT_EQ(path, routed(rank, own(rank, "a/file")));
    EXPECT_TRUE(fs::is_directory(fs::path(path).parent_path()));
    write_text(path, "x");
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
  });
}

TEST(SessionRoute, InRestartARankReadsItsOwnFilesOnly) {
  JobBed bed;
  bed.run_well(two_nodes, [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    write_text(routed(rank, fmt::format("d/r{}", rank.number())), "mine");
    write_text(routed(rank, own(rank, "d/same")), "d");
    write_text(routed(rank, own(rank, "e/same")), "e");
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
  });
  bed.run_well(two_nodes, [](JobRank& rank) {
    EXPECT_EQ(read_all(rank.session->route_loaded("/prefix/" + own(rank, "e/same"))), "e");
    ASSERT_TRUE(rank.session->start_restart());
    const auto others = rank.session->route_file(fmt::format("/prefix/d/r{}", 1 - rank.number()));
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().code, Code::not_found);
    EXPECT_EQ(read_all(routed(rank, own(rank, "d/same"))), "d");
    // By its base name alone where that says which one is meant.
    const std::string mine = fmt::format("r{}", rank.number());
    EXPECT_EQ(read_all(*rank.session->route_file("/moved/" + mine)), "mine");
    EXPECT_FALSE(rank.session->route_file("/moved/" + own(rank, "same")));
  });
}

TEST(SessionRoute, ManyThreadsAtOnce) {
  constexpr int threads = 8;
  constexpr int names = 100;
  const auto name_of = [](int thread, int name) {
    // One in ten is asked for by all threads.
    return name % 10 == 0 ? fmt::format("all/{}", name) : fmt::format("{}/{}", thread, name);
  };
  JobBed bed;
  bed.run_well(two_nodes, [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
      running.emplace_back([&, thread] {
        for (int name = 0; name < names; ++name) routed(rank, own(rank, name_of(thread, name)));
      });
    for (std::thread& each : running) each.join();
    std::set<std::string> paths;
    for (int thread = 0; thread < threads; ++thread)
      for (int name = 0; name < names; ++name) {
        paths.insert(routed(rank, own(rank, name_of(thread, name))));
        write_text(routed(rank, own(rank, name_of(thread, name))), name_of(thread, name));
      }
    EXPECT_EQ(paths.size(), 8U * 90U + 10U);
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
  });
  bed.run_well(two_nodes, [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_restart());
    for (int thread = 0; thread < threads; ++thread)
      for (int name = 0; name < names; ++name)
        EXPECT_EQ(read_all(routed(rank, own(rank, name_of(thread, name)))), name_of(thread, name));
  });
}

TEST(SessionRoute, ADatasetMayHaveNoFilesOnSomeRanks) {
  for (const int writers : {1, 5}) {
    JobBed bed;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
      const Status written = rank.number() < writers ? rank.write_files(1) : Status{};
      EXPECT_TRUE(written);
      const Status done = rank.session->complete_output(true);
      ASSERT_TRUE(done) << done.error().text;
    });
    bed.lose("n0");
    bed.run_well(replaced(four_nodes(), "n0", "n4"), [&](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
      ASSERT_TRUE(rank.session->start_restart());
      if (rank.number() < writers) rank.expect_files(1);
      ASSERT_TRUE(rank.session->complete_restart(true));
    });
  }
}

}  // namespace
}  // namespace cairn
