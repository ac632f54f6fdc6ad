// The checks of every communicator over real MPI, also on a communicator whose ranks are not those
// of the world, and in groups; and how often its waits ask whether a rank has died.
#include <cstdio>
#include <exception>
#include <utility>

#include "comm/communicator_checks.hpp"
#include "comm/mpi.hpp"
#include "mpi/finalize_mpi.hpp"

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

/// A new watch costs connections between machines.
void check_a_watch_is_kept_if_all_ranks_have_one() {
  cairn::MpiCommunicator first(MPI_COMM_WORLD);
  first.end_job_on_neighbour("n1");
  cairn::MpiCommunicator second(MPI_COMM_WORLD, first.neighbour());
  second.end_job_on_neighbour("n1");
  cairn::checks::require(second.neighbour() == first.neighbour(), "the watch is kept");
  // A rank may have had a series with others in between.
  cairn::MpiCommunicator third(MPI_COMM_WORLD, first.rank() == 0 ? nullptr : first.neighbour());
  third.end_job_on_neighbour("n1");
  cairn::checks::require(third.neighbour() != first.neighbour(), "one rank has none: all get one");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    cairn::MpiCommunicator comm(MPI_COMM_WORLD);
    cairn::checks::all(comm);
    check_in_reverse();
    check_deaths_are_asked_for_after_long_only();
    check_a_watch_is_kept_if_all_ranks_have_one();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  cairn::finalize_mpi();
}
