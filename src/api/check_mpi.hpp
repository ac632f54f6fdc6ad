// Whether this process can use Cairn at all: with the library of another MPI, or under another
// MPI's launcher, the ranks are not what they seem.
#pragma once

#include "comm/mpi_match.hpp"

namespace cairn {

/// Local, at any time. bad_setting if the MPI that answers is not the one that Cairn was built for:
/// then no call with a communicator may be made.
Status check_library_of_process();

/// Local. The rank that the launcher gave to this process, for messages while the library is wrong.
int launched_rank_of_process();

/// Local, after MPI_Init.
LaunchJudgement judge_launch_of_process(int world_size);

}  // namespace cairn
