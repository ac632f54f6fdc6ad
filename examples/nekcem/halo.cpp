#include "halo.hpp"

namespace nekcem {
namespace {

// With two ranks the one below is also the one above.
constexpr int going_down = 1, going_up = 2;

}  // namespace

Halo::Halo(MPI_Comm comm, int values) : comm_(comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  rank_below_ = (rank + ranks - 1) % ranks;
  rank_above_ = (rank + 1) % ranks;
  for (auto& face : sent_) face.resize(values);
  for (auto& face : received_) face.resize(values);
  requests_.fill(MPI_REQUEST_NULL);
}

void Halo::start() {
  const int values = static_cast<int>(sent_[0].size());
  MPI_Irecv(received_[0].data(), values, MPI_DOUBLE, rank_below_, going_up, comm_, &requests_[0]);
  MPI_Irecv(received_[1].data(), values, MPI_DOUBLE, rank_above_, going_down, comm_, &requests_[1]);
  MPI_Isend(sent_[0].data(), values, MPI_DOUBLE, rank_below_, going_down, comm_, &requests_[2]);
  MPI_Isend(sent_[1].data(), values, MPI_DOUBLE, rank_above_, going_up, comm_, &requests_[3]);
}

void Halo::finish() {
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

}  // namespace nekcem
