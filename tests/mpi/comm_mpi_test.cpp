// The checks of every communicator over real MPI, also on a communicator whose ranks are not those
// of the world, and in groups; and how often its waits ask whether a rank has died.
#include <cstdio>
#include <exception>
#include <utility>

#include "comm/communicator_checks.hpp"
#include "comm/mpi.hpp"

namespace {

void check_in_reverse() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm reverse;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
  {
    cairn::MpiCommunicator comm(reverse);
    cairn::checks::require(comm.rank() == comm.size() - 1 - rank, "ranks are those of the parent");
    cairn::checks::all(comm);
  }
  MPI_Comm_free(&reverse);
}

/// To ask whether a rank has died takes a lock, which a message that comes soon must not pay for.
void check_deaths_are_asked_for_after_long_only() {
  cairn::MpiCommunicator alone(MPI_COMM_SELF);
  int asked = 0;
  alone.end_job_on([&] {
    ++asked;
    return cairn::Status{};
  });
  const auto look_in_vain = [&](int times) {
    for (int i = 0; i < times; ++i) alone.idle();
    return std::exchange(asked, 0);
  };
  cairn::checks::require(look_in_vain(60) == 0, "a short wait does not ask");
  cairn::checks::require(look_in_vain(60) > 0, "a longer one does");
  alone.barrier();
  cairn::checks::require(look_in_vain(60) == 0, "the next wait does not ask either");
  const auto sent = alone.isend({}, 0, 0);
  cairn::checks::require(look_in_vain(60) == 0, "nor does that for a message");
  const auto received = alone.irecv({}, 0, 0);
  cairn::checks::require(look_in_vain(60) == 0, "nor that for the next one");
  while (!sent->test() || !received->test()) alone.idle();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    cairn::MpiCommunicator comm(MPI_COMM_WORLD);
    cairn::checks::all(comm);
    check_in_reverse();
    check_deaths_are_asked_for_after_long_only();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
