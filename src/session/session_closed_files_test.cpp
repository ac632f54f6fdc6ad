// Files that the program has not closed when it completes a dataset.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// A file of this rank, not closed yet, with bytes that are in no file.
std::ofstream begin_file(JobRank& rank, const std::string& name) {
  const auto path = rank.session->route_file(rank.settings.prefix + "/" + name);
  EXPECT_TRUE(path) << path.error().text;
  std::ofstream out(path.value_or("/nowhere"), std::ios::binary);
  out << "the first line\n" << std::flush << "the tail";
  return out;
}

/// invalid on this rank as on all, naming the file and the rank that had it open.
void expect_open_file(const Status& done, const std::string& file, int rank) {
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::invalid) << done.error().text;
  EXPECT_NE(done.error().text.find(file), std::string::npos) << done.error().text;
  EXPECT_NE(done.error().text.find(fmt::format("rank {}", rank)), std::string::npos)
      << done.error().text;
}

/// Ranks 0 to 7 write a file; rank 5 forgets to close its own.
void forget_to_close(JobRank& rank) {
  ASSERT_TRUE(rank.session->start_checkpoint());
  std::ofstream out = begin_file(rank, fmt::format("state.{}", rank.number()));
  if (rank.number() != 5) out.close();
  expect_open_file(rank.session->complete_checkpoint(true), "state.5", 5);
}

TEST(SessionClosedFiles, AFileThatIsStillOpenMakesTheCheckpointInvalid) {
  for (const std::string& base : {memory_base(), std::string()}) {
    JobBed bed(base);
    bed.run_well(four_nodes(), [](JobRank& rank) {
      rank.expect_written(1);
      forget_to_close(rank);
    });
    EXPECT_EQ(bed.restart(four_nodes()), 1);
  }
}

TEST(SessionClosedFiles, TheNextCheckpointIsMadeOnceTheFileIsClosed) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    forget_to_close(rank);
    rank.expect_written(2);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionClosedFiles, AMappedFileIsOpenThoughItsTimeDoesNotChange) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const std::string name = fmt::format("state.{}", rank.number());
    begin_file(rank, name).close();
    const auto path = rank.session->route_file(rank.settings.prefix + "/" + name);
    const int number = ::open(path->c_str(), O_RDWR);
    void* mapping = ::mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    ::close(number);
    if (rank.number() != 3) ::munmap(mapping, 8);
    expect_open_file(rank.session->complete_checkpoint(true), "state.3", 3);
    if (rank.number() == 3) ::munmap(mapping, 8);
  });
}

TEST(SessionClosedFiles, AnOpenFileInPlaceEndsTheDataset) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].bypass = true;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    forget_to_close(rank);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.1"}));
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionClosedFiles, ASharedFileThatOneRankHasOpenEndsTheDataset) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].bypass = true;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.settings.prefix + "/state");
    ASSERT_TRUE(path);
    if (rank.number() == 0) std::ofstream(*path) << std::string(5000, 'x');
    rank.comm.barrier();
    const int still_open = rank.number() == 6 ? ::open(path->c_str(), O_WRONLY) : -1;
    const Status done = rank.session->complete_checkpoint(true);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::invalid) << done.error().text;
    EXPECT_NE(done.error().text.find("state"), std::string::npos) << done.error().text;
    ::close(still_open);
  });
  EXPECT_EQ(bed.listed(), Names());
}

/// Checkpoint `dataset`, whose file of rank 5 has a child open when that rank has closed it.
void write_beside_child(JobRank& rank, int dataset) {
  ASSERT_TRUE(rank.session->start_checkpoint());
  std::ofstream out = begin_file(rank, fmt::format("ckpt.{}.{}", dataset, rank.number()));
  if (rank.number() != 5) out.close();
  rank.comm.barrier();
  const pid_t child = rank.number() == 5 ? ::fork() : -1;
  while (child == 0) ::pause();
  out.close();
  const Status done = rank.session->complete_checkpoint(true);
  EXPECT_TRUE(done) << done.error().text;
  if (child < 0) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

void expect_checkpoints_beside_child(JobBed& bed) {
  bed.run_well(four_nodes(), [](JobRank& rank) {
    write_beside_child(rank, 1);
    write_beside_child(rank, 2);
  });
  const std::string log = bed.log_text();
  const auto found = log.find("ckpt.1.5");
  EXPECT_NE(found, std::string::npos) << log;
  EXPECT_EQ(log.find("ckpt.2.5"), std::string::npos) << "logged once: " << log;
}

TEST(SessionClosedFiles, AChildThatInheritedAFileIsReportedOnceAndTheCheckpointIsMade) {
  for (const std::string& base : {memory_base(), std::string()}) {
    JobBed bed(base);
    expect_checkpoints_beside_child(bed);
  }
}

TEST(SessionClosedFiles, AChildThatInheritedAFileInPlaceIsReportedOnceAndTheCheckpointIsMade) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].bypass = true;
  expect_checkpoints_beside_child(bed);
}

TEST(SessionClosedFiles, ChildrenOfAllRanksAreReportedInOneLine) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    std::ofstream out = begin_file(rank, fmt::format("ckpt.{}", rank.number()));
    rank.comm.barrier();
    const pid_t child = ::fork();
    while (child == 0) ::pause();
    out.close();
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
  EXPECT_TRUE(bed.logs("8 ranks; the first: rank 0 has closed")) << bed.log_text();
  EXPECT_FALSE(bed.logs("rank 1 has closed")) << bed.log_text();
}

/// Where the file system knows nothing of open files.
void expect_found_though_closed(void (*change)(const std::string& path)) {
  JobBed bed;
  bed.run_well(four_nodes(), [change](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    begin_file(rank, fmt::format("state.{}", rank.number())).close();
    if (rank.number() == 2)
      rank.hook = [change](const FileOperation& operation) -> Status {
        if (operation.name != "view" || !operation.path.ends_with("state.2")) return {};
        change(std::string(operation.path));
        return {};
      };
    expect_open_file(rank.session->complete_checkpoint(true), "state.2", 2);
  });
}

TEST(SessionClosedFiles, AFileThatIsWrittenWhileItIsReadIsFoundByItsSize) {
  expect_found_though_closed(
      [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; });
}

TEST(SessionClosedFiles, AFileThatIsWrittenAnewWhileItIsReadIsFoundByItsTime) {
  expect_found_though_closed([](const std::string& path) {
    const auto written = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, written + std::chrono::milliseconds(1));
  });
}

}  // namespace
}  // namespace cairn
