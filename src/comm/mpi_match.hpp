// Whether a program runs with the MPI that it was built for. Judged from texts and variables, so
// that it needs no MPI; what MPI itself says comes from mpi.hpp.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cairn {

/// MPIs that have one binary interface and start each other's programs. `mpich` has Intel MPI,
/// MVAPICH and Cray MPICH too, `open_mpi` Spectrum MPI.
enum class MpiFamily { unknown, open_mpi, mpich };

/// By what MPI_Get_library_version returns.
MpiFamily family_of_library(std::string_view version);

/// Local. bad_setting if the library that answers the calls of MPI belongs to another family than
/// the one that Cairn was compiled for: every call with a communicator would crash.
Status check_mpi_library(MpiFamily built_for, std::string_view version);

/// A process of a program, as it finds itself after MPI_Init.
struct Launch {
  MpiFamily family = MpiFamily::unknown;  ///< of the MPI that the program runs with
  int world_size = 1;
  long process_id = 0;
  std::map<std::string, std::string> environment = {};
  bool is_child_of_rank = false;  ///< see has_rank_below_launcher()
};

struct LaunchJudgement {
  enum class Verdict {
    expected,
    odd,   ///< the variables contradict the world; processes that are not ranks inherit them too
    wrong  ///< each process of the launch is a world of its own
  };
  Verdict verdict = Verdict::expected;
  std::string text = {};  ///< what is odd or wrong, and what to do
  int rank = 0;           ///< of this process in a wrong launch, by the launcher's count
};

/// Compares the world with what the launcher has put into the environment.
LaunchJudgement judge_launch(const Launch& launch);

/// The rank that the launcher of that family, else Slurm, gave to this process; 0 if neither did.
int launched_rank(MpiFamily launcher, const std::map<std::string, std::string>& environment);

}  // namespace cairn
