// A wave in a metal guide, computed step by step and saved through rbIO.
#include <mpi.h>

#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>

#include "maxwell.hpp"
#include "options.hpp"
#include "rbio_checkpoints.hpp"
#include "run.hpp"

namespace {

constexpr int exit_usage = 2, exit_checkpoints = 3;

int rank() {
  int value;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int ranks() {
  int value;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

std::unique_ptr<nekcem::Checkpoints> open_checkpoints(const nekcem::Options& options,
                                                      nekcem::Maxwell& solver) {
  if (options.checkpoint_every == 0 && !options.restart)
    return std::make_unique<nekcem::NoCheckpoints>();
  return std::make_unique<nekcem::RbioCheckpoints>(MPI_COMM_WORLD, options.directory, options.rbio,
                                                   solver);
}

std::int64_t restart(nekcem::Checkpoints& checkpoints) {
  const auto step = checkpoints.restore_newest();
  if (rank() == 0 && step) std::printf("restored step %" PRId64 "\n", *step);
  if (rank() == 0 && !step) std::printf("there is no checkpoint: starting at step 0\n");
  return step.value_or(0);
}

void print_state(const nekcem::Maxwell& solver, const nekcem::Schedule& schedule,
                 const nekcem::Run& run) {
  const nekcem::Error error = solver.error(static_cast<double>(schedule.last) * schedule.time_step);
  const std::uint64_t digest = solver.digest();
  if (rank() != 0) return;
  std::printf("step %" PRId64 ": energy %.9f, error %.4e (L2) %.4e (largest)\n", schedule.last,
              run.energy, error.l2, error.largest);
  std::printf("digest %016" PRIx64 "\n", digest);
}

int compute(const nekcem::Options& options) {
  nekcem::Maxwell solver(
      MPI_COMM_WORLD, options.elements_per_rank / nekcem::Guide::elements_per_layer, options.order);
  nekcem::Schedule schedule;
  schedule.last = options.steps;
  schedule.checkpoint_every = options.checkpoint_every;
  schedule.time_step = options.time_step > 0 ? options.time_step : solver.stable_time_step();
  if (rank() == 0)
    std::printf("%d ranks x %d elements of order %d, %" PRId64
                " nodes per rank; time step %.6f of a period of %.6f\n",
                ranks(), options.elements_per_rank, options.order, solver.nodes(),
                schedule.time_step, solver.guide().period());

  const auto checkpoints = open_checkpoints(options, solver);
  if (options.restart) schedule.first = restart(*checkpoints);
  const nekcem::Run run = nekcem::run(MPI_COMM_WORLD, solver, *checkpoints, schedule);
  print_state(solver, schedule, run);
  nekcem::print_phases(MPI_COMM_WORLD, run);
  if (!options.profile.empty())
    nekcem::write_profile(MPI_COMM_WORLD, run, schedule.first, options.profile);
  return run.failed_checkpoints > 0 ? exit_checkpoints : 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 0;
  try {
    status = compute(nekcem::parse_options(argc, argv));
  } catch (const std::invalid_argument& error) {
    if (rank() == 0)
      std::fprintf(stderr, "nekcem: %s\n\n%s", error.what(), nekcem::usage().c_str());
    status = exit_usage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nekcem: rank %d: %s\n", rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
