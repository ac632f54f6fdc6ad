#include "comm/ancestors.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cairn {
namespace {

/// Processes as the kernel shows them.
class FakeProc {
 public:
  FakeProc() : path_(::testing::TempDir() + "cairn-proc-XXXXXX") { (void)::mkdtemp(path_.data()); }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  void add(long process, const std::string& program, long parent, const std::string& library = "") {
    const auto folder = std::filesystem::path(path_) / std::to_string(process);
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "stat") << process << " (" << program << ") S " << parent << " 1 1 0\n";
    std::ofstream(folder / "maps") << "5000-6000 r-xp 00000000 08:01 7   /usr/bin/" << program
                                   << "\n7000-8000 r-xp 00000000 08:01 8   " << library << "\n"
                                   << "9000-a000 rw-p 00000000 00:00 0\n";
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct AncestryCase {
  const char* title;
  std::vector<std::pair<const char*, const char*>> above;  ///< program and library, nearest first
  bool is_child;
};

constexpr const char* open_mpi_library = "/usr/lib/libmpi.so.40.30.4";
constexpr const char* mpich_library = "/usr/lib/libmpich.so.12 (deleted)";

const std::vector<AncestryCase> ancestries = {
    {"a shell only", {{"bash", ""}}, false},
    {"mpirun", {{"mpirun", ""}, {"bash", ""}}, false},
    {"a script between launcher and program", {{"sh", ""}, {"orted", ""}, {"srun", ""}}, false},
    {"system() in a rank", {{"sh", ""}, {"program", open_mpi_library}, {"mpirun", ""}}, true},
    {"a rank of MPICH", {{"program", mpich_library}, {"hydra_pmi_proxy", ""}}, true},
    {"a rank, and no launcher is seen", {{"a (b) c", mpich_library}}, true},
    {"mpiexec in a rank",
     {{"mpiexec.mpich", ""}, {"program", open_mpi_library}, {"mpirun", ""}},
     false},
    {"a launcher that is linked with an MPI", {{"prterun", open_mpi_library}, {"bash", ""}}, false},
    {"flux", {{"flux-shell", ""}, {"flux-broker", mpich_library}}, false},
    {"Slurm's step", {{"slurmstepd", ""}}, false},
    {"a library of another kind", {{"program", "/opt/mpi/libmpl.so"}, {"mpirun", ""}}, false},
};

TEST(Ancestors, ARankBelowItsLauncherHasStartedTheProcess) {
  for (const AncestryCase& one : ancestries) {
    FakeProc proc;
    long id = 100;
    proc.add(id, "program", id - 1, open_mpi_library);  // what it loads itself says nothing
    for (const auto& [program, library] : one.above) {
      --id;
      proc.add(id, program, id - 1, library);
    }
    const auto found = ancestors_of(100, proc.path());
    EXPECT_EQ(found.size(), one.above.size() + 1) << one.title;  // and one that cannot be seen
    EXPECT_EQ(has_rank_below_launcher(found), one.is_child) << one.title;
  }
}

TEST(Ancestors, ProcessesThatAreTheirOwnAncestorsHaveAnEnd) {
  FakeProc proc;
  proc.add(7, "a", 8);
  proc.add(8, "b", 7);
  EXPECT_FALSE(has_rank_below_launcher(ancestors_of(7, proc.path())));
}

TEST(Ancestors, OfThisProcessAreSeen) {
  const auto found = ancestors_of(::getpid());
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found.front().program.empty());
}

}  // namespace
}  // namespace cairn
