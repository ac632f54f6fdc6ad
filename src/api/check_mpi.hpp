// Checks whether this process can use Cairn: with the library or the launcher of another MPI, ranks
// and sizes are wrong.
#pragma once

#include "comm/mpi_match.hpp"

namespace cairn {

/// Local, at any time. bad_setting if the MPI of the process is not the one for which Cairn was
/// built: then do not make calls with a communicator.
Status check_library_of_process();

/// Local. The rank that the launcher gave to this process, for messages if the library is the wrong
/// one.
int launched_rank_of_process();

/// Local, after MPI_Init.
LaunchJudgement judge_launch_of_process(int world_size);

}  // namespace cairn
