// The steps of a run, with the time of each phase.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints.hpp"
#include "maxwell.hpp"

namespace nekcem {

// Seconds of one step on one rank.
struct StepTimes {
  double compute = 0, exchange = 0, allreduce = 0, checkpoint = 0;
};

struct Schedule {
  std::int64_t first = 0;  // the step that the fields are of
  std::int64_t last = 0;
  std::int64_t checkpoint_every = 0;
  double time_step = 0;
};

struct Run {
  std::vector<StepTimes> steps;  // one per step, and one for what comes after the last
  double energy = 0;
  int failed_checkpoints = 0;
};

// Collective. A checkpoint that fails is printed, and computing goes on.
Run run(MPI_Comm comm, Maxwell& solver, Checkpoints& checkpoints, const Schedule& schedule);

// Collective; rank 0 prints the phases over all ranks.
void print_phases(MPI_Comm comm, const Run& run);
// Collective; rank 0 writes one line per step and rank. Throws if it cannot.
void write_profile(MPI_Comm comm, const Run& run, std::int64_t first_step, const std::string& path);

}  // namespace nekcem
