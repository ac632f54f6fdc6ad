#include "run.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

namespace nekcem {
namespace {

constexpr int times_per_step = sizeof(StepTimes) / sizeof(double);

int rank_in(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int ranks_in(MPI_Comm comm) {
  int ranks;
  MPI_Comm_size(comm, &ranks);
  return ranks;
}

template <class Action>
double seconds(Action action) {
  const double begin = MPI_Wtime();
  action();
  return MPI_Wtime() - begin;
}

// A run of weeks does not end because a checkpoint fails.
void keep_going(MPI_Comm comm, Run& run, const char* what, auto action) {
  try {
    action();
  } catch (const std::exception& error) {
    ++run.failed_checkpoints;
    if (rank_in(comm) == 0)
      std::fprintf(stderr, "nekcem: %s failed, computing goes on: %s\n", what, error.what());
  }
}

StepTimes advance(MPI_Comm comm, Maxwell& solver, double time_step, double& energy) {
  StepTimes times;
  const SolverTimes before = solver.times();
  solver.advance(time_step);
  double mine = 0;
  times.compute = seconds([&] { mine = solver.energy_of_rank(); });
  times.compute += solver.times().compute - before.compute;
  times.exchange = solver.times().exchange - before.exchange;
  times.allreduce = seconds([&] { MPI_Allreduce(&mine, &energy, 1, MPI_DOUBLE, MPI_SUM, comm); });
  return times;
}

}  // namespace

Run run(MPI_Comm comm, Maxwell& solver, Checkpoints& checkpoints, const Schedule& schedule) {
  Run result;
  for (std::int64_t step = schedule.first + 1; step <= schedule.last; ++step) {
    StepTimes times = advance(comm, solver, schedule.time_step, result.energy);
    if (schedule.checkpoint_every > 0 && step % schedule.checkpoint_every == 0)
      times.checkpoint = seconds(
          [&] { keep_going(comm, result, "a checkpoint", [&] { checkpoints.begin(step); }); });
    result.steps.push_back(times);
  }
  StepTimes end;
  end.checkpoint = seconds(
      [&] { keep_going(comm, result, "storing the checkpoints", [&] { checkpoints.close(); }); });
  result.steps.push_back(end);
  return result;
}

void print_phases(MPI_Comm comm, const Run& run) {
  const auto print = [&](const char* phase, double StepTimes::*time, bool last_only) {
    double mine = 0, least, sum, most;
    for (std::size_t i = last_only ? run.steps.size() - 1 : 0;
         i < run.steps.size() - (last_only ? 0 : 1); ++i)
      mine += run.steps[i].*time;
    MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, comm);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
    MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    if (rank_in(comm) == 0)
      std::printf("%-12s %9.4f %9.4f %9.4f\n", phase, least, sum / ranks_in(comm), most);
  };
  if (rank_in(comm) == 0) std::printf("%-12s %9s %9s %9s\n", "seconds", "least", "mean", "most");
  print("compute", &StepTimes::compute, false);
  print("exchange", &StepTimes::exchange, false);
  print("allreduce", &StepTimes::allreduce, false);
  print("checkpoint", &StepTimes::checkpoint, false);
  print("close", &StepTimes::checkpoint, true);
}

void write_profile(MPI_Comm comm, const Run& run, std::int64_t first_step,
                   const std::string& path) {
  const int rank = rank_in(comm), ranks = ranks_in(comm);
  const int mine = static_cast<int>(run.steps.size()) * times_per_step;
  std::vector<StepTimes> all(rank == 0 ? run.steps.size() * static_cast<unsigned>(ranks) : 0);
  MPI_Gather(run.steps.data(), mine, MPI_DOUBLE, all.data(), mine, MPI_DOUBLE, 0, comm);
  int written = 1;
  if (rank == 0) {
    std::ofstream file(path);
    file << "rank,step,compute,exchange,allreduce,checkpoint\n";
    for (std::size_t i = 0; i < all.size(); ++i)
      file << i / run.steps.size() << ','
           << first_step + 1 + static_cast<std::int64_t>(i % run.steps.size()) << ','
           << all[i].compute << ',' << all[i].exchange << ',' << all[i].allreduce << ','
           << all[i].checkpoint << '\n';
    file.close();
    written = file.good() ? 1 : 0;
  }
  MPI_Bcast(&written, 1, MPI_INT, 0, comm);
  if (written == 0) throw std::runtime_error("cannot write the profile " + path);
}

}  // namespace nekcem
