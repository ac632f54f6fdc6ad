#include "comm/mpi_match.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

using Verdict = LaunchJudgement::Verdict;
using enum MpiFamily;

constexpr long own_id = 77;

struct Case {
  const char* title;
  MpiFamily family;
  int world_size;
  std::map<std::string, std::string> environment;
  Verdict verdict;
  std::vector<const char*> words = {};
  bool is_child_of_rank = false;
};

const std::vector<Case> cases = {
    {"without a launcher", open_mpi, 1, {}, Verdict::expected},
    {"its own mpirun", open_mpi, 4, {{"OMPI_COMM_WORLD_SIZE", "4"}}, Verdict::expected},
    {"its own mpirun, one rank", open_mpi, 1, {{"OMPI_COMM_WORLD_SIZE", "1"}}, Verdict::expected},
    {"its own mpiexec", mpich, 4, {{"PMI_SIZE", "4"}}, Verdict::expected},
    {"MPICH by mpirun",
     mpich,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}},
     Verdict::wrong,
     {"Open MPI's mpirun", "MPICH", "OMPI_COMM_WORLD_SIZE"}},
    {"Open MPI by mpiexec",
     open_mpi,
     1,
     {{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}},
     Verdict::wrong,
     {"MPICH's mpiexec", "Open MPI", "PMI_SIZE"}},
    {"Open MPI by flux",
     open_mpi,
     1,
     {{"PMI_SIZE", "4"}, {"FLUX_JOB_ID", "f1"}},
     Verdict::wrong,
     {"flux", "pmix"}},
    {"a launcher that has started one process",
     mpich,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "1"}},
     Verdict::expected},
    {"another MPI has given as many ranks",
     mpich,
     4,
     {{"OMPI_COMM_WORLD_SIZE", "4"}},
     Verdict::expected},
    {"one rank of a larger program has called mpiexec -n 1",
     mpich,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}},
     Verdict::expected},
    {"a child of a rank of another MPI",
     mpich,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}},
     Verdict::odd,
     {"OMPI_COMM_WORLD_SIZE"},
     true},
    {"a child of a rank of another MPI, the other way round",
     open_mpi,
     1,
     {{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}},
     Verdict::odd,
     {"PMI_SIZE"},
     true},
    {"a task of srun in an ensemble",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "77"}, {"SLURM_MPI_TYPE", "none"}},
     Verdict::odd,
     {"SLURM_STEP_NUM_TASKS"}},
    {"a task of srun with another plugin",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "77"}, {"SLURM_MPI_TYPE", "pmi2"}},
     Verdict::wrong,
     {"srun", "SLURM_MPI_TYPE=none"}},
    {"a child of a rank of the same MPI",
     open_mpi,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}},
     Verdict::odd,
     {"OMPI_COMM_WORLD_SIZE", "4"}},
    {"both launchers' variables",
     mpich,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "2"}},
     Verdict::odd},
    {"a task of srun",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "77"}},
     Verdict::wrong,
     {"srun", "--mpi=pmix", "SLURM_STEP_NUM_TASKS"}},
    {"a task of srun, with PMI",
     mpich,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "4"}, {"SLURM_TASK_PID", "77"}},
     Verdict::wrong,
     {"srun", "--mpi=pmi2"}},
    {"a task of srun whose MPI is not known",
     unknown,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "77"}},
     Verdict::wrong,
     {"srun"}},
    {"a child of a task of srun",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "76"}},
     Verdict::odd,
     {"SLURM_STEP_NUM_TASKS"}},
    {"a child of a task of srun with PMI",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "4"}, {"SLURM_TASK_PID", "76"}},
     Verdict::odd},
    {"srun, as it should be",
     open_mpi,
     4,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "77"}},
     Verdict::expected},
    {"mpirun -n 1 in a step of several tasks",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_TASK_PID", "76"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
     Verdict::expected},
    {"Open MPI by mpiexec, whose proxies srun has started",
     open_mpi,
     1,
     {{"SLURM_STEP_NUM_TASKS", "4"},
      {"SLURM_TASK_PID", "76"},
      {"PMI_SIZE", "4"},
      {"MPI_LOCALNRANKS", "1"}},
     Verdict::wrong,
     {"MPICH's mpiexec"}},
    {"an MPI that is not known, by mpirun",
     unknown,
     1,
     {{"OMPI_COMM_WORLD_SIZE", "4"}},
     Verdict::odd},
    {"a variable that is no number", mpich, 1, {{"OMPI_COMM_WORLD_SIZE", "4x"}}, Verdict::expected},
};

TEST(Launch, IsWrongOnlyWhereEachProcessIsAWorldOfItsOwn) {
  for (const Case& one : cases) {
    const LaunchJudgement found =
        judge_launch({one.family, one.world_size, own_id, one.environment, one.is_child_of_rank});
    EXPECT_EQ(found.verdict, one.verdict) << one.title << ": " << found.text;
    EXPECT_EQ(found.text.empty(), one.verdict == Verdict::expected) << one.title;
    for (const char* word : one.words)
      EXPECT_NE(found.text.find(word), std::string::npos) << one.title << ": " << found.text;
  }
}

TEST(MpiLibrary, IsKnownByWhatItSaysOfItself) {
  EXPECT_EQ(family_of_library("Open MPI v4.1.4, package: Debian OpenMPI"), open_mpi);
  EXPECT_EQ(family_of_library("IBM Spectrum MPI v10.3"), open_mpi);
  EXPECT_EQ(family_of_library("MPICH Version:\t4.0.2\nMPICH Release date: ..."), mpich);
  EXPECT_EQ(family_of_library("Intel(R) MPI Library 2021.8 for Linux* OS"), mpich);
  EXPECT_EQ(family_of_library("MPI VERSION    : CRAY MPICH version 8.1.25"), mpich);
  EXPECT_EQ(family_of_library("MVAPICH2 Version      :\t2.3.7"), mpich);
  EXPECT_EQ(family_of_library("MPI of the future 9"), unknown);
}

TEST(MpiLibrary, OfAnotherFamilyIsAnErrorThatNamesBoth) {
  EXPECT_TRUE(check_mpi_library(mpich, "MPICH Version: 4.0.2"));
  EXPECT_TRUE(check_mpi_library(mpich, "Intel(R) MPI Library 2021.8"));
  EXPECT_TRUE(check_mpi_library(unknown, "Open MPI v4.1.4"));
  EXPECT_TRUE(check_mpi_library(open_mpi, "MPI of the future 9"));
  const Status mixed = check_mpi_library(mpich, "Open MPI v4.1.4");
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::bad_setting);
  for (const char* word : {"MPICH", "Open MPI", "cairn-openmpi", "cairn::openmpi"})
    EXPECT_NE(mixed.error().text.find(word), std::string::npos) << mixed.error().text;
}

TEST(Launch, GivesARankToEachProcess) {
  EXPECT_EQ(launched_rank(open_mpi, {{"OMPI_COMM_WORLD_RANK", "3"}, {"PMI_RANK", "1"}}), 3);
  EXPECT_EQ(launched_rank(mpich, {{"OMPI_COMM_WORLD_RANK", "3"}, {"PMI_RANK", "1"}}), 1);
  EXPECT_EQ(launched_rank(open_mpi, {{"SLURM_PROCID", "2"}}), 2);
  EXPECT_EQ(launched_rank(open_mpi, {}), 0);
}

}  // namespace
}  // namespace cairn
