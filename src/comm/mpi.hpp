// Ranks as MPI processes. This and mpi.cpp belong to the targets built once per MPI.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/mpi_match.hpp"
#include "comm/neighbour_watch.hpp"

namespace cairn {

/// Of the mpi.h that this was compiled with.
MpiFamily mpi_family_built_for();
/// Local, at any time. What the library that answers the calls of MPI says of itself: this call and
/// MPI_Initialized take no handles, so they work also if it is another MPI's.
std::string mpi_library_version();

/// Works on a duplicate of `parent`, so its messages never meet the application's; errors of MPI
/// are fatal on it, also when the application has chosen otherwise for its own. Needs no more than
/// MPI_THREAD_FUNNELED: only the thread that calls Cairn makes MPI calls.
class MpiCommunicator final : public Communicator {
 public:
  /// Collective over `parent`. While it waits, it asks `neighbour`, a watch of the same ranks: one
  /// of them may have ended before.
  explicit MpiCommunicator(MPI_Comm parent, std::shared_ptr<NeighbourWatch> neighbour = nullptr);
  /// Collective; does nothing after MPI_Finalize.
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Request isend(Bytes data, int to, int tag) override;
  Request irecv(MutableBytes buffer, int from, int tag) override;
  void idle() override;
  void barrier() override;
  void allreduce(std::span<std::int64_t> values, Reduce op) override;
  void bcast(MutableBytes data, int root) override;
  void allgather(Bytes mine, MutableBytes all) override;

  /// Asks `failure` while it waits. As soon as that returns an error, MPI ends the job by its own
  /// handler: the rank that the error names will never answer, and not every launcher notices.
  void end_job_on(std::function<Status()> failure) { failure_ = std::move(failure); }
  /// Collective. The same on the end of the rank that a NeighbourWatch watches: the one given
  /// before, if all ranks have one, else a new one. `place`: the node.
  void end_job_on_neighbour(const std::string& place);
  const std::shared_ptr<NeighbourWatch>& neighbour() const { return neighbour_; }

  /// Calls `work` repeatedly while it waits. It may begin and test messages, and waits for none.
  void call_while_waiting(std::function<void()> work) { while_waiting_ = std::move(work); }

  /// For what a Communicator cannot do, such as MPI-IO.
  MPI_Comm handle() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  void end_job_on_error(const Status& failure);

  std::function<Status()> failure_;
  std::shared_ptr<NeighbourWatch> neighbour_;
  std::function<void()> while_waiting_;
  int vain_looks_ = 0;  ///< idle() since a message was begun
};

}  // namespace cairn
