#include "api/check_mpi.hpp"

#include <unistd.h>

#include "comm/ancestors.hpp"
#include "comm/mpi.hpp"
#include "config/gather.hpp"

namespace cairn {

Status check_library_of_process() {
  return check_mpi_library(mpi_family_built_for(), mpi_library_version());
}

int launched_rank_of_process() {
  return launched_rank(family_of_library(mpi_library_version()), current_process().environment);
}

LaunchJudgement judge_launch_of_process(int world_size) {
  const MpiFamily family = family_of_library(mpi_library_version());
  const bool is_alone = world_size == 1;
  return judge_launch({family, world_size, ::getpid(), current_process().environment,
                       is_alone && has_rank_below_launcher(ancestors_of(::getpid()))});
}

}  // namespace cairn
